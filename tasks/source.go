package tasks

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/shell/transcript"
	"github.com/benchgraph/benchgraph/source/git"
	"github.com/benchgraph/benchgraph/source/git/mirror"
	"github.com/benchgraph/benchgraph/source/git/patch"
	"github.com/benchgraph/benchgraph/source/protect"
	"github.com/benchgraph/benchgraph/stats"
)

// repoTask fetches the pinned commits into the repo's mirror. Its output lists these commits with their trees.
type repoTask struct {
	p       *Drawing
	repo    *hclspec.Repo
	commits []string // sorted
}

func (t *repoTask) Describe(d *cache.Description) {
	d.Add("location", t.repo.URL, t.repo.Path)
	d.Add("commits", t.commits...)
}

func (t *repoTask) Run(ctx context.Context, env *engine.Env) error {
	mirror, err := t.p.Mirror(ctx, t.repo.Address)
	if err != nil {
		return gitFailure(err)
	}
	found, err := mirror.Resolve(ctx, t.commits)
	if err != nil {
		return gitFailure(err)
	}
	if err := mirror.Keep(ctx, t.commits); err != nil {
		if ctx.Err() != nil || git.DiskFull(err) {
			return gitFailure(err)
		}
		fmt.Fprintf(env.Log, "pinned commits are not kept: %v\n", err) // a repository that lacks objects, say
	}
	var list []byte
	for _, c := range t.commits {
		list = fmt.Appendf(list, "%s tree %s\n", found[c].Commit, found[c].Tree)
	}
	return os.WriteFile(filepath.Join(env.Out, "commits"), list, 0o644)
}

// tree is the code of a source: its identity, and the way to lay it out.
type tree struct {
	p     *Facts
	repo  hclspec.Address
	rev   string // 40 digits
	patch string // path relative to the project's directory; empty: none
	bytes []byte // text of the patch

	protect []string // patterns of files that the candidate must not change
	against string   // with protect: the baseline's revision, 40 digits; empty: the same revision
	copies  bool     // replace protected files with the baseline's copies, instead of failing
}

func (p *Facts) tree(s *hclspec.Source) (*tree, error) {
	t := &tree{p: p, repo: s.Repo, rev: s.Rev, patch: s.Patch, protect: s.Protect, copies: s.Copies && guarded(s)}
	if s.Against != s.Rev {
		t.against = s.Against
	}
	if s.Patch == "" {
		return t, nil
	}
	var err error
	t.bytes, err = p.patchText(s.Patch)
	return t, err
}

// patchText returns a patch as it was first read: an apply measures the patch of its plan, even if the file has changed
// or gone since.
func (p *Facts) patchText(path string) ([]byte, error) {
	if text, known := p.Seen.texts[path]; known {
		return text, nil
	}
	text, err := os.ReadFile(p.Spec.Path(path))
	if err == nil {
		p.Seen.texts[path], p.Seen.Patches[path] = text, fmt.Sprintf("%x", sha256.Sum256(text))
	}
	return text, err
}

// lacksPatch reports whether a candidate has no usable patch, although it declares one, and why.
func (b *builder) lacksPatch(c *hclspec.Candidate) (Absence, bool) {
	if c.Patch == "" || c.Out != nil {
		return Absence{}, false
	}
	text, err := b.patchText(c.Patch)
	optional := slices.ContainsFunc(b.Spec.Variants, func(v hclspec.Variant) bool {
		return v.Name == c.Variant && v.Optional
	})
	switch {
	case err == nil && optional && errors.Is(patch.RefuseEmpty(text), patch.ErrEmpty):
		return Absence{stats.NoPatch, "patch " + c.Patch + " is empty"}, true
	case err == nil:
		return Absence{}, false
	case errors.Is(err, os.ErrNotExist) && optional:
		return Absence{stats.NoPatch, "no patch: there is no file " + c.Patch}, true
	case errors.Is(err, os.ErrNotExist):
		return Absence{stats.NotRun, "no patch: there is no file " + c.Patch}, true
	}
	return Absence{stats.NotRun, fmt.Sprintf("patch %s cannot be read: %v", c.Patch, err)}, true
}

// Describe adds the content of the tree to a key. The origin and the spelling of the revision are no part of it.
func (t *tree) Describe(d *cache.Description) {
	d.Add("tree", t.p.Trees[t.rev])
	if t.patch != "" {
		d.Add("patch", t.digest())
	}
	if len(t.protect) > 0 && (t.patch != "" || t.against != "") {
		d.Add("protect", t.protect...)
	}
	if len(t.protect) > 0 && t.against != "" {
		d.Add("against", t.p.Trees[t.against])
	}
	if t.copies {
		d.Add("copies", "baseline")
	}
}

