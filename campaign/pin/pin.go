// Package pin finds out what the names in a project's files stand for, and notes it in the lock: revisions in git, the
// content of trees outside overlays, which source has a prebuilt wheel, the digests of images. A plan whose lock pins
// all of its names needs no network.
package pin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/source/git"
	"github.com/benchgraph/benchgraph/source/history"
	"github.com/benchgraph/benchgraph/tasks"
)

// A Resolver pins names in the lock of its facts: revisions, the parts of trees outside overlays, the sources of
// wheels, images.
type Resolver struct {
	*tasks.Facts
	History *history.Cache // what the evaluation asks of the histories of repos; nil: nothing
	Locked  bool           // refuse to change the lock
	Upgrade bool           // names of revisions stand for what they stand for now, whatever a mirror knows of them

	Reload func() hcl.Diagnostics // evaluates the files again with the lock
}

// Resolve pins the names that the lock does not pin yet, and reports whether the lock changed. The files are evaluated
// again as often as a pin leads to other names. Progress of the facts tells which names are looked up.
func (p *Resolver) Resolve(ctx context.Context) (bool, hcl.Diagnostics) {
	if p.forgetMoved() { // what was read has the old pins in it
		if diags := p.Reload(); diags.HasErrors() {
			return false, diags
		}
	}
	p.Asker.Begin()
	defer func() {
		if err := p.Asker.Save(); err != nil {
			fmt.Fprintf(p.Progress, "%v\n", err)
		}
	}()
	revs, diags := p.resolveRevisions(ctx)
	if diags.HasErrors() {
		return false, diags
	}
	if revs {
		if more := p.Reload(); more.HasErrors() {
			return false, append(diags, more...)
		}
	}
	asked, more := p.resolveHistory(ctx)
	if diags = append(diags, more...); diags.HasErrors() {
		return false, diags
	}
	outsides, more := p.resolveOutsides(ctx)
	diags = append(diags, more...)
	wheels, more := p.resolveWheels(ctx)
	diags = append(diags, more...)
	images, more := p.resolveImages(ctx)
	return revs || asked || outsides || wheels || images, append(diags, more...)
}

// wantedRev is a revision that the file names, and where.
type wantedRev struct {
	rev string
	at  hcl.Range
}

func (p *Resolver) resolveRevisions(ctx context.Context) (bool, hcl.Diagnostics) {
	var diags hcl.Diagnostics
	changed := false
	for i := range p.Spec.Repos {
		repo := &p.Spec.Repos[i]
		missing := p.missingRevisions(repo)
		if len(missing) == 0 {
			continue
		}
		if p.Locked {
			diags = append(diags, incomplete(missing[0].at, "%s of %s is not pinned in the lock file", missing[0].rev,
				repo.Address))
			continue
		}
		found, more := p.lookUp(ctx, repo, missing)
		diags = append(diags, more...)
		for rev, r := range found {
			p.lockOf(repo.Address.Name).Revs[rev] = r
			changed = true
		}
	}
	IndexTrees(p.Facts)
	return changed, diags
}

// forgetMoved drops the pins of repos that are now taken from somewhere else, except those of revisions that are
// written in full: such a revision is the same commit everywhere. It reports whether a pin was dropped.
func (p *Resolver) forgetMoved() bool {
	if p.Lock.Repos == nil {
		p.Lock.Repos = map[string]lockfile.Repo{}
	}
	moved := false
	for i := range p.Spec.Repos {
		name, location := p.Spec.Repos[i].Address.Name, p.Spec.Repos[i].URL+p.Spec.Repos[i].Path
		l, ok := p.Lock.Repos[name]
		if ok && l.Location == location {
			continue
		}
		kept := lockfile.Repo{Location: location, Revs: map[string]lockfile.Rev{}, Outside: l.Outside,
			Described: l.Described}
		for rev, pin := range l.Revs {
			if commit := strings.TrimSuffix(rev, "^"); fullRevision().MatchString(commit) && pin.Unknown == "" {
				kept.Revs[rev] = pin
			}
		}
		if kept.Outside == nil {
			kept.Outside = map[string]map[string]string{}
		}
		moved = moved || len(kept.Revs) < len(l.Revs)
		p.Lock.Repos[name] = kept
	}
	IndexTrees(p.Facts)
	return moved
}

// fullRevision matches the hash of a commit, whole.
var fullRevision = lazyregexp.New(`^[0-9a-f]{40}$`)

// lockOf is what the lock file pins of a repo. A commit may have none, and then nothing is added to the file.
func (p *Resolver) lockOf(repo string) lockfile.Repo {
	l, declared := p.Lock.Repos[repo]
	if l.Revs == nil {
		l.Revs = map[string]lockfile.Rev{}
	}
	if l.Outside == nil {
		l.Outside = map[string]map[string]string{}
	}
	if declared {
		p.Lock.Repos[repo] = l
	}
	return l
}

// IndexTrees notes in the facts the tree of each commit that their lock pins.
func IndexTrees(p *tasks.Facts) {
	p.Trees = map[string]string{}
	for _, l := range p.Lock.Repos {
		for _, r := range l.Revs {
			p.Trees[r.Commit] = r.Tree
		}
	}
}

