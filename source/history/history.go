// Package history caches facts about the histories of repos, so that the same files can be evaluated again without
// git.
//
// The content of a commit never changes: an answer about it is valid forever, and is stored by the commit's hash for
// all repos.
package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// maxFile limits the file, in bytes. Answers beyond it are not stored.
const maxFile = 256 << 20

// Cache answers questions about histories and collects those that it cannot answer. It is safe for concurrent use.
type Cache struct {
	path string // empty: no file

	mu      sync.Mutex
	read    bool
	answers map[hclspec.Question]hclspec.Answer // without the name of the repo
	passing map[hclspec.Question]hclspec.Answer // valid only in this process
	used    map[hclspec.Question]hclspec.Answer // answers given in this process, without the name of the repo
	wanted  []hclspec.Question
	asked   map[hclspec.Question]bool // questions in wanted
}

// Open returns the cache in a file. The first question reads the file, which may be missing.
func Open(path string) *Cache {
	return &Cache{path: path, answers: map[hclspec.Question]hclspec.Answer{},
		passing: map[hclspec.Question]hclspec.Answer{}, asked: map[hclspec.Question]bool{},
		used: map[hclspec.Question]hclspec.Answer{}}
}

// Ask returns the answer to a question. If it is not known, Ask returns false and adds the question to Wanted.
func (c *Cache) Ask(q hclspec.Question) (hclspec.Answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.read {
		c.read = true
		c.load()
	}
	if a, ok := c.known(q); ok {
		c.used[anywhere(q)] = a
		return a, true
	}
	if !c.asked[q] {
		c.asked[q] = true
		c.wanted = append(c.wanted, q)
	}
	return hclspec.Answer{}, false
}

func (c *Cache) known(q hclspec.Question) (hclspec.Answer, bool) {
	if a, ok := c.passing[q]; ok {
		return a, true
	}
	a, ok := c.answers[anywhere(q)]
	return a, ok
}

// anywhere returns the question without the repo: the content of a commit is the same in all repos.
func anywhere(q hclspec.Question) hclspec.Question {
	q.Repo = ""
	return q
}

// Wanted returns the unanswered questions since the last call, each once, in the order in which they were asked.
func (c *Cache) Wanted() []hclspec.Question {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := c.wanted
	c.wanted, c.asked = nil, map[hclspec.Question]bool{}
	return wanted
}

// Keep stores an answer that is valid forever.
func (c *Cache) Keep(q hclspec.Question, a hclspec.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[anywhere(q)] = a
}

// Pass stores an answer for the rest of this process.
func (c *Cache) Pass(q hclspec.Question, a hclspec.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passing[q] = a
}

// line is one answer in the file.
type line struct {
	Q hclspec.Question `json:"q"`
	A hclspec.Answer   `json:"a"`
}

// load reads the file: a SHA-256, and a line for each answer. It ignores a damaged file.
func (c *Cache) load() {
	text, err := fs.ReadFile(c.path, maxFile)
	if err != nil {
		return
	}
	digest, lines, ok := bytes.Cut(text, []byte("\n"))
	if sum := sha256.Sum256(lines); !ok || string(digest) != hex.EncodeToString(sum[:]) {
		return
	}
	for d := json.NewDecoder(bytes.NewReader(lines)); ; {
		var l line
		if d.Decode(&l) != nil {
			return
		}
		if _, there := c.answers[l.Q]; !there {
			c.answers[l.Q] = l.A
		}
	}
}

// Used returns a file with the answers given in this process, sorted: they are enough to evaluate the same files
// again. It is empty without answers.
func (c *Cache) Used() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []string
	answers := map[string]line{}
	for q, a := range c.used {
		key, err := json.Marshal(q)
		if err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		keys, answers[string(key)] = append(keys, string(key)), line{q, a}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	slices.Sort(keys)
	return encode(func(yield func(hclspec.Question, hclspec.Answer) bool) {
		for _, key := range keys {
			if l := answers[key]; !yield(l.Q, l.A) {
				return
			}
		}
	})
}

// encode returns the text of a file with answers.
func encode(answers iter.Seq2[hclspec.Question, hclspec.Answer]) ([]byte, error) {
	var lines bytes.Buffer
	e := json.NewEncoder(&lines)
	for q, a := range answers {
		if err := e.Encode(line{q, a}); err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
	}
	sum := sha256.Sum256(lines.Bytes())
	return fmt.Appendf(nil, "%s\n%s", hex.EncodeToString(sum[:]), lines.Bytes()), nil
}

// Save writes the answers that are valid forever. It replaces the file atomically.
func (c *Cache) Save() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.path == "" {
		return nil
	}
	text, err := encode(maps.All(c.answers))
	if err != nil {
		return err
	}
	if len(text) > maxFile {
		return nil // keep the old file
	}
	if err := fs.Replace(c.path, text); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}
