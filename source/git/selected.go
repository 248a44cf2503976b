package git

import (
	"context"
	"maps"
	"strings"

	"github.com/benchgraph/benchgraph/source/git/command"
)

// Select returns, by commit (40 digits), the wanted files and links in its tree, by path. With one process, it reads
// the whole tree of the newest commit, and for each other commit the differences from the next newer one.
func (m *Mirror) Select(ctx context.Context, commits []string, wanted func(Entry) bool) (map[string]map[string]Entry,
	error) {
	found, all := map[string]map[string]Entry{}, map[string]Entry{}
	if len(commits) == 0 {
		return found, nil
	}
	if _, err := m.treesOf(ctx, commits); err != nil {
		return nil, err
	}
	newest, err := m.Git.Output(ctx, command.Call{Stdin: strings.Join(commits, "\n") + "\n",
		Args: []string{"log", "--no-walk=sorted", "--format=%H %T", "--no-show-signature", "--stdin"}})
	if err != nil {
		return nil, err
	}
	var pairs [][2]string
	commits = nil
	before := emptyTree
	for line := range strings.Lines(newest) {
		commit, tree, _ := strings.Cut(strings.TrimSpace(line), " ")
		commits, pairs, before = append(commits, commit), append(pairs, [2]string{before, tree}), tree
	}
	changes := make([][]change, len(commits))
	err = m.differences(ctx, pairs, nil, func(i int, c change) error {
		if wanted(c.Entry) || wanted(Entry{c.Name, c.oldMode, c.oldID}) {
			changes[i] = append(changes[i], c)
		}
		return nil
	})
	for i, commit := range commits {
		for _, c := range changes[i] {
			if c.Mode != "000000" && wanted(c.Entry) {
				all[c.Name] = c.Entry
			} else {
				delete(all, c.Name)
			}
		}
		found[commit] = maps.Clone(all)
	}
	return found, err
}

// IsLink reports whether the entry is a symbolic link.
func (e Entry) IsLink() bool { return e.Mode == modeLink }
