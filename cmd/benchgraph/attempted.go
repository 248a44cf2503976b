package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/campaign/pin"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/source/git/patch"
	"github.com/benchgraph/benchgraph/source/git/worktree"
	"github.com/benchgraph/benchgraph/tasks"
)

// attempted is a candidate that no file declares, with the benchmark that measures it.
type attempted struct {
	hclspec.Try
	benchmark string // name
}

// choose finds the benchmark and the baseline of a try, and makes its candidate.
func (s *session) choose(ctx context.Context, o *tryFlags, spec *hclspec.Spec) (t attempted, err error) {
	base, benchmark, err := s.baselineOf(ctx, o, spec)
	if err != nil {
		return t, err
	}
	t.Commit, t.benchmark = base.Commit, benchmark
	repo := hclspec.Address{Kind: "repo", Name: base.Source.Name}
	config := s.config(ctx, o.access, nil)
	if o.rev != "" {
		if t.Rev, err = pin.Revision(ctx, config.Config, spec, repo, o.rev); err != nil {
			return t, fmt.Errorf("-rev %s: %w", o.rev, err)
		}
		s.note("Trying %s, which is %s, against %s by benchmark.%s.", o.rev, tasks.ShortRev(t.Rev), base.Key, benchmark)
		return t, nil
	}
	if o.patch != "" {
		if t.Patch, err = s.patchFile(o.patch, spec); errors.Is(err, patch.ErrEmpty) {
			t.NoPatch, err = err.Error(), nil // as for a variant with an empty optional patch
		}
		if err != nil {
			return t, err
		}
		s.note("Trying %s against %s by benchmark.%s.", o.given(), base.Key, benchmark)
		return t, nil
	}
	rev, err := pin.Revision(ctx, config.Config, spec, repo, base.Rev)
	if err != nil {
		return t, fmt.Errorf("the baseline of %s: %w", base.Commit, err)
	}
	t.Patch, err = s.uncommitted(ctx, spec, base, rev, benchmark)
	return t, err
}

// given returns the user's name of the patch.
func (o *tryFlags) given() string {
	if o.patch == "-" {
		return "standard input"
	}
	return cmp.Or(o.patch, "the work tree")
}

// baselineOf finds the baseline that the command line selects, and the name of the benchmark that measures it.
func (s *session) baselineOf(ctx context.Context, o *tryFlags, spec *hclspec.Spec) (*hclspec.Candidate, string, error) {
	type pair struct {
		benchmark string
		base      *hclspec.Candidate
	}
	var all []pair
	for _, b := range spec.Benchmarks {
		i := slices.IndexFunc(spec.Candidates, func(c hclspec.Candidate) bool { return c.Key == b.Candidate })
		if i < 0 || b.Out != nil || spec.Candidates[i].Out != nil {
			continue
		}
		if c := &spec.Candidates[i]; c.Baseline && c.Rev != "" {
			all = append(all, pair{b.Address.Name, c})
		}
	}
	if len(all) == 0 {
		return nil, "", hint("Let for_each of a benchmark go over candidates of commits of a repo, of which one "+
			"variant is the baseline.", "no benchmark measures a baseline that has code")
	}
	names := func(part func(pair) string) (list []string) {
		for _, p := range all {
			list = append(list, part(p))
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	narrow := func(flag, given string, part func(pair) string) error {
		if given == "" {
			return nil
		}
		known := names(part)
		if all = slices.DeleteFunc(all, func(p pair) bool { return part(p) != given }); len(all) > 0 {
			return nil
		}
		return hint("It is one of "+several(known)+".",
			"-%s %s: there is no such %s with a baseline%s", flag, given, flag, cli.Suggest(given, known))
	}
	byBenchmark, byCommit := func(p pair) string { return p.benchmark }, func(p pair) string { return p.base.Commit }
	if err := narrow("benchmark", strings.TrimPrefix(o.benchmark, "benchmark."), byBenchmark); err != nil {
		return nil, "", err
	}
	if err := narrow("commit", o.commit, byCommit); err != nil {
		return nil, "", err
	}
	if len(all) > 1 {
		if here := s.workTreeTop(ctx, "."); here != "" {
			far := func(p pair) bool { return s.topOf(ctx, spec, p.base.Source.Name) != here }
			if near := slices.DeleteFunc(slices.Clone(all), far); len(near) > 0 {
				all = near
			}
		}
	}
	for _, one := range []struct {
		flag string
		part func(pair) string
	}{{"benchmark", byBenchmark}, {"commit", byCommit}} {
		if left := names(one.part); len(left) > 1 {
			return nil, "", hint(fmt.Sprintf("Say which one with -%s: %s.", one.flag, several(left)),
				"the file has %d %ss that a try could be measured by", len(left), one.flag)
		}
	}
	return all[0].base, all[0].benchmark, nil
}

// several returns the first names of a list as text.
func several(names []string) string { return printable.Some(names, 8) }

// workTreeTop returns the top of the work tree that has the directory; "" if there is none.
func (s *session) workTreeTop(ctx context.Context, dir string) string {
	if w, err := worktree.Open(ctx, s.host, s.below(dir), s.gitEnviron()); err == nil {
		return w.Top
	}
	return ""
}

// topOf returns the top of the work tree of a repo on this machine; "" if the repo has none.
func (s *session) topOf(ctx context.Context, spec *hclspec.Spec, repo string) string {
	for _, r := range spec.Repos {
		if r.Address.Name == repo && r.Path != "" {
			return s.workTreeTop(ctx, spec.Path(r.Path))
		}
	}
	return ""
}

// patchFile returns the path of the patch that the command line names, as the spec needs it.
func (s *session) patchFile(name string, spec *hclspec.Spec) (string, error) {
	const remedy = "PATCH is a file that git diff writes, or - for standard input. -rev REV takes a revision. " +
		"Without either, the work tree is measured."
	if name == "-" {
		text, err := fs.ReadAll(s.stdin, patch.MaxSize)
		if err = cmp.Or(err, patch.RefuseEmpty(text)); err != nil {
			return "", hint(remedy, "standard input: %w", err)
		}
		return s.keepPatch(text)
	}
	path, err := filepath.Abs(s.below(name))
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", hint(remedy, "patch %s: %w", name, fs.Cause(err))
	case !info.Mode().IsRegular():
		return "", hint(remedy, "patch %s: it is no regular file", name)
	case info.Size() <= patch.MaxSize:
		text, err := os.ReadFile(path)
		if err = cmp.Or(err, patch.RefuseEmpty(text)); err != nil {
			return "", hint(remedy, "patch %s: %w", name, fs.Cause(err))
		}
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		if rel, err := filepath.Rel(spec.Dir, real); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), nil
		}
	}
	return path, nil
}

