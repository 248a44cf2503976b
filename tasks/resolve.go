package tasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/sync/errgroup"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/download"
	"github.com/benchgraph/benchgraph/internal/git"
)

// builtHere stands in the lock for: no prebuilt source serves this wheel.
const builtHere = "build"

// resolve pins what the lock does not pin yet: revisions, the parts of trees outside overlays, the sources of wheels.
// It returns whether the lock changed.
func (p *Project) resolve(ctx context.Context) (bool, hcl.Diagnostics) {
	if p.forgetMoved() { // what was read has the old pins in it
		if diags := p.reload(); diags.HasErrors() {
			return false, diags
		}
	}
	revs, diags := p.resolveRevisions(ctx)
	if diags.HasErrors() {
		return false, diags
	}
	if revs {
		if more := p.reload(); more.HasErrors() {
			return false, append(diags, more...)
		}
	}
	outsides, more := p.resolveOutsides(ctx)
	diags = append(diags, more...)
	wheels, more := p.resolveWheels(ctx)
	diags = append(diags, more...)
	images, more := p.resolveImages(ctx)
	return revs || outsides || wheels || images, append(diags, more...)
}

// wantedRev is a revision that the file names, and where.
type wantedRev struct {
	rev string
	at  hcl.Range
}

func (p *Project) resolveRevisions(ctx context.Context) (bool, hcl.Diagnostics) {
	var diags hcl.Diagnostics
	changed := false
	for i := range p.Spec.Repos {
		repo := &p.Spec.Repos[i]
		missing := p.missingRevisions(repo)
		if len(missing) == 0 {
			continue
		}
		if p.Locked {
			diags = append(diags, problem(missing[0].at, "Lock file is incomplete",
				fmt.Sprintf("%s of %s is not pinned in the lock file, and -locked forbids to add it. Run without -locked once and commit the lock file.", missing[0].rev, repo.Address)))
			continue
		}
		found, more := p.lookUp(ctx, repo, missing)
		diags = append(diags, more...)
		for rev, r := range found {
			p.lockOf(repo.Address.Name).Revs[rev] = hclspec.RevLock{Commit: r.Commit, Tree: r.Tree}
			changed = true
		}
	}
	p.indexTrees()
	return changed, diags
}

// forgetMoved drops the pins of repos that are now taken from somewhere else. It returns whether there were any.
func (p *Project) forgetMoved() bool {
	if p.Lock.Repos == nil {
		p.Lock.Repos = map[string]hclspec.RepoLock{}
	}
	moved := false
	for i := range p.Spec.Repos {
		name, location := p.Spec.Repos[i].Address.Name, p.Spec.Repos[i].URL+p.Spec.Repos[i].Path
		l, ok := p.Lock.Repos[name]
		if ok && l.Location == location {
			continue
		}
		moved = moved || len(l.Revs) > 0
		p.Lock.Repos[name] = hclspec.RepoLock{Location: location, Revs: map[string]hclspec.RevLock{}, Outside: map[string]map[string]string{}}
	}
	p.indexTrees()
	return moved
}

func (p *Project) lockOf(repo string) hclspec.RepoLock {
	l := p.Lock.Repos[repo]
	if l.Revs == nil {
		l.Revs = map[string]hclspec.RevLock{}
	}
	if l.Outside == nil {
		l.Outside = map[string]map[string]string{}
	}
	p.Lock.Repos[repo] = l
	return l
}

func (p *Project) indexTrees() {
	p.trees = map[string]string{}
	for _, l := range p.Lock.Repos {
		for _, r := range l.Revs {
			p.trees[r.Commit] = r.Tree
		}
	}
}

// missingRevisions are the revisions of a repo whose tree is not known, each once.
func (p *Project) missingRevisions(repo *hclspec.Repo) []wantedRev {
	var missing []wantedRev
	seen := map[string]bool{}
	want := func(rev string, at hcl.Range) {
		if rev != "" && p.trees[rev] == "" && !seen[rev] {
			seen[rev] = true
			missing = append(missing, wantedRev{rev, at})
		}
	}
	for _, c := range p.Spec.Commits {
		if c.Repo == repo.Address {
			want(c.Rev, c.RevRange)
			want(c.Parent, c.ParentRange)
		}
	}
	for _, s := range p.Spec.Sources {
		if s.Repo == repo.Address {
			want(s.Rev, s.RevRange)
		}
	}
	return missing
}

