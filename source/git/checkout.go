package git

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/benchgraph/benchgraph/source/git/tree"
)

// Escapes says that a tree holds a path or a link that leads out of it.
type Escapes = tree.Escapes

const maxLinkTarget = 4096

// permission is what a file of a mode of git's gets.
func permission(mode string) (fs.FileMode, bool) {
	switch mode {
	case modeExec:
		return 0o755, true
	case modeFile, "100664": // what early gits stored
		return 0o644, true
	}
	return 0, false
}

// Checkout lays out the tree of a commit (40 digits) in dir, which must be empty or missing: the bytes as they are
// stored, modes 0644 and 0755, symbolic links that stay inside. There is no .git, and a submodule is an empty
// directory. A tree with something that leads out of it is refused with an *Escapes before anything is written.
func (m *Mirror) Checkout(ctx context.Context, commit, dir string) error {
	trees, err := m.treesOf(ctx, []string{commit})
	if err != nil {
		return err
	}
	l, err := m.listing(ctx, trees[0], nil)
	if err == nil {
		err = m.export(ctx, l, nil, dir)
	}
	if err != nil {
		return fmt.Errorf("checkout of %s: %w", commit[:12], err)
	}
	return nil
}

// Files names the regular files in the tree of a commit (40 digits): git's name of the content, by path.
func (m *Mirror) Files(ctx context.Context, commit string) (map[string]string, error) {
	trees, err := m.treesOf(ctx, []string{commit})
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	err = m.list(ctx, trees, nil, func(_ int, e Entry) error {
		if _, regular := permission(e.Mode); regular {
			files[e.Name] = e.ID
		}
		return nil
	})
	return files, err
}

// listing is what a tree holds.
type listing struct {
	files, links []Entry
	submodules   []string
	targets      map[string]string // of the links
}

// listing lists a tree. One with something that leads out of it is an *Escapes.
func (m *Mirror) listing(ctx context.Context, id string, env []string) (l listing, err error) {
	err = m.list(ctx, []string{id}, env, func(_ int, e Entry) error {
		if !tree.Inside(e.Name) {
			return &Escapes{Path: e.Name}
		}
		switch e.Mode {
		case modeLink:
			l.links = append(l.links, e)
		case modeSubmodule:
			l.submodules = append(l.submodules, e.Name)
		default:
			l.files = append(l.files, e)
		}
		return nil
	})
	if err == nil {
		l.targets, err = m.linkTargets(ctx, l.links, env)
	}
	return l, err
}

// export lays out a tree in dir, which must be empty or missing.
func (m *Mirror) export(ctx context.Context, l listing, env []string, dir string) error {
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
		return fmt.Errorf("directory %s: not empty", dir)
	}
	w, err := tree.NewWriter(dir)
	if err != nil {
		return err
	}
	defer w.Close()
	err = m.read(ctx, l.files, env, func(e Entry, size int64, r io.Reader) error {
		perm, ok := permission(e.Mode)
		if !ok {
			return fmt.Errorf("path %q: mode %s is not one of git's", e.Name, e.Mode)
		}
		return w.File(e.Name, perm, size, r)
	})
	if err != nil {
		return err
	}
	for _, s := range l.submodules {
		if err := w.Dir(s); err != nil {
			return err
		}
	}
	// Last, so that nothing can be written through one.
	for _, e := range l.links {
		if err := w.Link(e.Name, l.targets[e.Name]); err != nil {
			return err
		}
	}
	return nil
}

// linkTargets reads where the links lead and refuses those that lead out of the tree.
func (m *Mirror) linkTargets(ctx context.Context, links []Entry, env []string) (map[string]string, error) {
	targets := map[string]string{}
	err := m.read(ctx, links, env, func(e Entry, size int64, r io.Reader) error {
		if size == 0 || size > maxLinkTarget {
			return fmt.Errorf("link %q: a target of %d bytes", e.Name, size)
		}
		target, err := io.ReadAll(r)
		targets[e.Name] = string(target)
		return err
	})
	if err != nil {
		return nil, err
	}
	known := tree.NewLinks(targets)
	for _, l := range links {
		if !known.StaysInside(l.Name) {
			return nil, &Escapes{Path: l.Name, Target: targets[l.Name]}
		}
	}
	return targets, nil
}