// trespass returns the failure of a candidate whose revision or patch changes protected files; nil if it changes none.
func (t *tree) trespass(ctx context.Context, mirror *git.Mirror) error {
	if len(t.protect) == 0 || t.copies {
		return nil
	}
	s := &hclspec.Source{Rev: t.rev, Patch: t.patch, Protect: t.protect, Against: t.against}
	changes, err := protect.Changes(ctx, mirror, []*hclspec.Source{s}, func(*hclspec.Source) []byte { return t.bytes })
	if err != nil || len(changes[0].Revised)+len(changes[0].Patched) == 0 {
		return gitFailure(err)
	}
	var found *failure.Failure
	baselines, err := protect.Read(ctx, mirror, changes)
	if err == nil {
		found, err = Trespass(ctx, baselines, s, changes[0])
	}
	if found != nil {
		return &engine.Failure{Failure: *found}
	}
	return gitFailure(err)
}

// Trespass returns the failure of a source whose revision or patch changes protected files; nil if it changes none.
func Trespass(ctx context.Context, b *protect.Baselines, s *hclspec.Source,
	c protect.Change) (*failure.Failure, error) {
	revised, patched, err := b.Among(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case len(revised) > 0:
		return trespass(revised,
			"revision "+ShortRev(s.Rev)+" differs from the baseline in files that the variant protects",
			"measure with a client of one revision, or take these files out of protect"), nil
	case len(patched) > 0:
		return trespass(patched, s.Patch+" changes files that the variant protects",
			"take these files out of the patch, or out of protect"), nil
	}
	return nil, nil
}

func trespass(paths []string, message, remedy string) *failure.Failure {
	return &failure.Failure{Class: failure.Permanent, Rule: protectedRule, Stage: "checkout", Message: message,
		Remedy: remedy, Evidence: strings.Join(paths[:min(len(paths), 10)], " ")}
}

const protectedRule = "protected"

// ProtectedFailure reports whether a failure says that a candidate changes protected files.
func ProtectedFailure(f *failure.Failure) bool { return f != nil && f.Rule == protectedRule }

// digest returns the SHA-256 of the patch.
func (t *tree) digest() string { return fmt.Sprintf("%x", sha256.Sum256(t.bytes)) }

// layOut checks the revision out into an empty directory, and applies the patch as a whole or not at all. It returns
// the git tree of the result, without the baseline's copies of protected files, which it lays out last.
func (t *tree) layOut(ctx context.Context, env *engine.Env, dir string) (string, error) {
	notes := transcript.Of(env)
	notes.Did("checkout", filepath.Join(t.p.StateDir, "mirrors", t.repo.Name), t.rev, dir)
	if t.patch != "" {
		notes.Did("patch", dir, t.p.Spec.Path(t.patch), t.digest())
	}
	mirror, err := t.p.Mirror(ctx, t.repo)
	if err != nil {
		return "", gitFailure(err)
	}
	if err := t.checkPin(ctx, mirror); err != nil {
		return "", err
	}
	if err := t.trespass(ctx, mirror); err != nil {
		return "", err
	}
	id, err := t.checkOut(ctx, mirror, dir)
	if err == nil && t.copies {
		notes.Section("", "by hand: put the baseline's copies of protected files into their place", false)
		err = t.restore(ctx, mirror, dir)
	}
	return id, err
}

// checkOut is layOut without the baseline's copies.
func (t *tree) checkOut(ctx context.Context, mirror *git.Mirror, dir string) (string, error) {
	if t.patch == "" {
		return t.p.Trees[t.rev], gitFailure(mirror.Checkout(ctx, t.rev, dir))
	}
	id, err := mirror.Apply(ctx, t.rev, t.bytes, dir)
	if refused, ok := errors.AsType[*git.PatchError](err); ok {
		return "", &engine.Failure{Err: err, Failure: failure.Failure{
			Class: failure.Permanent, Rule: "patch_refused", Stage: "checkout",
			Message: fmt.Sprintf("%s does not apply to %s", t.patch, ShortRev(t.rev)), Evidence: refused.Error(),
			Remedy: "make the patch again for this revision; no part of it was applied",
		}}
	}
	return id, gitFailure(err)
}