// lookUp asks the repo for revisions. Each unknown one is a diagnostic of its own.
func (p *Project) lookUp(ctx context.Context, repo *hclspec.Repo, missing []wantedRev) (map[string]git.Resolved, hcl.Diagnostics) {
	mirror, err := p.mirror(ctx, repo.Address)
	if err != nil {
		return nil, hcl.Diagnostics{problem(repo.Range, "Repository cannot be read", fmt.Sprintf("%s: %v", repo.Address, err))}
	}
	revs := make([]string, len(missing))
	for i, w := range missing {
		revs[i] = w.rev
	}
	fmt.Fprintf(p.Progress, "resolving %d revisions of %s\n", len(revs), repo.Address)
	found, err := mirror.Resolve(ctx, revs)
	var diags hcl.Diagnostics
	unknowns := map[string]bool{}
	for _, e := range unjoin(err) {
		var unknown *git.UnknownRev
		if errors.As(e, &unknown) {
			unknowns[unknown.Rev] = true
		}
	}
	for _, e := range unjoin(err) {
		var unknown *git.UnknownRev
		if !errors.As(e, &unknown) {
			diags = append(diags, problem(repo.Range, "Repository cannot be read", fmt.Sprintf("%s: %v", repo.Address, e)))
			continue
		}
		if commit, ok := strings.CutSuffix(unknown.Rev, "^"); ok && unknowns[commit] {
			continue // the same mistake once more: what is not there has no parent
		}
		i := slices.IndexFunc(missing, func(w wantedRev) bool { return w.rev == unknown.Rev })
		diags = append(diags, problem(missing[max(i, 0)].at, "Unknown revision", unknownText(repo, unknown)))
	}
	return found, diags
}

func unknownText(repo *hclspec.Repo, u *git.UnknownRev) string {
	const complete = " It is a shallow clone: complete it with git fetch --unshallow, or name the repository that it was cloned from."
	if u.Ambiguous {
		return fmt.Sprintf("%q stands for several commits of %s: write one of them as a whole: %s.", u.Rev, repo.Address, strings.Join(u.Near, ", "))
	}
	commit, parent := strings.CutSuffix(u.Rev, "^")
	if parent && u.Shallow {
		return fmt.Sprintf("%s does not have the parent of commit %q.", repo.Address, commit) + complete
	}
	if parent {
		return fmt.Sprintf("%s: commit %q has no parent. Say which revision it is to be measured against: parent = \"…\".", repo.Address, commit)
	}
	text := fmt.Sprintf("%q %s %s: write a commit, branch or tag that is there.", u.Rev, u.Reason, repo.Address)
	if u.Shallow {
		text += complete
	}
	if len(u.Near) > 0 {
		text += " Did you mean " + strings.Join(u.Near, ", ") + "?"
	}
	return text
}

// unjoin lists the errors that were joined.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

func problem(at hcl.Range, summary, detail string) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &at}
}

// mirror opens the mirror of a repo, once.
func (p *Project) mirror(ctx context.Context, a hclspec.Address) (*git.Mirror, error) {
	p.mirrorsMu.Lock()
	defer p.mirrorsMu.Unlock()
	if m := p.mirrors[a.Name]; m != nil {
		return m, nil
	}
	i := slices.IndexFunc(p.Spec.Repos, func(r hclspec.Repo) bool { return r.Address == a })
	repo := p.Spec.Repos[i]
	location := repo.URL
	if repo.Path != "" {
		location = repo.Path
		if !filepath.IsAbs(location) {
			location = filepath.Join(p.Spec.Dir, location)
		}
	}
	m, err := git.Open(ctx, git.Options{Exec: p.Host, Dir: filepath.Join(p.StateDir, "mirrors", a.Name), Location: location, Env: p.GitEnviron, Offline: p.Offline})
	if err == nil {
		p.mirrors[a.Name] = m
	}
	return m, err
}

// outsideOf is what one wheel block needs to know of one repo: the digests of what its overlay does not cover.
type outsideOf struct {
	repo    hclspec.Address
	overlay string
}

