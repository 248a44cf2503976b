package tasks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/source/git"
)

// restore puts the baseline's copies in the place of the protected files of a tree that was laid out, and removes
// protected files that the baseline does not have. The tree may be hostile: nothing is written through a link in it.
func (t *tree) restore(ctx context.Context, mirror *git.Mirror, dir string) error {
	theirs, err := os.MkdirTemp(filepath.Dir(dir), "baseline-")
	if err != nil {
		return err
	}
	err = t.exchange(ctx, mirror, dir, theirs)
	return errors.Join(err, fs.RemoveTree(theirs))
}

func (t *tree) exchange(ctx context.Context, mirror *git.Mirror, dir, theirs string) error {
	rev := t.against
	if rev == "" { // the candidate is the baseline with a patch
		rev = t.rev
	}
	if err := mirror.Checkout(ctx, rev, theirs); err != nil {
		return gitFailure(err)
	}
	own, err := t.protectedIn(dir)
	if err != nil {
		return err
	}
	for _, path := range own {
		if err := os.Remove(filepath.Join(dir, path)); err != nil {
			return err
		}
	}
	copies, err := t.protectedIn(theirs)
	if err != nil {
		return err
	}
	for _, path := range copies {
		if err := realParents(dir, path); err != nil {
			return err
		}
		to := filepath.Join(dir, path)
		if err := errors.Join(fs.RemoveTree(to), os.Rename(filepath.Join(theirs, path), to)); err != nil {
			return err
		}
	}
	return nil
}

// protectedIn are the protected files and links below a directory.
func (t *tree) protectedIn(dir string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err == nil && slices.ContainsFunc(t.protect, func(pattern string) bool {
			return doublestar.MatchUnvalidated(pattern, filepath.ToSlash(rel))
		}) {
			paths = append(paths, rel)
		}
		return err
	})
	return paths, err
}

// realParents makes the directories above a path real ones: a link or a file in the place of one is removed.
func realParents(dir, path string) error {
	at := dir
	for part := range strings.SplitSeq(filepath.Dir(path), string(filepath.Separator)) {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		if err == nil && !info.IsDir() {
			err = os.Remove(at)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// guarded says whether a source has protected files that it may have changed.
func guarded(s *hclspec.Source) bool {
	return len(s.Protect) > 0 && (s.Patch != "" || s.Against != "" && s.Against != s.Rev)
}
