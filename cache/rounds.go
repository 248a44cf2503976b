package cache

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// rounds is the group commit of a file system: while it is being synced, those who come later wait for the next round, in
// which one sync is enough for all of them. Under load a result thus costs a part of a sync instead of several.
type rounds struct {
	dir    *os.File // any of the file system
	device uint64
	sync   func(*os.File) error // of the whole file system

	mu   sync.Mutex
	next *round // not begun yet; nil: nobody waits for it
	busy bool   // a goroutine is at it
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
	return &rounds{dir: dir, device: device, sync: syncAll}, err
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
		g.mu.Lock()
		now := g.next
		g.next = nil
		g.busy = now != nil
		g.mu.Unlock()
		if now == nil {
			return
		}
		if err := g.sync(g.dir); err != nil {
			now.err = fmt.Errorf("sync %s: %w", g.dir.Name(), err)
		}
		close(now.over)
	}
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

// durable makes a log durable, and all else that was written to the store so far: together with all who wait for the same,
// or, where the file system cannot do that, by syncing each of the files.
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
