package git

import (
	"context"
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

const (
	maxLinkTarget = 4096
	maxLinkSteps  = 255
)

// Checkout lays out the tree of a commit (40 digits) in dir, which must be empty or missing: the bytes as they are
// stored, modes 0644 and 0755, symbolic links that stay inside. There is no .git, and a submodule is an empty directory.
// A tree with something that leads out of it is refused with an *Escapes before anything is written.
func (m *Mirror) Checkout(ctx context.Context, commit, dir string) error {
	trees, err := m.treesOf(ctx, []string{commit})
	if err != nil {
		return err
	}
	if err := m.export(ctx, trees[0], nil, dir); err != nil {
		return fmt.Errorf("checkout of %s: %w", commit[:12], err)
	}
	return nil
}

// export lays out a tree in dir.
func (m *Mirror) export(ctx context.Context, tree string, env []string, dir string) error {
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
		return fmt.Errorf("directory %s: not empty", dir)
	}
	var files, links []entry
	submodules := []string{}
	err := m.list(ctx, []string{tree}, env, func(_ int, e entry) error {
		if !inside(e.path) {
			return &Escapes{Path: e.path}
		}
		switch e.mode {
		case modeLink:
			links = append(links, e)
		case modeSubmodule:
			submodules = append(submodules, e.path)
		default:
			files = append(files, e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	targets, err := m.linkTargets(ctx, links, env)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	w := &writer{root: root, made: map[string]bool{".": true}}
	if err := m.read(ctx, files, env, w.file); err != nil {
		return err
	}
	for _, s := range submodules {
		if err := w.mkdir(s); err != nil {
			return err
		}
	}
	// Last, so that nothing can be written through one.
	for _, l := range links {
		if err := w.mkdir(path.Dir(l.path)); err != nil {
			return err
		}
		if err := root.Symlink(targets[l.path], l.path); err != nil {
			return err
		}
	}
	return nil
}

// linkTargets reads where the links lead and refuses those that lead out of the tree.
func (m *Mirror) linkTargets(ctx context.Context, links []entry, env []string) (map[string]string, error) {
	targets := map[string]string{}
	err := m.read(ctx, links, env, func(e entry, size int64, r io.Reader) error {
		if size == 0 || size > maxLinkTarget {
			return fmt.Errorf("link %q: a target of %d bytes", e.path, size)
		}
		target, err := io.ReadAll(r)
		targets[e.path] = string(target)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if !staysInside(l.path, targets) {
			return nil, &Escapes{Path: l.path, Target: targets[l.path]}
		}
	}
	return targets, nil
}

// staysInside follows a link the way the system would, through the other links of the tree: "a/../x" leads elsewhere
// when a is a link. A link that leads nowhere, or in a circle, leads nowhere outside.
func staysInside(link string, targets map[string]string) bool {
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

// inside says whether a path of a tree names a place inside it that is not git's own.
func inside(p string) bool {
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

// writer writes files below one directory and nowhere else.
type writer struct {
	root *os.Root
	made map[string]bool
}

func (w *writer) mkdir(dir string) error {
	if w.made[dir] {
		return nil
	}
	if err := w.mkdir(path.Dir(dir)); err != nil {
		return err
	}
	if err := w.root.Mkdir(dir, 0o755); err != nil {
		return err
	}
	w.made[dir] = true
	return nil
}

func (w *writer) file(e entry, size int64, r io.Reader) error {
	perm := fs.FileMode(0o644)
	switch e.mode {
	case modeExec:
		perm = 0o755
	case modeFile, "100664": // what early gits stored
	default:
		return fmt.Errorf("path %q: mode %s is not one of git's", e.path, e.mode)
	}
	if err := w.mkdir(path.Dir(e.path)); err != nil {
		return err
	}
	f, err := w.root.OpenFile(e.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, r, size)
	if err == nil {
		err = f.Chmod(perm) // whatever the umask says
	}
	return errors.Join(err, f.Close())
}
