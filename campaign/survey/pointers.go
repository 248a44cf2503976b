package survey

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/source/git"
)

// A file that Git LFS tracks is a pointer in the repository, and trees are laid out as they are stored.
const (
	pointerStart   = "version https://git-lfs.github.com/spec/v1\n"
	largestPointer = 1 << 10 // bytes, by the specification of Git LFS
)

// findPointers finds the files of laid out revisions that are pointers of Git LFS. The attributes at the top of a tree
// name the candidates for it, so that a repo without Git LFS costs one question.
func (p *survey) findPointers(ctx context.Context, mirror *git.Mirror, repo hclspec.Address,
	in *preflight.Input) error {
	revs := map[string]bool{}
	for i := range p.Spec.Sources {
		if s := &p.Spec.Sources[i]; s.Repo == repo && s.Out == nil {
			revs[s.Rev] = true
		}
	}
	var places []git.Place
	for _, rev := range slices.Sorted(maps.Keys(revs)) {
		places = append(places, git.Place{Commit: rev, Path: ".gitattributes"})
	}
	found, err := mirror.Find(ctx, places)
	if err != nil {
		return err
	}
	tracked := make([][]string, len(places))
	err = mirror.Contents(ctx, found, largestRead, func(i int, text []byte, err error) {
		if err == nil {
			tracked[i] = trackedBy(string(text))
		}
	})
	for i := range places {
		if len(tracked[i]) == 0 || err != nil {
			continue
		}
		var pointers []string
		if pointers, err = pointersAmong(ctx, mirror, places[i].Commit, tracked[i]); len(pointers) > 0 {
			in.Pointers[places[i].Commit] = fmt.Sprintf("Git LFS has the content of %d files of %.12s, such as %s: a "+
				"command finds a pointer of three lines there", len(pointers), places[i].Commit, pointers[0])
		}
	}
	return err
}

// trackedBy returns the patterns that a file of attributes gives to Git LFS.
func trackedBy(attributes string) (patterns []string) {
	for line := range strings.Lines(attributes) {
		if words := strings.Fields(line); len(words) > 1 && slices.Contains(words[1:], "filter=lfs") {
			pattern := strings.TrimPrefix(words[0], "/")
			if !strings.Contains(words[0], "/") {
				pattern = "**/" + pattern
			}
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

// pointersAmong returns the pointers among the files of a commit that patterns match, in order.
func pointersAmong(ctx context.Context, mirror *git.Mirror, commit string, patterns []string) ([]string, error) {
	files, err := mirror.Files(ctx, commit)
	if err != nil {
		return nil, err
	}
	var names, ids []string
	for name, id := range files {
		if slices.ContainsFunc(patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, name) }) {
			names, ids = append(names, name), append(ids, id)
		}
	}
	contents, err := mirror.Blobs(ctx, ids, largestPointer)
	names = slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(string(contents[files[name]]), pointerStart)
	})
	slices.Sort(names)
	return names, err
}
