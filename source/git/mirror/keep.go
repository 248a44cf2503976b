package mirror

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/source/git/command"
)

// keptName is the file that lists the commits whose trees the mirror has copied.
const keptName = "benchgraph-kept"

// Keep copies the trees of commits (40 digits), without their history, from a repository on this machine. Otherwise
// the mirror only borrows the objects of such a repository: amending a branch there and git gc would remove pinned
// commits. A mirror of any other repository has its own objects anyway.
func (m *Mirror) Keep(ctx context.Context, commits []string) error {
	if m.kind != repository {
		return nil
	}
	err := m.exclusively(ctx, func() error {
		text, err := os.ReadFile(filepath.Join(m.Dir, keptName))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		kept, has := strings.Fields(string(text)), map[string]bool{}
		for _, c := range kept {
			has[c] = true
		}
		added := slices.DeleteFunc(slices.Clone(commits), func(c string) bool { return has[c] })
		if len(added) == 0 {
			return nil
		}
		objects, err := m.treeObjects(ctx, added, kept)
		if err != nil {
			return err
		}
		_, err = m.Git.Output(ctx, command.Call{
			// Searching for more deltas than the repository has takes twice as long, to save a fifth of the space.
			Args: []string{"-c", "core.fsync=all", "pack-objects", "--quiet", "--non-empty", "--window=0",
				filepath.Join(m.Dir, "objects", "pack", "pack")},
			Stdin: objects + strings.Join(added, "\n") + "\n",
		})
		if err != nil {
			return err
		}
		return fs.Replace(filepath.Join(m.Dir, keptName), []byte(strings.Join(append(kept, added...), "\n")+"\n"))
	})
	if err != nil {
		return fmt.Errorf("mirror of %s: %w", m.Shown, err)
	}
	return nil
}

// treeObjects lists the objects in the trees of commits that are not in the trees of others, one a line.
func (m *Mirror) treeObjects(ctx context.Context, commits, others []string) (string, error) {
	var in, ids strings.Builder
	for _, c := range commits {
		fmt.Fprintf(&in, "%s^{tree}\n", c)
	}
	for _, c := range others {
		fmt.Fprintf(&in, "^%s^{tree}\n", c)
	}
	call := command.Call{Args: []string{"rev-list", "--objects", "--no-object-names", "--stdin"}, Stdin: in.String()}
	err := m.Git.Stream(ctx, call, func(r *bufio.Reader) error {
		_, err := io.Copy(&ids, r)
		return err
	})
	return ids.String(), err
}
