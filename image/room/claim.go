package room

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// claims keep the applies of one user from removing each other's images. Each apply holds a shared lock on a file for
// every image that it needs; the removal of an image takes an exclusive lock. The kernel releases the locks of a
// process that dies.
type claims struct {
	dir   string // empty: no claims
	files map[string]*os.File
}

// want claims exactly these images. An image that cannot be claimed is being removed: the step that needs it will
// notice.
func (c *claims) want(ids map[string]bool) {
	for id, f := range c.files {
		if !ids[id] {
			f.Close()
			delete(c.files, id)
		}
	}
	for id := range ids {
		if c.files[id] == nil {
			if f := c.lock(id, fs.Shared); f != nil {
				c.files[id] = f
			}
		}
	}
}

// alone takes an image that no other apply claims, until release is called; ok is false if another apply claims it.
func (c *claims) alone(id string) (release func(), ok bool) {
	if c.dir == "" {
		return func() {}, true
	}
	f := c.lock(id, fs.Exclusive)
	if f == nil {
		return nil, false
	}
	return func() {
		_ = os.Remove(f.Name()) // the file exists only for the lock
		f.Close()
	}, true
}

// lock locks the file of an image, or returns nil.
func (c *claims) lock(id string, how fs.LockKind) *os.File {
	if c.dir == "" || os.MkdirAll(c.dir, 0o755) != nil {
		return nil
	}
	path := filepath.Join(c.dir, strings.TrimPrefix(id, "sha256:"))
	for {
		f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|unix.O_NOFOLLOW, 0o644)
		if err != nil {
			return nil
		}
		if fs.TryLock(f, how) != nil {
			f.Close()
			return nil
		}
		if fs.IsAt(f, path) {
			return f
		}
		f.Close() // the previous holder has removed the file
	}
}
