package project

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// maxFiles bounds how many files one walk may find.
const maxFiles = 5_000_000

// Selection is what a list of patterns names.
type Selection struct {
	Files     []string // sorted
	Unmatched []int    // index of every pattern that names no file, those with "!" left out
}

// Select applies doublestar patterns in their order: a pattern adds the files that it matches, one with a leading "!"
// takes away those that it matches. What lies in .git and .benchgraph is never matched.
func (d *Dir) Select(patterns []string) (Selection, error) {
	chosen := map[string]bool{}
	var s Selection
	for i, pattern := range patterns {
		if not, ok := strings.CutPrefix(pattern, "!"); ok {
			if err := CheckPattern(not); err != nil {
				return s, err
			}
			maps.DeleteFunc(chosen, func(name string, _ bool) bool { return doublestar.MatchUnvalidated(clean(not), name) })
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

// CheckPattern says what is wrong with a doublestar pattern.
func CheckPattern(pattern string) error {
	if !doublestar.ValidatePattern(pattern) {
		return fmt.Errorf("%q is not a valid pattern", pattern)
	}
	_, err := Clean(pattern)
	return err
}

// Glob is the sorted list of files that a doublestar pattern matches. The caller must not change it. A link that leads
// out of the project is an error when the pattern matches it.
func (d *Dir) Glob(pattern string) ([]string, error) {
	if found, ok := d.globs[pattern]; ok {
		return found, nil
	}
	if err := CheckPattern(pattern); err != nil {
		return nil, err
	}
	if !strings.ContainsAny(pattern, `*?[{\`) {
		return d.single(clean(pattern))
	}
	if err := d.walk(); err != nil {
		return nil, err
	}
	var found []string
	for _, name := range d.below(clean(pattern)) {
		if !doublestar.MatchUnvalidated(clean(pattern), name) {
			continue
		}
		plain := strings.TrimSuffix(name, linkMark)
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
	}
	d.globs[pattern] = found
	return found, nil
}

// linkMark ends the names of symbolic links in the list, which are followed only once a pattern matches them.
const linkMark = "\x00"

// single saves the walk for a pattern that is a plain name, as most inputs of tasks are.
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

// below is the part of the list that lies under the directory with which the pattern begins.
func (d *Dir) below(pattern string) []string {
	base, _ := doublestar.SplitPattern(pattern)
	if base == "." {
		return d.list
	}
	from := sort.SearchStrings(d.list, base+"/")
	to := sort.SearchStrings(d.list, base+"0") // "0" follows "/"
	return d.list[from:to]
}

func (d *Dir) walk() error {
	if d.list != nil {
		return nil
	}
	list := []string{}
	err := filepath.WalkDir(d.path, func(full string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if full != d.path && private(entry.Name()) {
				return filepath.SkipDir
			}
			d.reads.Listed = append(d.reads.Listed, full)
			return nil
		}
		name := filepath.ToSlash(full[len(strings.TrimSuffix(d.path, "/"))+1:])
		switch entry.Type() {
		case 0:
			list = append(list, name)
		case fs.ModeSymlink:
			list = append(list, name+linkMark)
		}
		if len(list) > maxFiles {
			return fmt.Errorf("there are more than %d files", maxFiles)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("files of the project cannot be listed: %w", err)
	}
	sort.Strings(list)
	d.list = list
	return nil
}

func clean(pattern string) string { return path.Clean(pattern) }

// private says whether a name leads into what git or benchgraph keep for themselves.
func private(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == ".git" || part == ".benchgraph" {
			return true
		}
	}
	return false
}
