package survey

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/glob"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/source/git"
	"github.com/benchgraph/benchgraph/source/git/tree"
)

// A file that Git LFS tracks is a pointer in the repository. Trees are laid out as they are stored, with pointers.
const (
	pointerStart   = "version https://git-lfs.github.com/spec/v1\n"
	largestPointer = 1 << 10 // bytes, by the specification of Git LFS
)

// lookInto finds the revisions of a repo from which no candidate can be made: a link leads out of the tree, or a file
// is a pointer of Git LFS. Only files that .gitattributes names can be pointers, so that a repo without Git LFS costs
// one question.
func (p *survey) lookInto(ctx context.Context, mirror *git.Mirror, repo hclspec.Address, in *preflight.Input) error {
	wanted := map[string]bool{}
	for i := range p.Spec.Sources {
		if s := &p.Spec.Sources[i]; s.Repo == repo && s.Out == nil && in.Lost[s.Rev].Why == "" {
			wanted[s.Rev] = true
		}
	}
	revs := slices.Sorted(maps.Keys(wanted))
	found, err := mirror.Select(ctx, revs, func(e git.Entry) bool {
		return e.IsLink() || path.Base(e.Name) == ".gitattributes"
	})
	if err != nil {
		return err
	}
	contents := map[string]bool{}
	for _, entries := range found {
		for _, e := range entries {
			contents[e.ID] = true
		}
	}
	texts, err := mirror.Blobs(ctx, slices.Collect(maps.Keys(contents)), largestRead)
	for i := 0; i < len(revs) && err == nil; i++ {
		targets := map[string]string{}
		var patterns, pointers []string
		for name, e := range found[revs[i]] {
			if text := string(texts[e.ID]); e.IsLink() {
				targets[name] = text
			} else {
				patterns = append(patterns, trackedBy(path.Dir(name), text)...)
			}
		}
		if out := escape(targets); out != nil {
			in.Escapes[revs[i]] = fmt.Sprintf("%v, at %.12s", out, revs[i])
		}
		if len(patterns) == 0 {
			continue
		}
		if pointers, err = pointersAmong(ctx, mirror, revs[i], patterns); len(pointers) > 0 {
			in.Pointers[revs[i]] = fmt.Sprintf("Git LFS has the content of %d files of %.12s, such as %s: a "+
				"command finds a pointer of three lines there", len(pointers), revs[i], pointers[0])
		}
	}
	return err
}

// escape returns the first link of a tree, by name, that leads out of the tree; nil if there is none.
func escape(targets map[string]string) error {
	links := tree.NewLinks(targets)
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		if !links.StaysInside(name) {
			return &git.Escapes{Path: name, Target: targets[name]}
		}
	}
	return nil
}

// trackedBy returns the patterns that the .gitattributes of a directory give to Git LFS.
func trackedBy(dir, attributes string) (patterns []string) {
	for line := range strings.Lines(attributes) {
		if words := strings.Fields(line); len(words) > 1 && slices.Contains(words[1:], "filter=lfs") {
			pattern := strings.TrimPrefix(words[0], "/")
			if !strings.Contains(words[0], "/") {
				pattern = "**/" + pattern
			}
			patterns = append(patterns, path.Join(literal().ReplaceAllString(dir, `\$0`), pattern))
		}
	}
	return patterns
}

// literal matches the characters that have a meaning in a pattern.
var literal = lazyregexp.New(`[\\*?\[\]{}]`)

// pointersAmong returns the pointers among the files of a commit that patterns match, in order.
func pointersAmong(ctx context.Context, mirror *git.Mirror, commit string, patterns []string) ([]string, error) {
	files, err := mirror.Files(ctx, commit)
	if err != nil {
		return nil, err
	}
	var names, ids []string
	for name, id := range files {
		if glob.Match(patterns, name) {
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