// missingRevisions are the revisions of a repo whose tree is not known, each once.
func (p *Resolver) missingRevisions(repo *hclspec.Repo) []wantedRev {
	var missing []wantedRev
	seen := map[string]bool{}
	want := func(rev string, at hcl.Range) {
		if rev != "" && p.Trees[rev] == "" && !seen[rev] && p.lockOf(repo.Address.Name).Revs[rev].Unknown == "" {
			seen[rev] = true
			missing = append(missing, wantedRev{rev, at})
		}
	}
	for _, c := range p.Spec.Commits {
		if c.Repo == repo.Address && c.Out == nil {
			want(c.Rev, c.RevRange)
			want(c.Parent, c.ParentRange)
		}
	}
	for _, r := range p.Spec.Revisions {
		if r.Repo == repo.Address {
			want(r.Rev, repo.Range)
		}
	}
	for _, s := range p.Spec.Sources {
		if s.Repo == repo.Address && s.Out == nil {
			want(s.Rev, s.RevRange)
		}
	}
	return missing
}

// lookUp asks the repo for revisions. Of each that it does not have it says why: the files are read again with that,
// and whatever the revision is needed for has a mistake.
func (p *Resolver) lookUp(ctx context.Context, repo *hclspec.Repo, missing []wantedRev) (map[string]lockfile.Rev,
	hcl.Diagnostics) {
	mirror, err := p.Mirror(ctx, repo.Address)
	if err != nil {
		return nil, hcl.Diagnostics{p.unreadable(repo.Address, err)}
	}
	revs := make([]string, len(missing))
	for i, w := range missing {
		revs[i] = w.rev
	}
	word := "revisions"
	if len(revs) == 1 {
		word = "revision"
	}
	fmt.Fprintf(p.Progress, "resolving %d %s of %s\n", len(revs), word, repo.Address)
	end := p.Asker.Watch(repo.URL+repo.Path, "revisions of "+repo.Address.String())
	if p.Upgrade {
		err = mirror.Fetch(ctx, revs...)
	}
	if err != nil {
		end()
		return nil, hcl.Diagnostics{p.unreadable(repo.Address, err)}
	}
	resolved, err := mirror.Resolve(ctx, revs)
	end()
	found := map[string]lockfile.Rev{}
	for rev, r := range resolved {
		found[rev] = lockfile.Rev{Commit: r.Commit, Tree: r.Tree}
	}
	var diags hcl.Diagnostics
	for _, e := range unjoin(err) {
		if unknown, ok := errors.AsType[*git.UnknownRev](e); ok {
			found[unknown.Rev] = lockfile.Rev{Unknown: unknownText(repo, unknown)}
			continue
		}
		diags = append(diags, p.unreadable(repo.Address, e))
	}
	return found, diags
}

func unknownText(repo *hclspec.Repo, u *git.UnknownRev) string {
	const complete = " It is a shallow clone: complete it with git fetch --unshallow, or name the repository that " +
		"it was cloned from."
	if u.Ambiguous {
		return fmt.Sprintf("%q stands for several commits of %s: write one of them as a whole: %s.", u.Rev,
			repo.Address, strings.Join(u.Near, ", "))
	}
	commit, parent := strings.CutSuffix(u.Rev, "^")
	if parent && u.Shallow {
		return fmt.Sprintf("%s does not have the parent of commit %q.", repo.Address, commit) + complete
	}
	if parent {
		return fmt.Sprintf("%s: commit %q has no parent. Say which revision it is to be measured against: parent = "+
			"\"…\".", repo.Address, commit)
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

// Revision asks a repo of a spec for a revision as it is now, whatever the lock pins: a commit of 40 digits. The error
// is that of git, or says why the repo has no such revision.
func Revision(ctx context.Context, c tasks.Config, spec *hclspec.Spec, repo hclspec.Address, rev string) (string,
	error) {
	p := tasks.NewFacts(c, spec, &lockfile.Lock{})
	mirror, err := p.Mirror(ctx, repo)
	if err == nil && !c.Offline && !fullRevision().MatchString(rev) {
		err = mirror.Fetch(ctx, rev) // a branch that the mirror has may have moved
	}
	if err != nil {
		return "", err
	}
	found, err := mirror.Resolve(ctx, []string{rev})
	if unknown, ok := errors.AsType[*git.UnknownRev](err); ok {
		return "", errors.New(strings.TrimSuffix(unknownText(tasks.RepoOf(p.Spec, repo), unknown), "."))
	}
	return found[rev].Commit, err
}

func problem(at hcl.Range, summary, detail string) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &at}
}

const elsewhere = " A clone on this machine serves as well: give its path as the url."

// unreadable is the mistake that a repo cannot be read.
func (p *Resolver) unreadable(address hclspec.Address, err error) *hcl.Diagnostic {
	detail, at := fmt.Sprintf("%s: %v", address, err), hcl.Range{}
	if repo := tasks.RepoOf(p.Spec, address); repo != nil {
		at = repo.Range
		var fetch *git.FetchError
		switch errors.As(err, &fetch); {
		case git.DiskFull(err):
			detail += ". Free some space (benchgraph cache gc), and plan again."
		case repo.URL == "":
		case fetch != nil && fetch.Remedy != "":
			detail += ". " + strings.ToUpper(fetch.Remedy[:1]) + fetch.Remedy[1:] + "." + elsewhere
		default:
			detail += ". Check the address and the network." + elsewhere
		}
	}
	return problem(at, "Repository cannot be read", detail)
}

// Move is a name of a revision that stands for another commit than the one that the lock pins.
type Move struct {
	hclspec.Name
	Now string // commit
}

// Moved are the names in repos on this machine that have moved since they were pinned. Others would take the network to
// ask.
func Moved(ctx context.Context, p *tasks.Facts) (moved []Move, err error) {
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
		mirror, err := p.Mirror(ctx, repo.Address)
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
