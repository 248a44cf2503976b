// Package protect finds the protected files of a tree: they measure, so candidates may not change them.
package protect

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/bmatcuk/doublestar/v4"

	"github.com/benchgraph/benchgraph/source/git"
	"github.com/benchgraph/benchgraph/source/git/tree"
)

// Guard finds the protected files of one baseline: files that a pattern matches, by their own names or by names
// through links of the baseline, and the links on the way.
type Guard struct {
	patterns []string
	links    *tree.Links
	ways     map[string]bool // links that lead to protected files
}

// newGuard returns a guard for the targets of the baseline's links and the names of its files.
func newGuard(patterns []string, targets map[string]string, files []string) *Guard {
	g := &Guard{patterns: patterns, links: tree.NewLinks(targets), ways: map[string]bool{}}
	if len(targets) == 0 {
		return g
	}
	for _, file := range files {
		for name, ways := range g.links.Names(file) {
			if g.matches(name) {
				g.lead(ways)
			}
		}
	}
	return g
}

// lead records links that lead to protected files, and the links in their targets.
func (g *Guard) lead(links []string) {
	for _, link := range links {
		if !g.ways[link] {
			g.ways[link] = true
			g.lead(g.links.Next(link))
		}
	}
}

func (g *Guard) matches(name string) bool {
	return slices.ContainsFunc(g.patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, name) })
}

// Holds reports whether an existing or new file or link with that name is protected.
func (g *Guard) Holds(name string) bool { return g.by(name) != "" }

// by returns the name by which a file or link is protected: its own, or a name through links; empty: it is not.
func (g *Guard) by(name string) string {
	if g.matches(name) || g.ways[name] {
		return name
	}
	for _, other := range slices.Sorted(maps.Keys(g.links.Names(name))) {
		if g.matches(other) {
			return other
		}
	}
	return ""
}

// Found returns the protected files and links below a directory, by their names there.
func (g *Guard) Found(dir string) ([]string, error) {
	return filesBelow(dir, func(name string) bool { return g.Holds(filepath.ToSlash(name)) })
}

// OfDir returns the guard of a baseline whose tree is in a directory.
func OfDir(patterns []string, dir string) (*Guard, error) {
	targets := map[string]string{}
	files, err := filesBelow(dir, func(name string) bool {
		if target, err := os.Readlink(filepath.Join(dir, name)); err == nil {
			targets[filepath.ToSlash(name)] = target
		}
		return true
	})
	for i, name := range files {
		files[i] = filepath.ToSlash(name)
	}
	return newGuard(patterns, targets, files), err
}

// filesBelow returns the wanted files and links below a directory.
func filesBelow(dir string, wanted func(name string) bool) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil && wanted(name) {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// Change lists paths that a candidate changes in the tree of a baseline (a commit of 40 digits).
type Change struct {
	Baseline string
	Patterns []string
	Paths    []string
}

// longestTarget limits the target of a followed link; git has no longer ones.
const longestTarget = 4 << 10

// Among returns the protected paths of each change. A path that is protected only by a name through links is followed
// by that name in brackets.
func Among(ctx context.Context, m *git.Mirror, changes []Change) ([][]string, error) {
	found := make([][]string, len(changes))
	asked := map[string]bool{}
	for _, c := range changes {
		if len(c.Paths) > 0 {
			asked[c.Baseline] = true
		}
	}
	links, err := m.Select(ctx, slices.Sorted(maps.Keys(asked)), git.Entry.IsLink)
	if err != nil {
		return nil, err
	}
	targets, err := targetsOf(ctx, m, links)
	for i := 0; i < len(changes) && err == nil; i++ {
		c, to := changes[i], targets[changes[i].Baseline]
		var files []string
		if slices.ContainsFunc(c.Paths, func(name string) bool { return to[name] != "" }) {
			if files, err = filesOf(ctx, m, c.Baseline); err != nil {
				break
			}
		}
		g := newGuard(c.Patterns, to, files)
		for _, name := range c.Paths {
			if by := g.by(name); by == name {
				found[i] = append(found[i], name)
			} else if by != "" {
				found[i] = append(found[i], fmt.Sprintf("%s (%s)", name, by))
			}
		}
	}
	return found, err
}

// Idle returns the patterns of each change that match no changed path, and no file or link of the baseline, also by a
// name through links: each with the most similar name there, or "".
func Idle(ctx context.Context, m *git.Mirror, changes []Change) ([]map[string]string, error) {
	idle, every := make([]map[string]string, len(changes)), newGuard(nil, nil, nil)
	asked := map[string]bool{}
	for _, c := range changes {
		asked[c.Baseline], every.patterns = true, append(every.patterns, c.Patterns...)
	}
	found, err := m.Select(ctx, slices.Sorted(maps.Keys(asked)), func(e git.Entry) bool {
		return e.IsLink() || every.matches(e.Name)
	})
	for i, c := range changes {
		idle[i] = map[string]string{}
		for _, pattern := range c.Patterns {
			g := newGuard([]string{pattern}, nil, nil)
			if err == nil && !slices.ContainsFunc(c.Paths, g.matches) &&
				!slices.ContainsFunc(slices.Collect(maps.Keys(found[c.Baseline])), g.matches) {
				err = g.unmatched(ctx, m, c.Baseline, found[c.Baseline], idle[i])
			}
		}
	}
	return idle, err
}

// unmatched adds the guard's pattern to idle, unless it matches a file by a name through links.
func (g *Guard) unmatched(ctx context.Context, m *git.Mirror, commit string, found map[string]git.Entry,
	idle map[string]string) error {
	links := maps.Clone(found)
	maps.DeleteFunc(links, func(_ string, e git.Entry) bool { return !e.IsLink() })
	targets, err := targetsOf(ctx, m, map[string]map[string]git.Entry{commit: links})
	if err != nil {
		return err
	}
	files, err := filesOf(ctx, m, commit)
	if err != nil {
		return err
	}
	slices.Sort(files)
	pattern, near, nearest := g.patterns[0], "", 0.7
	g.links = tree.NewLinks(targets[commit])
	for _, file := range files {
		if g.by(file) != "" {
			return nil
		}
		like := levenshtein.Match(pattern, file, nil)
		if dir := strings.TrimSuffix(pattern, "/") + "/"; strings.HasPrefix(file, dir) {
			file, like = dir+"**", 2
		}
		if like > nearest {
			near, nearest = file, like
		}
	}
	idle[pattern] = near
	return nil
}

func filesOf(ctx context.Context, m *git.Mirror, commit string) ([]string, error) {
	files, err := m.Files(ctx, commit)
	return slices.Collect(maps.Keys(files)), err
}

// targetsOf returns the targets of the links of commits.
func targetsOf(ctx context.Context, m *git.Mirror,
	links map[string]map[string]git.Entry) (map[string]map[string]string, error) {
	ids := map[string]bool{}
	for _, entries := range links {
		for _, e := range entries {
			ids[e.ID] = true
		}
	}
	all := map[string]map[string]string{}
	texts, err := m.Blobs(ctx, slices.Sorted(maps.Keys(ids)), longestTarget)
	for commit, entries := range links {
		all[commit] = map[string]string{}
		for name, e := range entries {
			all[commit][path.Clean(name)] = string(texts[e.ID])
		}
	}
	return all, err
}
