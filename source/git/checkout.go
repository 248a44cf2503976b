package git

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/benchgraph/benchgraph/source/git/tree"
)

// Escapes is the error for a tree with a path or a link that leads out of the tree.
type Escapes = tree.Escapes

const maxLinkTarget = 4096

// permission returns the permissions for one of git's file modes.
func permission(mode string) (fs.FileMode, bool) {
	switch mode {
	case modeExec:
		return 0o755, true
	case modeFile, "100664": // written by early versions of git
		return 0o644, true
	}
	return 0, false
}

// Checkout writes the tree of a commit (40 digits) to dir, which must be empty or missing. It writes the bytes as
// they are stored, with modes 0644 and 0755, and symbolic links that stay inside. There is no .git, and a submodule
// becomes an empty directory. If anything in the tree leads out of it, Checkout returns *Escapes before it writes.
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

// Files returns the regular files in the tree of a commit (40 digits): the ID of the content, by path.
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

// listing is the content of a tree.
type listing struct {
	files, links []Entry
	submodules   []string
	targets      map[string]string // targets of the links, by path
}

// listing lists a tree. It returns *Escapes if anything in the tree leads out of it.
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

// export writes a tree to dir, which must be empty or missing.
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
	// Last, so that no file is written through a link.
	for _, e := range l.links {
		if err := w.Link(e.Name, l.targets[e.Name]); err != nil {
			return err
		}
	}
	return nil
}

// linkTargets reads the targets of links. It returns *Escapes for a link that leads out of the tree.
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