// resolveOutsides finds the digests of what of each built tree the overlay does not cover, one batch for each overlay.
func (p *Project) resolveOutsides(ctx context.Context) (bool, hcl.Diagnostics) {
	sources := map[hclspec.Address]*hclspec.Source{}
	for i := range p.Spec.Sources {
		sources[p.Spec.Sources[i].Address] = &p.Spec.Sources[i]
	}
	wanted := map[outsideOf][]string{}
	first := map[outsideOf]*hclspec.Wheel{}
	for i := range p.Spec.Wheels {
		w := &p.Spec.Wheels[i]
		src := sources[w.Source]
		if len(w.Overlay) == 0 || src == nil {
			continue
		}
		key := outsideOf{src.Repo, patterns(w.Overlay)}
		if p.lockOf(src.Repo.Name).Outside[key.overlay][src.Rev] == "" {
			wanted[key], first[key] = append(wanted[key], src.Rev), w
		}
	}
	for key, commits := range wanted {
		w := first[key]
		if p.Locked {
			return false, hcl.Diagnostics{problem(w.Range, "Lock file is incomplete",
				fmt.Sprintf("The lock file does not have what the overlay of %s leaves of %s, and -locked forbids to add it. Run without -locked once and commit the lock file.", w.Address, short(commits[0])))}
		}
		mirror, err := p.mirror(ctx, key.repo)
		if err != nil {
			return false, hcl.Diagnostics{problem(w.Range, "Repository cannot be read", err.Error())}
		}
		digests, err := mirror.OutsideAll(ctx, commits, w.Overlay)
		if err != nil {
			return false, hcl.Diagnostics{problem(w.Range, "Tree cannot be read", fmt.Sprintf("%s: %v", w.Address, err))}
		}
		outside := p.lockOf(key.repo.Name).Outside
		if outside[key.overlay] == nil {
			outside[key.overlay] = map[string]string{}
		}
		maps.Copy(outside[key.overlay], digests)
	}
	return len(wanted) > 0, nil
}

func patterns(overlay []string) string { return strings.Join(overlay, " ") }

// resolveWheels asks, in order, which prebuilt source has each wheel. What was found is pinned: a wheel that appears
// later changes nothing until the lock is edited.
func (p *Project) resolveWheels(ctx context.Context) (bool, hcl.Diagnostics) {
	var open []*hclspec.Wheel
	for i := range p.Spec.Wheels {
		w := &p.Spec.Wheels[i]
		if len(w.Prebuilt) > 0 && p.servedBy(w) == "" {
			open = append(open, w)
		}
	}
	if len(open) == 0 || p.Offline {
		return false, nil
	}
	if p.Locked {
		return false, hcl.Diagnostics{problem(open[0].Range, "Lock file is incomplete",
			fmt.Sprintf("The lock file does not say which prebuilt source serves %s, and -locked forbids to add it. Run without -locked once and commit the lock file.", open[0].Address))}
	}
	var mu sync.Mutex
	var diags hcl.Diagnostics
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	changed := false
	for _, w := range open {
		g.Go(func() error {
			url, err := p.serving(ctx, w.Prebuilt)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				d := problem(w.Range, "Prebuilt source does not answer", fmt.Sprintf("%s: %v. It will be asked again; until then the wheel counts as to be built.", w.Address, err))
				d.Severity = hcl.DiagWarning
				diags = append(diags, d)
				return nil
			}
			p.pinWheel(w, url)
			changed = true
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return changed, append(diags, problem(hcl.Range{}, "Prebuilt sources", err.Error()))
	}
	slices.SortFunc(diags, func(a, b *hcl.Diagnostic) int { return strings.Compare(a.Detail, b.Detail) })
	return changed, diags
}

// servedBy is what the lock says of a wheel: the URL that serves it, builtHere, or nothing. A URL that the file no longer
// names says nothing: it may be that of another revision.
func (p *Project) servedBy(w *hclspec.Wheel) string {
	url := p.Lock.Wheels[w.Address.Name][w.Address.Key]
	if url != builtHere && !slices.Contains(w.Prebuilt, url) {
		return ""
	}
	return url
}

func (p *Project) pinWheel(w *hclspec.Wheel, url string) {
	if p.Lock.Wheels == nil {
		p.Lock.Wheels = map[string]map[string]string{}
	}
	byKey := maps.Clone(p.Lock.Wheels[w.Address.Name])
	if byKey == nil {
		byKey = map[string]string{}
	}
	byKey[w.Address.Key] = url
	p.Lock.Wheels[w.Address.Name] = byKey
}

// serving is the first of the URLs at which there is a file; builtHere when there is none at any.
func (p *Project) serving(ctx context.Context, urls []string) (string, error) {
	for _, url := range urls {
		_, err := download.Head(ctx, download.Options{URL: url, Client: p.HTTP, AllowLocal: true})
		var refused *download.Refused
		switch {
		case err == nil:
			return url, nil
		case !errors.As(err, &refused):
			return "", err
		}
	}
	return builtHere, nil
}
