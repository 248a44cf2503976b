// Package history keeps what is known of the histories of repos, so that the same files are evaluated again without git.
//
// What a commit holds never changes: an answer is good for ever, and is kept by the commit's hash whichever repo it is from.
package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/benchgraph/benchgraph/hclspec"
)

// maxFile bounds the bytes of the file: what is beyond is asked anew.
const maxFile = 256 << 20

// Cache answers questions about histories, and remembers those that it has no answer to. It is safe for concurrent use.
type Cache struct {
	path string // empty: nothing is kept

	mu      sync.Mutex
	read    bool
	answers map[hclspec.Question]hclspec.Answer // without the name of the repo
	passing map[hclspec.Question]hclspec.Answer // that are good for this process
	wanted  []hclspec.Question
	asked   map[hclspec.Question]bool // those that are wanted
}

// Open is the cache in a file, which is read when the first question comes and need not be there.
func Open(path string) *Cache {
	return &Cache{path: path, answers: map[hclspec.Question]hclspec.Answer{}, passing: map[hclspec.Question]hclspec.Answer{}, asked: map[hclspec.Question]bool{}}
}

// Ask answers a question; false: nobody knows yet, and Wanted has it.
func (c *Cache) Ask(q hclspec.Question) (hclspec.Answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.read {
		c.read = true
		c.load()
	}
	if a, ok := c.passing[q]; ok {
		return a, true
	}
	if a, ok := c.answers[anywhere(q)]; ok {
		return a, true
	}
	if !c.asked[q] {
		c.asked[q] = true
		c.wanted = append(c.wanted, q)
	}
	return hclspec.Answer{}, false
}

// anywhere is the question without the repo: of a commit it is the same in each.
func anywhere(q hclspec.Question) hclspec.Question {
	q.Repo = ""
	return q
}

// Wanted are the questions without an answer since the last call, each once, in the order in which they were asked.
func (c *Cache) Wanted() []hclspec.Question {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := c.wanted
	c.wanted, c.asked = nil, map[hclspec.Question]bool{}
	return wanted
}

// Keep keeps an answer that is good for ever.
func (c *Cache) Keep(q hclspec.Question, a hclspec.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[anywhere(q)] = a
}

// Pass keeps an answer for the rest of this process.
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

// load reads the file: its SHA-256, and a line for each answer. One that is damaged has nothing to say.
func (c *Cache) load() {
	f, err := os.Open(c.path)
	if err != nil {
		return
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil || len(text) > maxFile {
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

// Save writes the answers that are good for ever. The file is replaced whole.
func (c *Cache) Save() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.path == "" {
		return nil
	}
	var lines bytes.Buffer
	e := json.NewEncoder(&lines)
	for q, a := range c.answers {
		if err := e.Encode(line{q, a}); err != nil {
			return fmt.Errorf("history: %w", err)
		}
		if lines.Len() > maxFile-100 {
			return nil // the file stays as it is
		}
	}
	sum := sha256.Sum256(lines.Bytes())
	f, err := os.CreateTemp(filepath.Dir(c.path), filepath.Base(c.path)+".*.new")
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	_, err = fmt.Fprintf(f, "%s\n%s", hex.EncodeToString(sum[:]), lines.Bytes())
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), c.path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
		return fmt.Errorf("history: %w", err)
	}
	return nil
}
