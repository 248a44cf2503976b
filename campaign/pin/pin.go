// Package pin finds out which revisions, trees outside overlays, prebuilt wheels and images the names in a project's
// files stand for, and writes them to the lock. A plan whose lock pins all of its names needs no network.
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

// A Resolver pins names in the lock of its facts: revisions, the digests of trees outside overlays, the sources of
// wheels, images.
type Resolver struct {
	*tasks.Facts
	History *history.Cache // the evaluation's questions about histories of repos; nil: there are none
	Locked  bool           // refuse to change the lock
	Upgrade bool           // look names of revisions up again, even if the mirror has them

	Reload func() hcl.Diagnostics // evaluates the files again with the lock
}

// Resolve pins the names that the lock does not pin yet, and reports whether the lock changed. It evaluates the files
// again whenever a pin leads to other names. Progress of the facts shows which names are looked up.
func (p *Resolver) Resolve(ctx context.Context) (bool, hcl.Diagnostics) {
	if p.forgetMoved() { // the Spec still has the old pins
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

// wantedRev is a revision, and its position in the file.
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

// forgetMoved drops the pins of repos whose location has changed, except the pins of revisions that are written in
// full: such a revision is the same commit everywhere. It reports whether it dropped a pin.
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

// fullRevision matches the full hash of a commit.
var fullRevision = lazyregexp.New(`^[0-9a-f]{40}$`)

// lockOf returns the pins of a repo, for reading and adding. If the lock does not have the repo, additions are lost.
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

// missingRevisions returns the revisions of a repo whose tree is not known, each once.
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

// lookUp asks the repo for revisions. For a revision that the repo lacks, it returns a pin with the reason: when the
// files are evaluated again, each use of the revision is a mistake.
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

// unjoin lists the errors of a joined error.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// Revision returns the commit, 40 digits, that a revision stands for in a repo now, whatever the lock pins. The error
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

// unreadable returns the error for a repo that cannot be read.
func (p *Resolver) unreadable(address hclspec.Address, err error) *hcl.Diagnostic {
	detail, at := fmt.Sprintf("%s: %v", address, err), hcl.Range{}
	if repo := tasks.RepoOf(p.Spec, address); repo != nil {
		at = repo.Range
		var fetch *git.FetchError
		switch errors.As(err, &fetch); {
		case git.DiskFull(err):
			detail += ". Free some space (benchgraph cache gc -unreachable), and plan again."
		case repo.URL == "":
		case fetch != nil && fetch.Remedy != "":
			detail += ". " + strings.ToUpper(fetch.Remedy[:1]) + fetch.Remedy[1:] + "." + elsewhere
		default:
			detail += ". Check the address and the network." + elsewhere
		}
	}
	return problem(at, "Repository cannot be read", detail)
}

// Move is a name of a revision that now stands for another commit than the lock pins.
type Move struct {
	hclspec.Name
	Now string // commit
}

// Moved returns the names that have moved since they were pinned, in repos on this machine. For other repos, it would
// need the network.
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
		// an unknown name gives an error: it keeps its pin
		found, _ := mirror.Resolve(ctx, spellings)
		reported := map[string]bool{}
		for _, n := range names { // main comes before main^, which moves with it
			now := found[n.Spelling].Commit
			base, _, _ := strings.Cut(strings.ReplaceAll(n.Spelling, "~", "^"), "^")
			if now != "" && now != n.Commit && !reported[base] {
				reported[base] = true
				moved = append(moved, Move{n, now})
			}
		}
	}
	return moved, nil
}
