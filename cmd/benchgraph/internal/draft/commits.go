package draft

import (
	"context"
	"errors"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/source/git/mirror"
	"github.com/benchgraph/benchgraph/source/git/worktree"
)

// mostCommits bounds the commits of a range in one file: each is built and measured twice.
const mostCommits = 100

// TakeRange adds the commits of a range, such as A..B; of the last commit if span is empty.
func (p *Project) TakeRange(ctx context.Context, w *worktree.Tree, span string) error {
	last := span == ""
	if last {
		span = "HEAD^..HEAD"
	}
	list, more, err := w.Range(ctx, span, mostCommits)
	const remedy = "Write -range A..B, with revisions of the repository, the older one first."
	unknown, lost := errors.AsType[*mirror.UnknownRev](err)
	switch {
	case lost && unknown.Shallow:
		return cli.Hint("Complete the clone with git fetch --unshallow.", "init: %s is a shallow clone without the "+
			"commit %s", w.Top, unknown.Rev)
	case lost && last:
		return cli.Hint("Commit a change first: it is measured against its parent. benchgraph try -bench measures "+
			"changes that are not committed.", "init: the last commit of %s has no parent to measure against", w.Top)
	case err != nil:
		return cli.Hint(remedy, "init: -range %s: %w", span, err)
	case len(list) == 0:
		return cli.Hint(remedy, "init: -range %s holds no commit with one parent", span)
	case more:
		return cli.Hint("Narrow the range, or list the commits in a table.", "init: -range %s holds more than %d "+
			"commits", span, mostCommits)
	}
	digits := 8
	for n := 8; n < 40; n++ {
		seen := map[string]bool{}
		for _, c := range list {
			seen[c.Commit[:n]] = true
		}
		if digits = n; len(seen) == len(list) {
			break
		}
	}
	for _, c := range list {
		p.Commits = append(p.Commits, Commit{Name: c.Commit[:digits], Rev: c.Commit, Title: view.Clean(c.Title)})
	}
	return nil
}
