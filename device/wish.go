//go:build unix

package device

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// wish is a request for several devices that leases of other processes keep from a pool. It is a file beside the locks
// of the devices, and its pool holds a lock on it: the wish of a killed process ends with the process. The modification
// time says when the pool asked last. Pools grant no device of an older wish, so that its devices get free together.
type wish struct {
	PID     int       `json:"pid"`
	Count   int       `json:"count"`
	Since   time.Time `json:"since"`
	Devices []string  `json:"devices"` // UUIDs of those that suit

	want  GPUs // of the pool's own wish
	file  *os.File
	path  string
	asked time.Time
}

const (
	wishLapses = 10 * time.Second // after the last request of its pool, which has no slot for the node then
	wishRenews = time.Second
	wishName   = "wish-"
	mostWishes = 1000
)

// wishes returns the directory of the wishes of the host, and the prefix of their names.
func (h *hostLock) wishes() (dir, prefix string) {
	if h.gpus != "" {
		return h.gpus, wishName
	}
	return filepath.Dir(h.path), filepath.Base(h.path) + "." + wishName
}

// makeWish makes a wish, or renews the one that stands. A pool has one wish at a time. If a wish cannot be written, the
// request has to find its devices free.
func (h *hostLock) makeWish(want GPUs, suitable []Device) {
	now := time.Now()
	if h.wish != nil && now.Sub(h.wish.asked) >= wishLapses {
		h.endWish()
	}
	if h.wish != nil {
		if h.wish.want == want && now.Sub(h.wish.asked) >= wishRenews {
			h.wish.asked = now
			_ = os.Chtimes(h.wish.path, now, now)
		}
		return
	}
	w := &wish{PID: os.Getpid(), Count: want.Count, Since: now, want: want, asked: now}
	for _, d := range suitable {
		w.Devices = append(w.Devices, d.UUID)
	}
	text, err := json.Marshal(w)
	if err != nil {
		return
	}
	dir, prefix := h.wishes()
	if w.file, err = os.CreateTemp(dir, prefix); err != nil {
		return
	}
	w.path, h.wish = w.file.Name(), w
	_, err = w.file.Write(text)
	err = errors.Join(err, w.file.Chmod(0o644), os.Chtimes(w.path, now, now), fs.TryLock(w.file, fs.Exclusive))
	if err != nil {
		h.endWish()
	}
}

// endWish ends the pool's own wish.
func (h *hostLock) endWish() {
	if h.wish != nil {
		_ = os.Remove(h.wish.path)
		_ = h.wish.file.Close()
		h.wish = nil
	}
}

// olderWishes returns the wishes that come before a request, by the UUIDs of their devices. A request without a wish is
// younger than every wish.
func (h *hostLock) olderWishes(want GPUs) map[string]*wish {
	older := map[string]*wish{}
	add := func(w *wish) {
		if own := h.wish; own != nil && own.want == want {
			if own == w || own.Since.Before(w.Since) || own.Since.Equal(w.Since) && own.path < w.path {
				return
			}
		}
		for _, uuid := range w.Devices {
			if first := older[uuid]; first == nil || w.Since.Before(first.Since) {
				older[uuid] = w
			}
		}
	}
	if h.wish != nil && time.Since(h.wish.asked) < wishLapses {
		add(h.wish)
	}
	dir, prefix := h.wishes()
	f, err := os.Open(dir)
	if err != nil {
		return older // the locks of the devices report the error
	}
	defer f.Close()
	names, _ := f.Readdirnames(mostWishes)
	for _, name := range names {
		path := filepath.Join(dir, name)
		if strings.HasPrefix(name, prefix) && (h.wish == nil || h.wish.path != path) {
			if w := readWish(path); w != nil {
				add(w)
			}
		}
	}
	return older
}

// readWish returns the wish in a file; nil if the wish has ended or lapsed. Any user may have written the file.
func readWish(path string) *wish {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	lapsed := time.Since(info.ModTime()) >= wishLapses
	if !fs.Held(fs.TryLock(f, fs.Shared)) { // its process has ended, or begins to write it
		if lapsed {
			_ = os.Remove(path)
		}
		return nil
	}
	if lapsed {
		return nil
	}
	w := &wish{path: path}
	if text, err := io.ReadAll(io.LimitReader(f, maxNote)); err != nil || json.Unmarshal(text, w) != nil ||
		w.Count < 2 {
		return nil
	}
	return w
}

// String says for which process devices are kept.
func (w *wish) String() string {
	p := Process{PID: w.PID}
	p.identify()
	return fmt.Sprintf("kept for %s, which waits for %d devices since %s",
		Holder{PID: p.PID, User: p.User, Program: p.Name}, w.Count, w.Since.Local().Format(time.DateTime))
}
