package memo

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/cores"
)

// results is the part of a store that a memo asks.
type results interface {
	Intact(o *cache.Outline, use bool) bool
	Absent(keys, contents []cache.Key) bool
}

// checker compares a memo with the present state of the project and the store.
type checker struct {
	dir   string // project's directory, absolute
	hash  func(ctx context.Context, file string) (cache.Hashed, error)
	store results

	refreshed atomic.Bool // part of the memo was out of date and has been renewed
	root      *os.File    // dir
	now       time.Time
}

// newChecker returns a checker for the project in a directory. The caller must close it.
func newChecker(dir string, hash func(context.Context, string) (cache.Hashed, error), store results) (*checker, error) {
	root, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return &checker{dir: dir, hash: hash, store: store, root: root, now: time.Now()}, nil
}

// close closes the project's directory.
func (c *checker) close() error { return c.root.Close() }

// world reports whether everything that the plan as a whole depends on is unchanged.
func (c *checker) world(ctx context.Context, m *memo) bool {
	var changed atomic.Bool
	each(len(m.World), func(i int) {
		if !changed.Load() && !c.same(ctx, &m.World[i]) {
			changed.Store(true)
		}
	})
	return !changed.Load() && ctx.Err() == nil
}

// changed reports for each node whether it must be planned again: a file that the node reads has changed, the node's
// result is not intact, or a node that it waits for must be planned again. ok is false if a file is no longer a regular
// file; then the whole project must be planned.
func (c *checker) changed(ctx context.Context, m *memo) (changed []bool, ok bool) {
	files, entries := make([]bool, len(m.Files)), make([]bool, len(m.Nodes))
	use := m.unused(c.now)
	var gone atomic.Bool
	each(len(m.Files)+len(m.Nodes), func(i int) {
		if i >= len(m.Files) {
			n := &m.Nodes[i-len(m.Files)]
			entries[i-len(m.Files)] = !n.stands() || n.Digest != "" && !c.store.Intact(&n.Entry, use)
			return
		}
		f := &m.Files[i]
		if files[i] = !c.same(ctx, f); files[i] {
			if _, _, err := cache.StampFile(c.root, f.Path); err != nil {
				gone.Store(true)
			}
		}
	})
	if use {
		m.Used = c.now
		c.refreshed.Store(true)
	}
	for i := range m.Nodes {
		n := &m.Nodes[i]
		for _, f := range n.Files {
			entries[i] = entries[i] || files[f]
		}
		for _, list := range [...][]int32{n.Needs, n.Order, n.After} {
			for _, dep := range list {
				entries[i] = entries[i] || entries[dep]
			}
		}
	}
	return entries, !gone.Load() && ctx.Err() == nil
}

// still reports whether nodes without a result can stand: the store has no entry under the keys that were looked up for
// them, and the entries in s.Gone are intact.
func (c *checker) still(s *still) bool {
	return c.store.Absent(s.Keys, s.Contents) && !slices.ContainsFunc(s.Gone, func(g gone) bool {
		return !c.store.Intact(&g.Entry, true)
	})
}

// same reports whether a thing is unchanged. It renews the stamp of a file whose bytes are the same.
func (c *checker) same(ctx context.Context, t *thing) bool {
	switch t.Is {
	case regularFile, nothing:
		_, _, err := cache.StampFile(c.root, t.Path)
		return (err == nil) == (t.Is == regularFile)
	case directory:
		stamp, ok := stampDir(t.Path)
		return ok && stamp == t.Stamp && stamp.Settled(c.now)
	}
	stamp, mode, err := cache.StampFile(c.root, t.Path)
	if err != nil || cache.Executable(mode) != t.Exec {
		return false
	}
	if stamp == t.Stamp && stamp.Settled(c.now) {
		return true
	}
	path := t.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.dir, path)
	}
	h, err := c.hash(ctx, path)
	if err != nil || h.SHA256 != t.SHA256 || cache.Executable(h.Mode) != t.Exec {
		return false
	}
	if h.Settled {
		t.Stamp = h.Stamp // only one goroutine checks each thing
		c.refreshed.Store(true)
	}
	return true
}

func fileThing(path string, h cache.Hashed) thing {
	t := thing{Path: path, Is: file, SHA256: h.SHA256, Exec: cache.Executable(h.Mode)}
	if h.Settled {
		t.Stamp = h.Stamp
	}
	return t
}

// directoryThing returns a directory whose names were listed at the time listed or later. It returns false if the
// directory has changed since, or so shortly before that its stamp cannot tell.
func directoryThing(path string, listed time.Time) (thing, bool) {
	stamp, ok := stampDir(path)
	return thing{Path: path, Is: directory, Stamp: stamp}, ok && stamp.Settled(listed)
}

func stampDir(path string) (cache.Stamp, bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return cache.Stamp{}, false
	}
	return cache.StampOf(&st), true
}

// each calls do for each number below n, on all cores.
func each(n int, do func(int)) {
	cores.Share(n, 64, func(from, to int) {
		for i := from; i < to; i++ {
			do(i)
		}
	})
}
