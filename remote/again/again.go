// Package again keeps marks of results that jobs make again. The shared store changes no entry, so such a job leaves
// its result under another name, from which the apply takes it.
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

// Mark says that the result of a key must be made again. The mark is written before the job is submitted: if the apply
// is killed, the next one follows that job, and takes no other result for that of the job.
type Mark struct {
	Key      cache.Key `json:"key"`
	Round    string    `json:"round"`    // unique part of the names of the job and its result
	Replaces string    `json:"replaces"` // ID of the attempt that made the present result
}

// Due reports whether there, the present result, is still the old one: the new result must still be made or taken.
func (m Mark) Due(there cache.Meta) bool { return m.Key == there.Key && m.Replaces == there.Log }

// Marks are the marks of a project. Only the holder of the lock of applies changes them.
type Marks struct {
	Dir string // has a file for each mark
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
	names, _ := os.ReadDir(m.Dir) // usually missing
	for _, name := range names {
		if key, err := cache.ParseKey(name.Name()); err == nil {
			if mark, ok := m.Of(key); ok {
				all[key] = mark
			}
		}
	}
	return all
}

// Begin marks a result to be made again. If a due mark exists, Begin returns that one.
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

// Sweep removes the marks that are not due, and returns the others. A mark whose node is not in the plan stays for the
// time within.
func (m Marks) Sweep(state func(Mark) (due, known bool), within time.Duration) (map[cache.Key]Mark, error) {
	all := m.All()
	var errs []error
	for key, mark := range all {
		due, known := state(mark)
		info, err := os.Lstat(m.file(key))
		if due || !known && err == nil && time.Since(info.ModTime()) < within {
			continue
		}
		delete(all, key)
		errs = append(errs, m.End(key))
	}
	return all, errors.Join(errs...)
}