// keepPatch writes a patch to a file for the nodes of this try. The file is free, since only one try runs at a time.
func (s *session) keepPatch(text []byte) (string, error) {
	if err := fs.Replace(s.keptPatch(), text); err != nil {
		return "", fmt.Errorf("patch: %w", err)
	}
	return s.keptPatch(), nil
}

func (s *session) keptPatch() string { return filepath.Join(s.state, "try.diff") }

// uncommitted writes the patch from the baseline to the work tree as it stands, and returns its path.
func (s *session) uncommitted(ctx context.Context, spec *hclspec.Spec, base *hclspec.Candidate, rev,
	benchmark string) (string, error) {
	const remedy = "Name a patch, or a revision with -rev."
	dir := s.topOf(ctx, spec, base.Source.Name)
	if dir == "" {
		dir = s.workTreeTop(ctx, ".")
	}
	if dir == "" {
		return "", hint(remedy, "repo.%s has no work tree here whose changes could be measured", base.Source.Name)
	}
	w, err := worktree.Open(ctx, s.host, dir, s.gitEnviron())
	if err != nil {
		return "", err
	}
	has, err := w.Has(ctx, rev)
	if err != nil {
		return "", err
	}
	if !has {
		return "", hint(remedy, "work tree %s: its repository lacks %s, the revision of %s", w.Top, rev[:12], base.Key)
	}
	own := s.ownFiles(spec)
	if s.app.file != "" { // -f may name a file elsewhere, while the directory has another project
		own = slices.Concat(own, s.ownFilesIn(s.chdir), s.ownFilesIn(w.Top))
	}
	files, err := w.Changes(ctx, own)
	if err == nil && len(files) == 0 {
		return "", hint("Change something, name a patch, or measure what is committed with -rev HEAD.",
			"work tree %s: nothing is changed since its last commit, %s", w.Top, w.Head[:12])
	}
	var text []byte
	if err == nil {
		text, err = w.Patch(ctx, rev, own)
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("work tree %s: %w", w.Top, err)
	case len(text) == 0:
		return "", hint(remedy, "work tree %s: with its changes it is the same as %s, the revision of %s",
			w.Top, rev[:12], base.Key)
	}
	also := ""
	if w.Head != rev {
		also = fmt.Sprintf(" Its last commit, %s, is not the revision of the baseline, %s: all that lies between is "+
			"measured, too.", w.Head[:12], rev[:12])
	}
	s.note("Trying the work tree %s with uncommitted changes in %s (%s) against %s by benchmark.%s.%s",
		w.Top, view.Count(len(files), "file"), several(files), base.Key, benchmark, also)
	return s.keepPatch(text)
}

// ownFiles lists the files of the project, as opposed to the measured files.
func (p place) ownFiles(spec *hclspec.Spec) []string {
	own := []string{p.lock, p.state, p.store}
	for _, name := range spec.Files {
		own = append(own, spec.Path(name))
	}
	for _, r := range spec.Reports {
		own = append(own, spec.Path(r.Dir))
	}
	for i, path := range own { // git names the top of a work tree without links
		if real, err := filepath.EvalSymlinks(path); err == nil {
			own[i] = real
		}
	}
	return own
}

// ownFilesIn lists the files of the project in a directory. Its reports are known only if its file has no mistakes.
func (a app) ownFilesIn(dir string) []string {
	a.chdir, a.file = dir, ""
	p, err := a.place()
	if err != nil || p.absent() {
		return nil
	}
	spec := &hclspec.Spec{Dir: p.dir, Files: hclspec.RootFiles[:]}
	if options, err := a.pinned(p); err == nil {
		if read, _, _ := hclspec.Load(options); read != nil {
			spec = read
		}
	}
	return p.ownFiles(spec)
}
