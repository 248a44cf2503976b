// Package protect finds the protected files of a tree: they measure, so candidates may not change them.
package protect

import (
	"cmp"
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

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/glob"
	"github.com/benchgraph/benchgraph/source/git"
	"github.com/benchgraph/benchgraph/source/git/tree"
)

// Guard finds the protected files of one baseline: files that a pattern matches, by their own names or by names
// through links of the baseline, the links on the way, and files in whose place Python would find another one.
type Guard struct {
	patterns []string
	links    *tree.Links
	ways     map[string]bool        // links that lead to protected files
	has      func(name string) bool // reports whether the baseline has a file
}

// newGuard returns a guard for the targets of the baseline's links and the names of its files.
func newGuard(patterns []string, targets map[string]string, files []string) *Guard {
	g := &Guard{patterns: patterns, links: tree.NewLinks(targets), ways: map[string]bool{},
		has: func(name string) bool { return slices.Contains(files, name) }}
	if len(targets) == 0 {
		return g
	}
	for _, file := range files {
		for name, ways := range g.links.Names(file) {
			if glob.Match(g.patterns, name) {
				g.addWays(ways)
			}
		}
	}
	return g
}

// addWays records links that lead to protected files, and the links in their targets.
func (g *Guard) addWays(links []string) {
	for _, link := range links {
		if !g.ways[link] {
			g.ways[link] = true
			g.addWays(g.links.Next(link))
		}
	}
}

// Holds reports whether an existing or new file or link with that name is protected.
func (g *Guard) Holds(name string) bool { return g.protectedName(name) != "" }

// protectedName returns the name by which a file or link is protected: its own, or a name through links. It returns ""
// if the file is not protected.
func (g *Guard) protectedName(name string) string {
	if glob.Match(g.patterns, name) || g.ways[name] {
		return name
	}
	for _, other := range slices.Sorted(maps.Keys(g.links.Names(name))) {
		if glob.Match(g.patterns, other) {
			return other
		}
	}
	if other := shadows(name); other != "" && glob.Match(g.patterns, other) && g.has(other) {
		return other
	}
	return ""
}

// shadows returns the Python file in whose place Python would import a file: a package and a compiled module come
// before the source of the same name, and __pycache__ holds its bytecode. Empty: there is none.
func shadows(name string) string {
	dir, base := path.Split(name)
	module, _, _ := strings.Cut(base, ".")
	switch {
	case base == "__init__.py" && dir != "":
		return path.Clean(dir) + ".py"
	case path.Base(dir) == "__pycache__" && path.Ext(base) == ".pyc":
		return path.Join(dir, "..", module+".py")
	case path.Ext(base) == ".so":
		return dir + module + ".py"
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
	Revised  []string // paths that differ in the candidate's revision
	Patched  []string // paths in the candidate's patch
}

// longestTarget limits the target of a followed link; git has no longer ones.
const longestTarget = 4 << 10

// Changes returns the paths that sources of one repo change in the trees of their baselines. patch returns the text of
// a source's patch.
func Changes(ctx context.Context, m *git.Mirror, all []*hclspec.Source, patch func(*hclspec.Source) []byte) ([]Change,
	error) {
	steps := make([]git.Step, len(all))
	for i, s := range all {
		steps[i] = git.Step{From: cmp.Or(s.Against, s.Rev), To: s.Rev}
	}
	differs, err := m.Changed(ctx, steps)
	if err != nil {
		return nil, err
	}
	changes := make([]Change, len(all))
	for i, s := range all {
		touched, _ := git.TouchedPaths(patch(s)) // an error is reported when the patch is applied
		changes[i] = Change{Baseline: steps[i].From, Patterns: s.Protect, Revised: differs[i], Patched: touched}
	}
	return changes, nil
}

// Baselines are the trees of the baselines of changes, as far as their patterns ask for them.
type Baselines struct {
	mirror  *git.Mirror
	found   map[string]map[string]git.Entry // by commit and path: links, and files that a pattern matches
	targets map[string]map[string]string    // by commit and path of a link
}

// Read reads the baselines of changes.
func Read(ctx context.Context, m *git.Mirror, changes []Change) (b *Baselines, err error) {
	patterns, commits := map[string]bool{}, map[string]bool{}
	for _, c := range changes {
		commits[c.Baseline] = true
		for _, pattern := range c.Patterns {
			patterns[pattern] = true
		}
	}
	every := slices.Sorted(maps.Keys(patterns))
	b = &Baselines{mirror: m}
	b.found, err = m.Select(ctx, slices.Sorted(maps.Keys(commits)), func(e git.Entry) bool {
		return e.IsLink() || glob.Match(every, e.Name)
	})
	if err == nil {
		err = b.readTargets(ctx)
	}
	return b, err
}

// readTargets reads the targets of all links.
func (b *Baselines) readTargets(ctx context.Context) error {
	ids := map[string]bool{}
	for _, entries := range b.found {
		for _, e := range entries {
			if e.IsLink() {
				ids[e.ID] = true
			}
		}
	}
	texts, err := b.mirror.Blobs(ctx, slices.Sorted(maps.Keys(ids)), longestTarget)
	b.targets = map[string]map[string]string{}
	for commit, entries := range b.found {
		b.targets[commit] = map[string]string{}
		for name, e := range entries {
			if e.IsLink() {
				b.targets[commit][path.Clean(name)] = string(texts[e.ID])
			}
		}
	}
	return err
}

// Among returns the protected paths of a change, among those of the revision and among those of the patch. A path that
// is protected only by a name through links is followed by that name in brackets.
func (b *Baselines) Among(ctx context.Context, c Change) (revised, patched []string, err error) {
	targets := b.targets[c.Baseline]
	isLink := func(name string) bool { return targets[name] != "" }
	var files []string
	if slices.ContainsFunc(c.Revised, isLink) || slices.ContainsFunc(c.Patched, isLink) {
		if files, err = filesOf(ctx, b.mirror, c.Baseline); err != nil {
			return nil, nil, err
		}
	}
	g := newGuard(c.Patterns, targets, files)
	g.has = func(name string) bool {
		_, has := b.found[c.Baseline][name]
		return has
	}
	return g.protectedAmong(c.Revised), g.protectedAmong(c.Patched), nil
}

func (g *Guard) protectedAmong(paths []string) (held []string) {
	for _, name := range paths {
		if by := g.protectedName(name); by == name {
			held = append(held, name)
		} else if by != "" {
			held = append(held, fmt.Sprintf("%s (%s)", name, by))
		}
	}
	return held
}

// Idle returns the patterns of each change that match no changed path, and no file or link of the baseline, also by a
// name through links: each with the most similar name there, or "".
func (b *Baselines) Idle(ctx context.Context, changes []Change) ([]map[string]string, error) {
	lacking, asked := make([][]string, len(changes)), map[string]map[string]bool{}
	for i, c := range changes {
		names := slices.Concat(c.Revised, c.Patched, slices.Collect(maps.Keys(b.found[c.Baseline])))
		for _, pattern := range c.Patterns {
			if slices.ContainsFunc(names, func(name string) bool { return glob.Match([]string{pattern}, name) }) {
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
	for baseline, patterns := range asked {
		var err error
		if near[baseline], err = b.unmatched(ctx, baseline, patterns); err != nil {
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
func (b *Baselines) unmatched(ctx context.Context, commit string, patterns map[string]bool) (map[string]string, error) {
	files, err := filesOf(ctx, b.mirror, commit)
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	near := map[string]string{}
	for pattern := range patterns {
		g := newGuard([]string{pattern}, b.targets[commit], nil)
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