// checkPin verifies that the revision has the tree that the lock file pins. Keys are made from that tree, and a lock
// file can be edited: without the check, code of one revision could be stored and measured under another's name.
func (t *tree) checkPin(ctx context.Context, mirror *git.Mirror) error {
	found, err := mirror.Resolve(ctx, []string{t.rev})
	if err != nil {
		return gitFailure(err)
	}
	has, pinned := found[t.rev].Tree, t.p.Trees[t.rev]
	if has == pinned {
		return nil
	}
	return &engine.Failure{Err: fmt.Errorf("revision %s has the tree %s, and the lock file says %s", ShortRev(t.rev),
		has, pinned), Failure: failure.Failure{
		Class: failure.Permanent, Rule: "pin_refused", Stage: "checkout",
		Message: fmt.Sprintf("revision %s has the tree %s, and the lock file says %s", ShortRev(t.rev), ShortRev(has),
			ShortRev(pinned)),
		Remedy: "delete the revision's block in the lock file: the next apply resolves it again",
	}}
}

// sourceTask is the task of a source: a checked-out, patched tree.
type sourceTask struct{ *tree }

func (t sourceTask) Run(ctx context.Context, env *engine.Env) error {
	id, err := t.layOut(ctx, env, env.Out)
	if err == nil {
		fmt.Fprintf(env.Log, "tree %s\n", id)
	}
	return err
}

// gitFailure turns an error of git into a failure with a class.
func gitFailure(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if git.DiskFull(err) {
		return fmt.Errorf("%w: %w", err, syscall.ENOSPC)
	}
	return &engine.Failure{Err: err, Failure: mirror.FailureOf(err)}
}

// ShortRev returns a revision in its short form, for people.
func ShortRev(rev string) string { return rev[:min(len(rev), 12)] }

// RepoOf returns the repo block at an address; nil if there is none.
func RepoOf(s *hclspec.Spec, address hclspec.Address) *hclspec.Repo {
	for i := range s.Repos {
		if r := &s.Repos[i]; r.Address == address {
			return r
		}
	}
	return nil
}

// Mirror opens the mirror of a repo, once.
func (p *Facts) Mirror(ctx context.Context, a hclspec.Address) (*git.Mirror, error) {
	p.mirrors.mu.Lock()
	defer p.mirrors.mu.Unlock()
	if m := p.mirrors.open[a.Name]; m != nil {
		return m, nil
	}
	repo := RepoOf(p.Spec, a)
	location := repo.URL
	if repo.Path != "" {
		location = repo.Path
		if !filepath.IsAbs(location) {
			location = filepath.Join(p.Spec.Dir, location)
		}
	}
	m, err := git.Open(ctx, git.Options{Exec: p.Host, Dir: filepath.Join(p.StateDir, "mirrors", a.Name),
		Location: location, Env: p.GitEnviron, Offline: p.Offline})
	if err == nil {
		p.mirrors.open[a.Name] = m
	}
	return m, err
}

// restore replaces the protected files of a laid-out tree with the baseline's copies, and removes protected files that
// the baseline does not have. The tree may be hostile: nothing is written through a link in it.
func (t *tree) restore(ctx context.Context, mirror *git.Mirror, dir string) error {
	theirs, err := os.MkdirTemp(filepath.Dir(dir), "baseline-")
	if err != nil {
		return err
	}
	err = t.exchange(ctx, mirror, dir, theirs)
	return errors.Join(err, fs.RemoveTree(theirs))
}

func (t *tree) exchange(ctx context.Context, mirror *git.Mirror, dir, theirs string) error {
	rev := cmp.Or(t.against, t.rev) // the candidate may be the baseline with a patch
	if err := mirror.Checkout(ctx, rev, theirs); err != nil {
		return gitFailure(err)
	}
	measuring, err := protect.OfDir(t.protect, theirs)
	if err != nil {
		return err
	}
	own, err := measuring.Found(dir)
	if err != nil {
		return err
	}
	for _, path := range own {
		if err := os.Remove(filepath.Join(dir, path)); err != nil {
			return err
		}
	}
	copies, err := measuring.Found(theirs)
	if err != nil {
		return err
	}
	for _, path := range copies {
		if err := realParents(dir, path); err != nil {
			return err
		}
		to := filepath.Join(dir, path)
		if err := errors.Join(fs.RemoveTree(to), os.Rename(filepath.Join(theirs, path), to)); err != nil {
			return err
		}
	}
	return nil
}

// realParents makes real directories above a path: a link or a file in such a place is removed.
func realParents(dir, path string) error {
	at := dir
	for part := range strings.SplitSeq(filepath.Dir(path), string(filepath.Separator)) {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		if err == nil && !info.IsDir() {
			err = os.Remove(at)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// guarded reports whether a source has protected files and may have changed them.
func guarded(s *hclspec.Source) bool {
	return len(s.Protect) > 0 && (s.Patch != "" || s.Against != "" && s.Against != s.Rev)
}
