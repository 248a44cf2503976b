// Package again keeps which results of nodes jobs are to make again. The shared store changes no entry, so that such a
// job leaves its result under another name, from which the apply takes it.
package again

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Mark says that the result of a key is to be made again. The mark is there before the job is submitted, so that an
// apply after one that was killed follows that job, and takes no other result for that of the job.
type Mark struct {
	Key      cache.Key `json:"key"`
	Round    string    `json:"round"`    // part of the names of the job and its result: no other round has the same
	Replaces string    `json:"replaces"` // the attempt that made the result which is there
}

// Due reports whether the result of the mark is still to be made, or to be taken: the one that is there is the old one.
func (m Mark) Due(there cache.Meta) bool { return m.Key == there.Key && m.Replaces == there.Log }

// Marks are those of a project. Who holds the lock of applies changes them.
type Marks struct {
	Dir string // holds a file for each
}

func (m Marks) file(key cache.Key) string { return filepath.Join(m.Dir, key.String()) }

// Of returns the mark of a key; false if there is none.
func (m Marks) Of(key cache.Key) (mark Mark, ok bool) {
	text, err := fs.ReadOwn(m.file(key))
	if err != nil || json.Unmarshal(text, &mark) != nil {
		return Mark{}, false
	}
	return mark, mark.Key == key && mark.Round != ""
}

// All returns all marks, by key.
func (m Marks) All() map[cache.Key]Mark {
	all := map[cache.Key]Mark{}
	names, _ := os.ReadDir(m.Dir) // usually there is none
	for _, name := range names {
		if key, err := cache.ParseKey(name.Name()); err == nil {
			if mark, ok := m.Of(key); ok {
				all[key] = mark
			}
		}
	}
	return all
}

// Begin marks that a result is to be made again. A mark that is due stays.
func (m Marks) Begin(key cache.Key, old cache.Meta) (Mark, error) {
	if mark, ok := m.Of(key); ok && mark.Replaces == old.Log {
		return mark, nil
	}
	round := make([]byte, 8)
	_, _ = rand.Read(round) // never fails
	mark := Mark{key, hex.EncodeToString(round), old.Log}
	text, err := json.Marshal(mark)
	if err == nil {
		err = os.MkdirAll(m.Dir, 0o700)
	}
	if err == nil {
		err = fs.Replace(m.file(key), text)
	}
	return mark, err
}

// End removes the mark of a key.
func (m Marks) End(key cache.Key) error {
	if err := os.Remove(m.file(key)); !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	return nil
}

// Sweep removes the marks that are not due, and returns the others. A mark whose node is not planned now stays for a
// while.
func (m Marks) Sweep(due func(Mark) (due, known bool), within time.Duration) (map[cache.Key]Mark, error) {
	all := m.All()
	var errs []error
	for key, mark := range all {
		due, known := due(mark)
		info, err := os.Lstat(m.file(key))
		if due || !known && err == nil && time.Since(info.ModTime()) < within {
			continue
		}
		delete(all, key)
		errs = append(errs, m.End(key))
	}
	return all, errors.Join(errs...)
}
