//go:build unix

// Package wish lets the pools of several processes on a machine see each other's waiting requests, so that none takes
// devices for which another has waited longer.
package wish

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// Wish is a request for several devices that leases of other processes keep from a pool. It is a file beside the locks
// of the devices, and its pool holds a lock on it: the wish of a killed process ends with the process. The modification
// time says when the pool asked last.
type Wish struct {
	PID     int       `json:"pid"`
	Count   int       `json:"count"`
	Since   time.Time `json:"since"`
	Devices []string  `json:"devices"` // UUIDs of suitable devices

	request any // of the board's own wish
	file    *os.File
	path    string
	asked   time.Time
}

const (
	lapses = 10 * time.Second // after the last request of its pool, which then has no slot for the node
	renews = time.Second
	most   = 1000     // largest number of wishes read
	length = 64 << 10 // largest size of a wish, in bytes
)

// Board shows a pool the wishes of others, and holds at most one wish of its own. It is not safe for concurrent use.
type Board struct {
	dir, prefix string
	own         *Wish
}

// NewBoard returns the board of the wishes in files whose paths begin with prefix.
func NewBoard(prefix string) *Board {
	return &Board{dir: filepath.Dir(prefix), prefix: filepath.Base(prefix)}
}

// Make makes a wish for count of some devices, or renews the existing wish for the same request (compared with ==).
// If the wish cannot be written, the request must find its devices free.
func (b *Board) Make(request any, count int, devices []string) {
	now := time.Now()
	if b.own != nil && now.Sub(b.own.asked) >= lapses {
		b.Close()
	}
	if b.own != nil {
		if b.own.request == request && now.Sub(b.own.asked) >= renews {
			b.own.asked = now
			_ = os.Chtimes(b.own.path, now, now)
		}
		return
	}
	w := &Wish{PID: os.Getpid(), Count: count, Since: now, Devices: devices, request: request, asked: now}
	text, err := json.Marshal(w)
	if err != nil {
		return
	}
	if w.file, err = os.CreateTemp(b.dir, b.prefix); err != nil {
		return
	}
	w.path, b.own = w.file.Name(), w
	_, err = w.file.Write(text)
	err = errors.Join(err, w.file.Chmod(0o644), os.Chtimes(w.path, now, now), fs.TryLock(w.file, fs.Exclusive))
	if err != nil {
		b.Close()
	}
}

// End ends the wish of a granted request.
func (b *Board) End(request any) {
	if b.own != nil && b.own.request == request {
		b.Close()
	}
}

// Close ends the board's own wish.
func (b *Board) Close() {
	if b.own != nil {
		_ = os.Remove(b.own.path)
		_ = b.own.file.Close()
		b.own = nil
	}
}

// Older returns the wishes of others that come before a request, by the UUIDs of their devices. A request without a
// wish is younger than every wish.
func (b *Board) Older(request any) map[string]*Wish {
	older := map[string]*Wish{}
	f, err := os.Open(b.dir)
	if err != nil {
		return older // the locks of the devices report the error
	}
	defer f.Close()
	names, _ := f.Readdirnames(most)
	for _, name := range names {
		path := filepath.Join(b.dir, name)
		if !strings.HasPrefix(name, b.prefix) || b.own != nil && b.own.path == path {
			continue
		}
		w := read(path)
		if w == nil || b.own != nil && b.own.request == request && b.own.before(w) {
			continue
		}
		for _, uuid := range w.Devices {
			if first := older[uuid]; first == nil || w.before(first) {
				older[uuid] = w
			}
		}
	}
	return older
}

func (w *Wish) before(other *Wish) bool {
	return w.Since.Before(other.Since) || w.Since.Equal(other.Since) && w.path < other.path
}

// read returns the wish in a file; nil if the wish has ended or lapsed. Any user may have written the file.
func read(path string) *Wish {
	f, info, err := fs.OpenRegular(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	lapsed := time.Since(info.ModTime()) >= lapses
	if !fs.Held(fs.TryLock(f, fs.Shared)) { // its process has ended or is still writing it
		if lapsed {
			_ = os.Remove(path)
		}
		return nil
	}
	w := &Wish{path: path}
	text, err := fs.ReadAll(f, length)
	if lapsed || err != nil || json.Unmarshal(text, w) != nil || w.Count < 2 {
		return nil
	}
	return w
}
