// Package rounds lets callers that wait for the same disk share its syncs.
package rounds

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// Gather is how long the disk rests after a round if more callers are on their way, so that they can join the next
// round: a sync costs the processors, too, and keeps others from making files.
const Gather = 10 * time.Millisecond

// Rounds is the group commit of a file system. While a sync is running, callers that come later wait for the next
// round, in which one sync serves all of them. So under load, a result costs a part of a sync instead of several.
type Rounds struct {
	dir    *os.File // any directory of the file system
	Device uint64
	sync   func(*os.File) error // of the whole file system

	mu   sync.Mutex
	next *round        // has not begun yet; nil: nobody waits for it
	busy bool          // the goroutine run is running
	more bool          // more callers are on their way
	ease chan struct{} // holds a value when more became false

	rested time.Time // when the disk may be synced again, if more; only run uses it
}

type round struct {
	over chan struct{}
	err  error
}

// Open returns the Rounds of the file system of dir, or nil if files of that file system must be synced one by one.
func Open(dir *os.File) (*Rounds, error) {
	if !syncsWhole(dir) {
		return nil, nil
	}
	device, err := deviceOf(dir)
	return New(dir, device, fs.SyncAll), err
}

func New(dir *os.File, device uint64, sync func(*os.File) error) *Rounds {
	return &Rounds{dir: dir, Device: device, sync: sync, ease: make(chan struct{}, 1)}
}

// Expect tells the rounds whether more callers are on their way.
func (g *Rounds) Expect(more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.more = more
	if !more {
		select {
		case g.ease <- struct{}{}:
		default:
		}
	}
}

// Wait returns when everything that was written to the file system before the call is durable.
func (g *Rounds) Wait() error {
	g.mu.Lock()
	if g.next == nil {
		g.next = &round{over: make(chan struct{})}
	}
	mine := g.next
	if !g.busy {
		g.busy = true
		go g.run()
	}
	g.mu.Unlock()
	<-mine.over
	return mine.err
}

// run syncs as long as a caller waits.
func (g *Rounds) run() {
	for {
		now := g.begin()
		if now == nil {
			return
		}
		if err := g.sync(g.dir); err != nil {
			now.err = fmt.Errorf("sync %s: %w", g.dir.Name(), err)
		}
		g.rested = time.Now().Add(Gather)
		close(now.over)
	}
}

// begin returns the next round and closes it to further callers; nil if nobody waits.
func (g *Rounds) begin() *round {
	for {
		g.mu.Lock()
		rest := time.Until(g.rested)
		if g.next == nil || !g.more || rest <= 0 {
			break
		}
		g.mu.Unlock()
		select {
		case <-g.ease:
		case <-time.After(rest):
		}
	}
	defer g.mu.Unlock()
	now := g.next
	g.next, g.busy = nil, now != nil
	return now
}

// Covers reports whether a sync of the file system makes f durable.
func (g *Rounds) Covers(f *os.File) bool {
	device, err := deviceOf(f)
	return err == nil && device == g.Device
}

func deviceOf(f *os.File) (uint64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("%s: the device of its file system is not known", f.Name())
	}
	return uint64(st.Dev), nil
}
