package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/source/git/command"
	"github.com/benchgraph/benchgraph/source/git/mirror"
)

// Ancestor is a commit among the first-parent ancestors of another one.
type Ancestor struct {
	Commit string
	Back   int // number of commits back; 1: the parent
}

// Nearest returns, for each commit (40 digits), the ancestors whose trees are the same except for files that match
// the overlay patterns. It looks at up to most first-parent ancestors, the nearest first. Two git processes serve all
// commits.
func (m *Mirror) Nearest(ctx context.Context, commits, overlay []string, most int) (map[string][]Ancestor, error) {
	in, err := matcher(overlay)
	if err != nil {
		return nil, err
	}
	commits = slices.Compact(slices.Sorted(slices.Values(commits)))
	if _, err := m.treesOf(ctx, commits); err != nil { // fetches them
		return nil, err
	}
	lines, err := m.lines(ctx, commits, most)
	if err != nil {
		return nil, err
	}
	steps, err := m.steps(ctx, lines, in)
	if err != nil {
		return nil, err
	}
	found := map[string][]Ancestor{}
	for _, line := range lines {
		found[line[0].Commit] = alike(line, steps)
	}
	return found, nil
}

// lines returns, for each commit, the commit itself and its first-parent ancestors, as far as the mirror has them.
func (m *Mirror) lines(ctx context.Context, commits []string, most int) ([][]Resolved, error) {
	var in strings.Builder
	for _, c := range commits {
		for back := range most + 1 {
			fmt.Fprintf(&in, "%s~%d^{commit}\n%s~%d^{tree}\n", c, back, c, back)
		}
	}
	lines := make([][]Resolved, len(commits))
	err := m.Git.Stream(ctx, command.Call{Args: []string{"cat-file", "--batch-check=%(objectname)"},
		Stdin: in.String()}, func(r *bufio.Reader) error {
		for i := range commits {
			whole := true
			for range most + 1 {
				var ids [2]string
				for k := range ids {
					line, err := r.ReadString('\n')
					if err != nil {
						return err
					}
					ids[k] = strings.TrimSuffix(line, "\n")
				}
				whole = whole && mirror.IsHash(ids[0]) && mirror.IsHash(ids[1]) // otherwise the line is "… missing"
				if whole {
					lines[i] = append(lines[i], Resolved{Commit: ids[0], Tree: ids[1]})
				}
			}
			if len(lines[i]) == 0 {
				return errors.New("a commit is missing")
			}
		}
		return nil
	})
	return lines, err
}

// step is a pair of trees: of a commit and of its first parent.
type step = [2]string

// outside is a path outside the overlay with its mode and object before and after a step.
type outside struct{ path, was, is string }

// steps returns the differences outside the overlay in each step of the lines.
func (m *Mirror) steps(ctx context.Context, lines [][]Resolved, in func(string) bool) (map[step][]outside, error) {
	var ordered []step
	all := map[step][]outside{}
	for _, line := range lines {
		for i := range line[1:] {
			s := step{line[i].Tree, line[i+1].Tree}
			if _, known := all[s]; known || s[0] == s[1] {
				continue
			}
			all[s] = nil
			ordered = append(ordered, s)
		}
	}
	if len(ordered) == 0 {
		return all, nil
	}
	err := m.differences(ctx, ordered, nil, func(i int, c change) error {
		if !in(c.Name) {
			all[ordered[i]] = append(all[ordered[i]], outside{c.Name, c.oldMode + " " + c.oldID, c.Mode + " " + c.ID})
		}
		return nil
	})
	return all, err
}

// alike returns the ancestors in a line with the same files outside the overlay as its first commit. A change that
// was reverted in between does not count.
func alike(line []Resolved, steps map[step][]outside) []Ancestor {
	var found []Ancestor
	// by path: the state in the first commit, and the different state in an ancestor
	first, now := map[string]string{}, map[string]string{}
	for i := range line[1:] {
		for _, o := range steps[step{line[i].Tree, line[i+1].Tree}] {
			if _, differs := now[o.path]; !differs {
				first[o.path] = o.was
			}
			now[o.path] = o.is
			if o.is == first[o.path] {
				delete(now, o.path)
			}
		}
		if len(now) == 0 {
			found = append(found, Ancestor{Commit: line[i+1].Commit, Back: i + 1})
		}
	}
	return found
}
