package tasks

import (
	"context"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
)

// Move is a name of a revision that stands for another commit than the one that the lock pins.
type Move struct {
	hclspec.Name
	Now string // commit
}

// Moved are the names in repos on this machine that have moved since they were pinned. Others would take the network to
// ask.
func (p *facts) Moved(ctx context.Context) (moved []Move, err error) {
	for i := range p.Spec.Repos {
		repo := &p.Spec.Repos[i]
		var names []hclspec.Name
		var spellings []string
		for _, n := range p.Spec.Names {
			if n.Repo == repo.Address && repo.Path != "" {
				names, spellings = append(names, n), append(spellings, n.Spelling)
			}
		}
		if len(names) == 0 {
			continue
		}
		mirror, err := p.mirror(ctx, repo.Address)
		if ctx.Err() != nil {
			return moved, context.Cause(ctx)
		}
		if err != nil {
			continue // a repository that is away stops only the nodes that need it
		}
		// a name that is gone cannot be taken, and what it stood for is still there
		found, _ := mirror.Resolve(ctx, spellings)
		told := map[string]bool{}
		for _, n := range names { // main comes before main^, which has moved with it
			now := found[n.Spelling].Commit
			base, _, _ := strings.Cut(strings.ReplaceAll(n.Spelling, "~", "^"), "^")
			if now != "" && now != n.Commit && !told[base] {
				told[base] = true
				moved = append(moved, Move{n, now})
			}
		}
	}
	return moved, nil
}
