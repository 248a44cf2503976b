package download

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// Lifetime of kept answers, and size of their file.
const (
	answerLife = time.Hour       // of a server's answer about a file
	deadLife   = 2 * time.Minute // of the record of a silent host
	maxKept    = 32 << 20        // bytes
)

// kept holds the answers to earlier questions, of this process and of others.
type kept struct {
	path  string
	clock func() time.Time

	mu    sync.Mutex
	read  bool
	dirty bool
	book  book
}

// book is the content of the file. URLs may contain passwords, so only their SHA-256 is stored.
type book struct {
	Format  int                  `json:"format"`
	Answers map[string]keptHead  `json:"answers"` // by SHA-256 of the URL
	Dead    map[string]keptDeath `json:"dead"`    // by host
}

type keptHead struct {
	At     time.Time `json:"at"`
	Status int       `json:"status,omitempty"` // status of the refusal; 0: the file exists
	Size   int64     `json:"size"`
	ETag   string    `json:"etag,omitempty"`
	Ranges bool      `json:"ranges,omitempty"`
}

type keptDeath struct {
	At  time.Time `json:"at"`
	Why string    `json:"why"`
}

const bookFormat = 1

// load reads the file once. A missing or damaged file, or one of another format, counts as empty.
func (k *kept) load() {
	if k.read {
		return
	}
	k.read = true
	k.book = readBook(k.path, k.clock())
}

// readBook reads the answers in a file that are still valid.
func readBook(path string, now time.Time) book {
	data, _ := fs.ReadFile(path, maxKept) // an unreadable file counts as empty
	return parseBook(data, now)
}

// parseBook returns the answers that are still valid.
func parseBook(data []byte, now time.Time) book {
	b := book{}
	if json.Unmarshal(data, &b) != nil || b.Format != bookFormat {
		b = book{}
	}
	fresh := book{Format: bookFormat, Answers: map[string]keptHead{}, Dead: map[string]keptDeath{}}
	for id, h := range b.Answers {
		if live(h.At, now, answerLife) {
			fresh.Answers[id] = h
		}
	}
	for host, d := range b.Dead {
		if live(d.At, now, deadLife) {
			fresh.Dead[host] = d
		}
	}
	return fresh
}

// live reports whether a record of a time is still valid. A record from the future is not.
func live(at, now time.Time, life time.Duration) bool {
	age := now.Sub(at)
	return age >= 0 && age < life
}

// answer returns the recent answer of a server about a URL. shown is the URL for messages.
func (k *kept) answer(url, shown string) (Info, error, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.load()
	h, ok := k.book.Answers[identity(url)]
	if !ok || !live(h.At, k.clock(), answerLife) {
		return Info{}, nil, false
	}
	if h.Status != 0 {
		return Info{}, &Refused{URL: shown, Status: h.Status}, true
	}
	return Info{Size: h.Size, ETag: h.ETag, AcceptRanges: h.Ranges}, nil, true
}

// keep records a server's answer about a URL; refused is nil if the file exists.
func (k *kept) keep(url string, info Info, refused *Refused) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.load()
	h := keptHead{At: k.clock(), Size: info.Size, ETag: info.ETag, Ranges: info.AcceptRanges}
	if refused != nil {
		h = keptHead{At: k.clock(), Status: refused.Status}
	}
	k.book.Answers[identity(url)] = h
	k.dirty = true
}

// dead returns why a host is not asked now; nil: it may be asked.
func (k *kept) dead(host string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.load()
	d, ok := k.book.Dead[host]
	if !ok || !live(d.At, k.clock(), deadLife) {
		return nil
	}
	return fmt.Errorf("the host did not answer at %s (%s), and is asked again after %s", d.At.Format(time.TimeOnly),
		d.Why, d.At.Add(deadLife).Format(time.TimeOnly))
}

func (k *kept) keepDead(host string, why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.load()
	k.book.Dead[host] = keptDeath{k.clock(), why.Error()}
	k.dirty = true
}

// save writes the file atomically. It keeps answers that other processes have written meanwhile.
func (k *kept) save() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.dirty || k.path == "" {
		return nil
	}
	all := readBook(k.path, k.clock())
	for id, h := range k.book.Answers {
		if other, ok := all.Answers[id]; !ok || other.At.Before(h.At) {
			all.Answers[id] = h
		}
	}
	for host, d := range k.book.Dead {
		if other, ok := all.Dead[host]; !ok || other.At.Before(d.At) {
			all.Dead[host] = d
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := fs.Replace(k.path, text); err != nil {
		return fmt.Errorf("answers of hosts: %w", err)
	}
	k.dirty = false
	return nil
}
