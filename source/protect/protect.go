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

func (g *Guard) matches(name string) bool { return Match(g.patterns, name) }

// Match reports whether a pattern matches the name itself, without regard to links.
func Match(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, name) })
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
	patterns, baselines := map[string]bool{}, map[string]bool{}
	for _, c := range changes {
		baselines[c.Baseline] = true
		for _, pattern := range c.Patterns {
			patterns[pattern] = true
		}
	}
	every := newGuard(slices.Sorted(maps.Keys(patterns)), nil, nil)
	found, err := m.Select(ctx, slices.Sorted(maps.Keys(baselines)), func(e git.Entry) bool {
		return e.IsLink() || every.matches(e.Name)
	})
	if err != nil {
		return nil, err
	}
	lacking, asked := make([][]string, len(changes)), map[string]map[string]bool{}
	for i, c := range changes {
		names := slices.Concat(c.Paths, slices.Collect(maps.Keys(found[c.Baseline])))
		for _, pattern := range c.Patterns {
			if slices.ContainsFunc(names, newGuard([]string{pattern}, nil, nil).matches) {
				continue
			}
			lacking[i] = append(lacking[i], pattern)
			if asked[c.Baseline] == nil {
				asked[c.Baseline] = map[string]bool{}
			}
			asked[c.Baseline][pattern] = true
		}
	}
	near := map[string]map[string]string{} // by baseline, each of which is read once, and pattern
	for baseline := range asked {
		if near[baseline], err = unmatched(ctx, m, baseline, found[baseline], asked[baseline]); err != nil {
			return nil, err
		}
	}
	idle := make([]map[string]string, len(changes))
	for i, c := range changes {
		idle[i] = map[string]string{}
		for _, pattern := range lacking[i] {
			if name, is := near[c.Baseline][pattern]; is {
				idle[i][pattern] = name
			}
		}
	}
	return idle, nil
}

// unmatched returns the patterns that match no file of a commit by a name through links, each with the most similar
// name there, or "".
func unmatched(ctx context.Context, m *git.Mirror, commit string, found map[string]git.Entry,
	patterns map[string]bool) (map[string]string, error) {
	links := maps.Clone(found)
	maps.DeleteFunc(links, func(_ string, e git.Entry) bool { return !e.IsLink() })
	targets, err := targetsOf(ctx, m, map[string]map[string]git.Entry{commit: links})
	if err != nil {
		return nil, err
	}
	files, err := filesOf(ctx, m, commit)
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	near := map[string]string{}
	for pattern := range patterns {
		g := &Guard{patterns: []string{pattern}, links: tree.NewLinks(targets[commit])}
		if !slices.ContainsFunc(files, g.Holds) {
			near[pattern] = similar(pattern, files)
		}
	}
	return near, nil
}

// similar returns the file that a pattern was probably to match, or the pattern of all files in the directory that it
// names; "" if there is neither.
func similar(pattern string, files []string) string {
	dir := strings.TrimSuffix(pattern, "/") + "/"
	if slices.ContainsFunc(files, func(file string) bool { return strings.HasPrefix(file, dir) }) {
		return dir + "**"
	}
	near, nearest := "", 0.7
	for _, file := range files {
		if like := levenshtein.Match(pattern, file, nil); like > nearest {
			near, nearest = file, like
		}
	}
	return near
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
