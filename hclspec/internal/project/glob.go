package project

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds on one reading of a project.
const (
	maxFiles    = 1_000_000  // files and directories
	maxNames    = 128 << 20  // bytes of their names
	maxMatching = 30_000_000 // names compared with patterns
	batch       = 4096       // entries of a directory that are read at a time
)

// Selection is the result of a list of patterns.
type Selection struct {
	Files     []string // sorted
	Unmatched []int    // index of every pattern without "!" that matches no file
}

// Select applies doublestar patterns in their order: a pattern adds the files that it matches; one with a leading "!"
// removes the files that it matches. Files in .git and .benchgraph are never matched.
func (d *Dir) Select(patterns []string) (Selection, error) {
	chosen := map[string]bool{}
	var s Selection
	for i, pattern := range patterns {
		if not, ok := strings.CutPrefix(pattern, "!"); ok {
			if err := CheckPattern(not); err != nil {
				return s, err
			}
			p, err := ParsePattern(path.Clean(not))
			if err == nil {
				err = d.matching(p, len(chosen))
			}
			if err != nil {
				return s, err
			}
			maps.DeleteFunc(chosen, func(name string, _ bool) bool { return p.Match(name) })
			continue
		}
		found, err := d.Glob(pattern)
		if err != nil {
			return s, err
		}
		if len(found) == 0 {
			s.Unmatched = append(s.Unmatched, i)
		}
		for _, name := range found {
			chosen[name] = true
		}
	}
	s.Files = slices.Sorted(maps.Keys(chosen))
	return s, nil
}

// CheckPattern returns an error if a doublestar pattern is invalid or leads out of the project.
func CheckPattern(pattern string) error {
	if _, err := ParsePattern(pattern); err != nil {
		return err
	}
	_, err := Clean(pattern)
	return err
}

// Glob returns the sorted list of files that a doublestar pattern matches. The caller must not change it. A link that
// leads out of the project is an error if the pattern matches it.
func (d *Dir) Glob(pattern string) ([]string, error) {
	if found, ok := d.globs[pattern]; ok {
		return found, nil
	}
	if err := CheckPattern(pattern); err != nil {
		return nil, err
	}
	if !strings.ContainsAny(pattern, `*?[{\`) {
		return d.single(path.Clean(pattern))
	}
	if err := d.walk(); err != nil {
		return nil, err
	}
	p, err := ParsePattern(path.Clean(pattern))
	if err != nil {
		return nil, err
	}
	names := d.below(path.Clean(pattern))
	if err := d.matching(p, len(names)); err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		plain := strings.TrimSuffix(name, linkMark)
		if !p.Match(plain) {
			continue
		}
		if plain != name {
			if info, err := d.root.Stat(plain); err == nil && info.IsDir() {
				d.reads.Regular[plain] = false
				continue // a linked directory is not walked: it may lead into itself
			}
			if _, err := d.stat(plain); err != nil {
				return nil, err
			}
		}
		found = append(found, plain)
		d.reads.Matched[plain] = true
	}
	d.globs[pattern] = found
	return found, nil
}

// linkMark is the suffix of symbolic links in the list. They are followed only when a pattern matches them.
const linkMark = "\x00"

// single finds the file of a pattern that is a plain name, as most inputs of tasks are, without a walk.
func (d *Dir) single(name string) ([]string, error) {
	if private(name) {
		return nil, nil
	}
	_, err := d.stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []string{name}, nil
}

// below returns the part of the list under the directory with which the pattern begins.
func (d *Dir) below(pattern string) []string {
	base, _ := doublestar.SplitPattern(pattern)
	if base == "." {
		return d.list
	}
	from := sort.SearchStrings(d.list, base+"/")
	to := sort.SearchStrings(d.list, base+"0") // "0" follows "/"
	return d.list[from:to]
}

// List returns the names of the files directly in a directory, sorted; none if there is no such directory.
func (d *Dir) List(name string) ([]string, error) {
	clean, err := Clean(name)
	if err != nil {
		return nil, err
	}
	// If the directory is made later, the listing of its parent changes.
	for dir := clean; dir != "."; {
		dir = path.Dir(dir)
		if _, err := d.root.Stat(dir); err == nil {
			d.reads.Listed = append(d.reads.Listed, dir)
			break
		}
	}
	var names []string
	err = d.entries(clean, func(entry fs.DirEntry) error {
		if !entry.IsDir() {
			names = append(names, entry.Name())
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	d.reads.Listed = append(d.reads.Listed, clean)
	slices.Sort(names)
	return names, err
}

// matching counts the names that are compared with patterns, and returns an error above the bound.
func (d *Dir) matching(p Pattern, names int) error {
	if d.matched += len(p) * names; d.matched > maxMatching {
		return fmt.Errorf("the patterns of the files are compared with more than %d names: begin them with a "+
			"directory, as in \"src/**/*.c\"", maxMatching)
	}
	return nil
}

// walk lists the project once. Directories are read in parts, since they may have any number of entries.
func (d *Dir) walk() error {
	if d.list != nil {
		return nil
	}
	list, size := []string{}, 0
	pending := []string{"."}
	for seen := 0; len(pending) > 0; {
		dir := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		d.reads.Listed = append(d.reads.Listed, dir)
		err := d.entries(dir, func(entry fs.DirEntry) error {
			name := path.Join(dir, entry.Name())
			seen++
			size += len(name)
			if seen > maxFiles || size > maxNames {
				return fmt.Errorf("there are more than %d of them, or their names are very long: move what does not "+
					"belong to the project out of %s", maxFiles, d.path)
			}
			switch {
			case entry.IsDir() && !private(entry.Name()):
				pending = append(pending, name)
			case entry.Type() == 0:
				list = append(list, name)
			case entry.Type() == fs.ModeSymlink:
				list = append(list, name+linkMark)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("files of the project cannot be listed: %w", err)
		}
	}
	sort.Strings(list)
	d.list = list
	return nil
}

// entries calls f with each entry of a directory.
func (d *Dir) entries(name string, f func(fs.DirEntry) error) error {
	dir, err := d.root.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(batch)
		for _, entry := range entries {
			if err := f(entry); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// private reports whether a name leads into the directories of git or benchgraph.
func private(name string) bool {
	parts := strings.Split(name, "/")
	return slices.Contains(parts, ".git") || slices.Contains(parts, ".benchgraph")
}
