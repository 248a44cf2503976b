package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/preflight/revision"
	"github.com/benchgraph/benchgraph/source/git"
	"github.com/benchgraph/benchgraph/source/git/patch"
	"github.com/benchgraph/benchgraph/source/protect"
	"github.com/benchgraph/benchgraph/tasks"
)

// largestRead bounds the bytes of a file of a revision that a preflight reads.
const largestRead = 4 << 20

// historyOf asks git for the facts that the checks need beside files: parents, changed paths, whether patches apply,
// and whether they leave protected files alone. It reports whether git gave all answers.
func (p *survey) historyOf(ctx context.Context, in *preflight.Input, patches map[string]git.Patching) bool {
	whole := true
	for i := range p.Spec.Repos {
		repo := p.Spec.Repos[i].Address
		err := p.historyIn(ctx, repo, in, patches)
		if err != nil && !errors.Is(err, errLost) {
			fmt.Fprintf(p.Progress, "preflight: %s: %v\n", repo, err)
		}
		whole = whole && err == nil
	}
	for key := range patches {
		if _, tried := in.Patches[key]; !tried {
			in.Patches[key] = preflight.NotTried + cmp.Or(in.Lost[patches[key].Commit].Why,
				"the repository cannot be read")
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
	found, err := mirror.Resolve(ctx, slices.Sorted(maps.Keys(revs)))
	end()
	lost := p.lose(repo, revs, found, err, in)
	if err != nil && !lost {
		return err
	}
	commits = slices.DeleteFunc(commits, func(c *preflight.Commit) bool {
		return in.Lost[c.Rev].Why != "" || in.Lost[c.Parent].Why != ""
	})
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
	if err := p.checkProtect(ctx, mirror, repo, in, patches); err != nil {
		return err
	}
	if err := p.tryPatches(ctx, mirror, repo, in, patches); err != nil {
		return err
	}
	if err := p.lookInto(ctx, mirror, repo, in); err != nil || !lost {
		return err
	}
	return errLost
}

// errLost keeps findings from being stored, since a lost commit may come back. A finding names the lost commits.
var errLost = errors.New("the repository lacks commits that are pinned")

// lose notes which revisions of a repo cannot be read, by the result of resolving all of them together. It reports
// whether the repo was read and lacks some of them: nothing can be made of these, and the others go on.
func (p *survey) lose(repo hclspec.Address, revs map[string]bool, found map[string]git.Resolved, err error,
	in *preflight.Input) (lost bool) {
	if err == nil {
		return false
	}
	if in.Lost == nil {
		in.Lost = map[string]preflight.Refusal{}
	}
	_, answered := errors.AsType[*git.UnknownRev](err)
	_, failed := errors.AsType[*git.FetchError](err)
	for rev := range revs {
		if _, there := found[rev]; there {
			continue
		}
		if failed || !answered {
			in.Lost[rev] = preflight.Refusal{Why: repo.String() + " cannot be read"}
			continue
		}
		one := preflight.Refusal{Why: fmt.Sprintf("commit %s is not in %s", tasks.ShortRev(rev), repo),
			Remedy: "bring the commit back into the repository, or measure another one (plan -upgrade shows what " +
				"follows from where a branch is now)"}
		in.Lost[rev], lost = one, true
		p.Lost[rev] = "needs " + strings.Replace(one.Why, " is", ", which is", 1) + ": " + one.Remedy
	}
	return lost
}

// guarded returns the readable sources of a repo's candidates that have protected files.
func (p *survey) guarded(repo hclspec.Address, in *preflight.Input) (all []*hclspec.Source) {
	for i := range p.Spec.Sources {
		s := &p.Spec.Sources[i]
		if s.Repo == repo && s.Candidate != "" && s.Out == nil && len(s.Protect) > 0 &&
			in.Lost[s.Against].Why+in.Lost[s.Rev].Why == "" {
			all = append(all, s)
		}
	}
	return all
}

// checkProtect finds the candidates of a repo whose revision or patch changes protected files, and the patterns of
// protect that match nothing. Candidates that copy protected files from the baseline may change them.
func (p *survey) checkProtect(ctx context.Context, mirror *git.Mirror, repo hclspec.Address, in *preflight.Input,
	patches map[string]git.Patching) error {
	all := p.guarded(repo, in)
	changes, err := protect.Changes(ctx, mirror, all, func(s *hclspec.Source) []byte {
		return patches[s.Candidate].Text
	})
	if err != nil {
		return err
	}
	baselines, err := protect.Read(ctx, mirror, changes)
	if err != nil {
		return err
	}
	for i, s := range all {
		if s.Copies {
			continue
		}
		if f, err := tasks.Trespass(ctx, baselines, s, changes[i]); err != nil {
			return err
		} else if f != nil {
			in.Trespasses[s.Candidate] = preflight.Refusal{Why: f.Message + ": " + f.Evidence, Remedy: f.Remedy}
		}
	}
	idle, err := baselines.Idle(ctx, changes)
	if err != nil {
		return err
	}
	for i, s := range all {
		for _, pattern := range slices.Sorted(maps.Keys(idle[i])) {
			one := preflight.Refusal{Why: fmt.Sprintf("%q matches no file of the baseline's tree", pattern),
				Remedy: "correct it, unless it is there for files that a candidate may add"}
			if near := idle[i][pattern]; near != "" {
				one.Remedy = fmt.Sprintf("did you mean %q? Else %s", near, one.Remedy)
			}
			in.Idle[s.Candidate] = append(in.Idle[s.Candidate], one)
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
		if one, ok := patches[c.Key]; ok && c.Tree.Repo == repo.Name && in.Lost[one.Commit].Why == "" {
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
		if in.Patches[key] = ""; patch.OnlyModes(all[i].Text) {
			in.Patches[key] = preflight.OnlyModes
		}
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
func (r treeReader) Dirs(ctx context.Context, at []revision.Place) (map[revision.Place][]revision.Entry, error) {
	byRepo := map[string][]git.Place{}
	for _, p := range at {
		byRepo[p.Repo] = append(byRepo[p.Repo], git.Place{Commit: p.Rev, Path: p.Path})
	}
	found := map[revision.Place][]revision.Entry{}
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
			entries := make([]revision.Entry, len(list))
			for i, e := range list {
				entries[i] = revision.Entry{Name: e.Name, Dir: e.IsDir(), Link: e.IsLink(), ID: e.ID}
			}
			found[revision.Place{Repo: repo, Rev: place.Commit, Path: place.Path}] = entries
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
