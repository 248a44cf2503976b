package survey

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/source/git"
	"github.com/benchgraph/benchgraph/tasks"
)

// largestRead bounds the files of revisions that a preflight looks at.
const largestRead = 4 << 20

// historyOf asks git what the checks need to know beside files: parents, changed paths, whether patches apply, and
// whether they leave protected files alone. It returns whether git had all the answers.
func (p *survey) historyOf(ctx context.Context, in *preflight.Input, patches map[string]git.Patching) bool {
	whole := true
	for i := range p.Spec.Repos {
		repo := p.Spec.Repos[i].Address
		if err := p.historyIn(ctx, repo, in, patches); err != nil {
			fmt.Fprintf(p.Progress, "preflight: %s: %v\n", repo, err)
			whole = false
		}
	}
	for key := range patches {
		if _, tried := in.Patches[key]; !tried {
			in.Patches[key] = preflight.NotTried + "the repository cannot be read"
		}
	}
	return whole
}

func (p *survey) historyIn(ctx context.Context, repo hclspec.Address, in *preflight.Input,
	patches map[string]git.Patching) error {
	revs := map[string]bool{}
	var commits []*preflight.Commit
	for i := range in.Commits {
		if c := &in.Commits[i]; c.Repo == repo.Name {
			commits = append(commits, c)
			revs[c.Rev] = true
			if c.Parent != "" {
				revs[c.Parent] = true
			}
		}
	}
	for i := range p.Spec.Sources {
		if s := &p.Spec.Sources[i]; s.Repo == repo && s.Out == nil {
			revs[s.Rev] = true
		}
	}
	if len(revs) == 0 {
		return nil
	}
	mirror, err := p.Mirror(ctx, repo)
	if err != nil {
		return err
	}
	end := p.Asker.Watch(p.locationOf(repo), "revisions of "+repo.String())
	_, err = mirror.Resolve(ctx, slices.Sorted(maps.Keys(revs)))
	end()
	if err != nil {
		return err
	}
	list, steps := make([]string, len(commits)), make([]git.Step, len(commits))
	for i, c := range commits {
		list[i], steps[i].To = c.Rev, c.Rev
	}
	parents, err := mirror.Parents(ctx, list)
	if err != nil {
		return err
	}
	changed, err := mirror.Changed(ctx, steps)
	if err != nil {
		return err
	}
	for i, c := range commits {
		c.Known, c.Parents, c.Changed = true, parents[c.Rev], changed[i]
		if c.Parent == "" || c.Parent == c.Rev || len(c.Parents) > 0 && c.Parents[0] == c.Parent {
			continue
		}
		if c.Related, err = mirror.IsAncestor(ctx, c.Parent, c.Rev); err != nil {
			return err
		}
		if c.After, err = mirror.IsAncestor(ctx, c.Rev, c.Parent); err != nil {
			return err
		}
	}
	if err := p.findTrespasses(ctx, mirror, repo, in, patches); err != nil {
		return err
	}
	if err := p.tryPatches(ctx, mirror, repo, in, patches); err != nil {
		return err
	}
	return p.lookInto(ctx, mirror, repo, in)
}

// guarded are the sources of candidates that are refused if they change protected files.
func (p *survey) guarded() (all []*hclspec.Source) {
	for i := range p.Spec.Sources {
		if s := &p.Spec.Sources[i]; s.Candidate != "" && s.Out == nil && len(s.Protect) > 0 && !s.Copies {
			all = append(all, s)
		}
	}
	return all
}

// findTrespasses finds the candidates of a repo whose revision or patch changes protected files.
func (p *survey) findTrespasses(ctx context.Context, mirror *git.Mirror, repo hclspec.Address, in *preflight.Input,
	patches map[string]git.Patching) error {
	var steps []git.Step
	all := p.guarded()
	for _, s := range all {
		if s.Repo == repo && s.Against != "" && s.Against != s.Rev {
			steps = append(steps, git.Step{From: s.Against, To: s.Rev})
		}
	}
	changed, err := mirror.Changed(ctx, steps)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Repo != repo {
			continue
		}
		var differs []string
		if i := slices.Index(steps, git.Step{From: s.Against, To: s.Rev}); i >= 0 {
			differs = slices.Clone(changed[i]) // of several sources, perhaps
		}
		if f := tasks.Trespass(s, differs, patches[s.Candidate].Text); f != nil {
			in.Trespasses[s.Candidate] = preflight.Refusal{Why: f.Message + ": " + f.Evidence, Remedy: f.Remedy}
		}
	}
	return nil
}

// tryPatches tries the patches of a repo's candidates.
func (p *survey) tryPatches(ctx context.Context, mirror *git.Mirror, repo hclspec.Address, in *preflight.Input,
	patches map[string]git.Patching) error {
	var keys []string
	var all []git.Patching
	files := map[string]string{}
	for _, c := range p.Spec.Candidates {
		files[c.Key] = c.Patch
	}
	for _, c := range in.Candidates {
		if one, ok := patches[c.Key]; ok && c.Tree.Repo == repo.Name {
			keys, all = append(keys, c.Key), append(all, one)
		}
	}
	if len(all) == 0 {
		return nil
	}
	answers, err := mirror.CheckPatches(ctx, all)
	if err != nil {
		return err
	}
	for i, key := range keys {
		in.Patches[key] = ""
		if answers[i] != nil {
			in.Patches[key] = fmt.Sprintf("%s does not apply to %s: %v", files[key], tasks.ShortRev(all[i].Commit),
				answers[i])
		}
	}
	return nil
}

// treeReader reads files of revisions from the mirrors of a project.
type treeReader struct{ p *survey }

func (r treeReader) mirror(ctx context.Context, repo string) (*git.Mirror, error) {
	return r.p.Mirror(ctx, hclspec.Address{Kind: "repo", Name: repo})
}

// Dirs implements preflight.Reader.
func (r treeReader) Dirs(ctx context.Context, at []preflight.Place) (map[preflight.Place][]preflight.Entry, error) {
	byRepo := map[string][]git.Place{}
	for _, p := range at {
		byRepo[p.Repo] = append(byRepo[p.Repo], git.Place{Commit: p.Rev, Path: p.Path})
	}
	found := map[preflight.Place][]preflight.Entry{}
	for repo, places := range byRepo {
		mirror, err := r.mirror(ctx, repo)
		if err != nil {
			return nil, err
		}
		dirs, err := mirror.Dirs(ctx, places)
		if err != nil {
			return nil, err
		}
		for place, list := range dirs {
			entries := make([]preflight.Entry, len(list))
			for i, e := range list {
				entries[i] = preflight.Entry{Name: e.Name, Dir: e.IsDir(), ID: e.ID}
			}
			found[preflight.Place{Repo: repo, Rev: place.Commit, Path: place.Path}] = entries
		}
	}
	return found, nil
}

// Files implements preflight.Reader.
func (r treeReader) Files(ctx context.Context, repo string, ids []string) (map[string][]byte, error) {
	mirror, err := r.mirror(ctx, repo)
	if err != nil {
		return nil, err
	}
	defer r.p.Asker.Watch(r.p.locationOf(hclspec.Address{Kind: "repo", Name: repo}), "files of repo."+repo)()
	return mirror.Blobs(ctx, ids, largestRead)
}

func (p *survey) locationOf(repo hclspec.Address) string {
	if r := tasks.RepoOf(p.Spec, repo); r != nil {
		return r.URL + r.Path
	}
	return ""
}
