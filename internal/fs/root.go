package fs

import (
	"io/fs"
	"os"
	"strings"
	"sync"
)

// step is the number of levels between directories that are kept open.
const step = 32

// Root is an os.Root for walking a tree. An os.Root opens every directory on the way to a name, so a walk through
// nested directories takes quadratic time in their depth. A Root keeps directories on the way to the last name open
// and continues at the nearest one. It is safe for concurrent use.
//
// Stat and the other methods of os.Root follow links.
type Root struct {
	*os.Root
	mu   sync.Mutex
	open []opened // each within the one before
}

// opened is an open directory.
type opened struct {
	prefix string // its name and a slash
	root   *os.Root
}

// OpenRoot opens a directory.
func OpenRoot(dir string) (*Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Root{Root: root}, nil
}

// Close closes the directory and all directories that are kept open.
func (r *Root) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.back("")
	return r.Root.Close()
}

// back closes directories that are not on the way to a name.
func (r *Root) back(name string) {
	for n := len(r.open) - 1; n >= 0 && !strings.HasPrefix(name, r.open[n].prefix); n-- {
		r.open[n].root.Close()
		r.open = r.open[:n]
	}
}

// at calls f with the nearest open parent directory of a name, and the rest of the name.
func (r *Root) at(name string, f func(*os.Root, string) error) error {
	if strings.Count(name, "/") < step {
		return f(r.Root, name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.back(name)
	root, rest := r.Root, name
	if n := len(r.open); n > 0 {
		root, rest = r.open[n-1].root, name[len(r.open[n-1].prefix):]
	}
	for strings.Count(rest, "/") >= step {
		end := 0
		for range step {
			end += strings.IndexByte(rest[end:], '/') + 1
		}
		next, err := root.OpenRoot(rest[:end-1])
		if err != nil {
			return err
		}
		r.open = append(r.open, opened{name[:len(name)-len(rest)+end], next})
		root, rest = next, rest[end:]
	}
	return f(root, rest)
}

// Open opens a file or a directory.
func (r *Root) Open(name string) (f *os.File, err error) { return r.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile opens a file as os.OpenFile does.
func (r *Root) OpenFile(name string, flag int, perm fs.FileMode) (f *os.File, err error) {
	err = r.at(name, func(root *os.Root, name string) error {
		f, err = root.OpenFile(name, flag, perm)
		return err
	})
	return f, err
}

// Lstat describes a file without following a link.
func (r *Root) Lstat(name string) (info fs.FileInfo, err error) {
	err = r.at(name, func(root *os.Root, name string) error {
		info, err = root.Lstat(name)
		return err
	})
	return info, err
}

// Readlink returns the target of a link.
func (r *Root) Readlink(name string) (target string, err error) {
	err = r.at(name, func(root *os.Root, name string) error {
		target, err = root.Readlink(name)
		return err
	})
	return target, err
}

// Chmod changes the mode of a file, which must not be a link.
func (r *Root) Chmod(name string, mode fs.FileMode) error {
	return r.at(name, func(root *os.Root, name string) error { return root.Chmod(name, mode) })
}

// Remove removes a file or an empty directory.
func (r *Root) Remove(name string) error {
	return r.at(name, func(root *os.Root, name string) error { return root.Remove(name) })
}
