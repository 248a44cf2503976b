package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/benchgraph/benchgraph/internal/glob"
	"github.com/benchgraph/benchgraph/source/git/patch"
)

// OutsideAll returns, for each commit, a digest of the files that match no overlay pattern: equal digests mean equal
// files at equal paths. The digest is the SHA-256, in 64 digits, of "mode SP type SP object TAB path NUL" for each
// file, in git's order. One process reads all commits: a hundred take about as long as ten.
func (m *Mirror) OutsideAll(ctx context.Context, commits, overlay []string) (map[string]string, error) {
	in, err := matcher(overlay)
	if err != nil {
		return nil, err
	}
	commits = slices.Compact(slices.Sorted(slices.Values(commits)))
	trees, err := m.treesOf(ctx, commits)
	if err != nil {
		return nil, err
	}
	sums := make([]hash.Hash, len(commits))
	for i := range sums {
		sums[i] = sha256.New()
	}
	err = m.list(ctx, trees, nil, func(i int, e Entry) error {
		if !in(e.Name) {
			typ := "blob"
			if e.Mode == modeSubmodule {
				typ = "commit"
			}
			io.WriteString(sums[i], e.Mode+" "+typ+" "+e.ID+"\t"+e.Name+"\x00")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for i, c := range commits {
		digests[c] = hex.EncodeToString(sums[i].Sum(nil))
	}
	return digests, nil
}

// OutsidePatched returns a digest for a commit with a patch, without its tree; base is the commit's digest by
// OutsideAll. It returns base if the patch touches only files of the overlay, and otherwise a digest of base and of
// the parts of the patch outside the overlay. commit is needed if the patch moves a file out of the overlay: the
// moved content is then identified only by its origin. For an unreadable patch it returns *PatchError.
func OutsidePatched(base, commit string, text []byte, overlay []string) (string, error) {
	in, err := matcher(overlay)
	if err != nil {
		return "", err
	}
	parts, err := patch.Parse(text)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\x00", base)
	reaches := false
	for _, p := range parts {
		if !slices.ContainsFunc(p.Touches(), func(path string) bool { return !in(path) }) {
			continue
		}
		reaches = true
		if (p.File.IsRename || p.File.IsCopy) && in(p.File.OldName) {
			fmt.Fprintf(sum, "from %s\x00", commit)
		}
		fmt.Fprintf(sum, "%s\x00", p.Canonical())
	}
	if !reaches {
		return base, nil
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// matcher returns a function that reports whether a pattern matches a path. The function caches its results, as
// neighbouring commits share most paths.
func matcher(patterns []string) (func(path string) bool, error) {
	if err := glob.Check(patterns); err != nil {
		return nil, fmt.Errorf("overlay: %w", err)
	}
	known := map[string]bool{}
	return func(path string) bool {
		matched, ok := known[path]
		if !ok {
			matched = glob.Match(patterns, path)
			known[path] = matched
		}
		return matched
	}, nil
}
