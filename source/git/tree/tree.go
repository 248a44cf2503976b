// Package tree writes foreign trees, and ensures that they stay inside one directory.
package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escapes is the error for a tree with a path or a link that leads out of the tree.
type Escapes struct {
	Path   string
	Target string // target of the link; empty: the path itself is at fault
}

func (e *Escapes) Error() string {
	if e.Target == "" && !utf8.ValidString(e.Path) {
		return fmt.Sprintf("path %q: not UTF-8", e.Path)
	}
	if e.Target == "" {
		return fmt.Sprintf("path %q: leads out of the tree, or into .git", e.Path)
	}
	return fmt.Sprintf("link %q: its target %q leads out of the tree", e.Path, e.Target)
}

// deepest is the largest number of links that lead through each other: systems follow no more.
const deepest = 40

// longestPlace limits the paths that are followed. No system opens a longer path.
const longestPlace = 4 << 10

// Links resolves the symbolic links of a tree. It follows each link only once, however many links lead through it.
type Links struct {
	targets map[string]string // by path
	ends    map[string]end
	to      map[string][]string // links by the places where they lead; nil before the first question
}

// end is the result of following a link.
type end struct {
	place   string // path in the tree; "." is its top
	nowhere bool   // in a cycle, or not followed to its end yet
	outside bool
	through []string // links that the target leads through
}

// NewLinks returns the Links with these targets, by path.
func NewLinks(targets map[string]string) *Links {
	return &Links{targets: targets, ends: map[string]end{}}
}

// StaysInside reports whether a link leads to a place inside the tree. It follows the link as the system would,
// through other links of the tree: "a/../x" leads elsewhere if a is a link. A broken link or a cycle counts as
// inside; a link through more links than a system follows does not.
func (l *Links) StaysInside(link string) bool { return !l.follow(link, 1).outside }

// follow returns the end of a link; depth is its position in a chain of links.
func (l *Links) follow(link string, depth int) end {
	if e, ok := l.ends[link]; ok {
		return e
	}
	target := l.targets[link]
	if depth > deepest || strings.HasPrefix(target, "/") || strings.ContainsRune(target, 0) {
		return end{outside: true}
	}
	l.ends[link] = end{nowhere: true} // until it is followed: if follow comes here again, the links form a cycle
	e := l.walk(path.Dir(link), target, depth)
	l.ends[link] = e
	return e
}

// walk follows a path from a directory.
func (l *Links) walk(at, to string, depth int) end {
	var through []string
	for part := range strings.SplitSeq(to, "/") {
		switch {
		case part == "" || part == ".":
			continue
		case part == "..":
			if at == "." {
				return end{outside: true}
			}
			at = path.Dir(at)
			continue
		}
		at = path.Join(at, part)
		if len(at) > longestPlace {
			return end{outside: true}
		}
		if _, ok := l.targets[at]; ok {
			e := l.follow(at, depth+1)
			if e.outside || e.nowhere {
				return e
			}
			at, through = e.place, append(through, at)
		}
	}
	return end{place: at, through: through}
}

// mostNames limits the names of one place.
const mostNames = 100

// Names returns the other names of a place in the tree, each with the links on its way. No name leads through a link
// twice, so a link that leads up the tree does not give endless names.
func (l *Links) Names(place string) map[string][]string {
	names := map[string][]string{place: nil}
	for list := []string{place}; len(list) > 0 && len(names) < mostNames; list = list[1:] {
		ways := names[list[0]]
		for above, below := list[0], ""; ; above, below = path.Dir(above), path.Join(path.Base(above), below) {
			for _, link := range l.leadingTo(above) {
				name := path.Join(link, below)
				if _, known := names[name]; !known && len(name) < longestPlace && !slices.Contains(ways, link) {
					names[name] = append(slices.Clone(ways), link)
					list = append(list, name)
				}
			}
			if above == path.Dir(above) {
				break
			}
		}
	}
	delete(names, place)
	return names
}

// leadingTo returns the links that lead to a place. There are few, or none, of the many links and places of a tree.
func (l *Links) leadingTo(place string) []string {
	if l.to == nil {
		l.to = map[string][]string{}
		for _, link := range slices.Sorted(maps.Keys(l.targets)) {
			if e := l.follow(link, 1); !e.outside && !e.nowhere {
				l.to[e.place] = append(l.to[e.place], link)
			}
		}
	}
	return l.to[place]
}

// Next returns the links that the target of a link leads through.
func (l *Links) Next(link string) []string { return l.follow(link, 1).through }

// Inside reports whether a path names a place inside the tree that does not belong to git.
func Inside(p string) bool {
	if !fs.ValidPath(p) || p == "." || strings.ContainsRune(p, 0) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(p, "/"), isGit)
}

// isGit reports whether a file system may treat a name as .git: one that ignores case, invisible characters, or a
// suffix after a dot, a space or a colon.
func isGit(name string) bool {
	seen := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, name)
	seen, _, _ = strings.Cut(seen, ":")
	seen = strings.TrimRight(seen, " .")
	return strings.EqualFold(seen, ".git") || strings.EqualFold(seen, "git~1")
}

// Writer writes files only below one directory. It follows no link out of the directory, and overwrites nothing.
type Writer struct {
	root *os.Root
	made map[string]bool
}

// NewWriter opens a directory; it creates the directory if it is missing.
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

// Close closes the directory.
func (w *Writer) Close() error { return w.root.Close() }

// Dir makes a directory and its parents.
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
		err = f.Chmod(perm) // independent of the umask
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
