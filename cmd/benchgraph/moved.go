package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/campaign/pin"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/source/git/worktree"
)

// moved warns of names that now stand for other commits than the measured ones, and of uncommitted changes.
func (s *session) moved(ctx context.Context) error {
	moves, err := pin.Moved(ctx, s.project.Facts)
	if err != nil {
		return err
	}
	var diags hcl.Diagnostics
	for _, m := range moves {
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "A name has moved",
			Detail: fmt.Sprintf("%q of %s stands for %s now, and the lock file pins it to %s, which is measured. "+
				"plan -upgrade shows what follows from the new commit; apply -upgrade takes it. Where each run "+
				"measures another commit, as in CI, give its whole hash.",
				m.Spelling, m.Repo, m.Now[:12], m.Commit[:12])})
	}
	s.warn(diags)
	var asked []hclspec.Address
	for _, n := range s.project.Spec.Names {
		if !slices.Contains(asked, n.Repo) {
			asked = append(asked, n.Repo)
			s.uncommittedIn(ctx, n.Repo)
		}
	}
	return nil
}

// uncommittedIn notes changes in the work tree of a repo if its last commit is measured by a name.
func (s *session) uncommittedIn(ctx context.Context, repo hclspec.Address) {
	spec := s.project.Spec
	i := slices.IndexFunc(spec.Repos, func(r hclspec.Repo) bool { return r.Address == repo })
	if i < 0 || spec.Repos[i].Path == "" {
		return
	}
	w, err := worktree.Open(ctx, s.host, spec.Path(spec.Repos[i].Path), s.gitEnviron())
	if err != nil {
		return // a bare repository or a bundle
	}
	last := func(n hclspec.Name) bool { return n.Repo == repo && n.Commit == w.Head }
	if !slices.ContainsFunc(spec.Names, last) {
		return
	}
	files, err := w.Changes(ctx, s.ownFiles(spec))
	if err != nil || len(files) == 0 {
		return
	}
	s.note("Note: %s of %s %s uncommitted changes, which no commit has and nothing here measures: benchgraph try "+
		"measures them.", view.Count(len(files), "file"), repo,
		map[bool]string{true: "has", false: "have"}[len(files) == 1])
}
