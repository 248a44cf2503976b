package cache

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// gather is how long the disk is left alone after a round for others to join the next one, if any are on their way: a
// sync costs the processors, too, and meanwhile others cannot make files.
const gather = 10 * time.Millisecond

// rounds is the group commit of a file system: while it is being synced, those who come later wait for the next round,
// in which one sync is enough for all of them. Under load a result thus costs a part of a sync instead of several.
type rounds struct {
	dir    *os.File // any of the file system
	device uint64
	sync   func(*os.File) error // of the whole file system

	mu   sync.Mutex
	next *round        // not begun yet; nil: nobody waits for it
	busy bool          // a goroutine is at it
	more bool          // others are on their way
	ease chan struct{} // holds a value when more became false

	rested time.Time // until when the disk is left alone if more; only run uses it
}

type round struct {
	over chan struct{}
	err  error
}

// openRounds returns the rounds of the file system that holds dir; nil where files must be synced one by one.
func openRounds(dir *os.File) (*rounds, error) {
	if !syncsWhole(dir) {
		return nil, nil
	}
	device, err := deviceOf(dir)
	return newRounds(dir, device, syncAll), err
}

func newRounds(dir *os.File, device uint64, sync func(*os.File) error) *rounds {
	return &rounds{dir: dir, device: device, sync: sync, ease: make(chan struct{}, 1)}
}

// expect says whether others are on their way who will wait.
func (g *rounds) expect(more bool) {
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

// wait returns when all that was written to the file system before the call is durable.
func (g *rounds) wait() error {
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

// run syncs as long as somebody waits.
func (g *rounds) run() {
	for {
		now := g.begin()
		if now == nil {
			return
		}
		if err := g.sync(g.dir); err != nil {
			now.err = fmt.Errorf("sync %s: %w", g.dir.Name(), err)
		}
		g.rested = time.Now().Add(gather)
		close(now.over)
	}
}

// begin is the next round, which nobody joins any more; nil when nobody waits.
func (g *rounds) begin() *round {
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

// covers says whether a sync of the file system makes f durable.
func (g *rounds) covers(f *os.File) bool {
	device, err := deviceOf(f)
	return err == nil && device == g.device
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

// durable makes a log durable, and all else that was written to the store so far: together with all who wait for the
// same, or, where the file system cannot do that, by syncing each of the files.
func (d *Disk) durable(log *os.File, each func() error) error {
	var err error
	if log != nil && (d.rounds == nil || !d.rounds.covers(log)) {
		err = log.Sync()
	}
	switch {
	case d.rounds != nil:
		err = errors.Join(err, d.rounds.wait())
	case each != nil:
		err = errors.Join(err, each())
	}
	return err
}

// Expect says whether more results are on their way. If so, those who wait for the disk wait a moment longer, for
// others to share their sync.
func (d *Disk) Expect(more bool) {
	if d.rounds != nil {
		d.rounds.expect(more)
	}
}
