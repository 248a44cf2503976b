// Package tree keeps what is written of a foreign tree inside one directory.
package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Escapes says that a tree holds a path or a link that leads out of it.
type Escapes struct {
	Path   string
	Target string // of the link; empty: the path itself is at fault
}

func (e *Escapes) Error() string {
	if e.Target == "" {
		return fmt.Sprintf("path %q: leads out of the tree, or into .git", e.Path)
	}
	return fmt.Sprintf("link %q: its target %q leads out of the tree", e.Path, e.Target)
}

const maxLinkSteps = 255

// StaysInside says whether a link leads to a place inside the tree, given where all its links lead. It follows the link the way the system would, through the other links of the tree: "a/../x" leads elsewhere
// when a is a link. A link that leads nowhere, or in a circle, leads nowhere outside.
func StaysInside(link string, targets map[string]string) bool {
	todo := strings.Split(link, "/")
	var at []string
	for steps := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(at) == 0 {
				return false
			}
			at = at[:len(at)-1]
			continue
		}
		at = append(at, part)
		target, ok := targets[strings.Join(at, "/")]
		if !ok {
			continue
		}
		if steps++; steps > maxLinkSteps {
			return true
		}
		if strings.HasPrefix(target, "/") || strings.ContainsRune(target, 0) {
			return false
		}
		at = at[:len(at)-1]
		todo = append(strings.Split(target, "/"), todo...)
	}
	return true
}

// Inside says whether a path of a tree names a place inside it that is not git's own.
func Inside(p string) bool {
	if !fs.ValidPath(p) || p == "." || strings.ContainsRune(p, 0) {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if strings.EqualFold(part, ".git") {
			return false
		}
	}
	return true
}

// Writer writes files below one directory and nowhere else. It follows no link that it finds there out of it, and
// overwrites nothing.
type Writer struct {
	root *os.Root
	made map[string]bool
}

// NewWriter opens a directory, which is made if it is missing.
func NewWriter(dir string) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Writer{root: root, made: map[string]bool{".": true}}, nil
}

// Close ends the writing.
func (w *Writer) Close() error { return w.root.Close() }

// Dir makes a directory and those above it.
func (w *Writer) Dir(dir string) error {
	if w.made[dir] {
		return nil
	}
	if !Inside(dir) {
		return &Escapes{Path: dir}
	}
	if err := w.Dir(path.Dir(dir)); err != nil {
		return err
	}
	if err := w.root.Mkdir(dir, 0o755); err != nil {
		return err
	}
	w.made[dir] = true
	return nil
}

// File writes size bytes of r to a file with exactly these permissions.
func (w *Writer) File(name string, perm fs.FileMode, size int64, r io.Reader) error {
	if err := w.Dir(path.Dir(name)); err != nil {
		return err
	}
	f, err := w.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, r, size)
	if err == nil {
		err = f.Chmod(perm) // whatever the umask says
	}
	return errors.Join(err, f.Close())
}

// Link makes a symbolic link.
func (w *Writer) Link(name, target string) error {
	if err := w.Dir(path.Dir(name)); err != nil {
		return err
	}
	return w.root.Symlink(target, name)
}
