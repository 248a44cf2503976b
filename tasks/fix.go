package tasks

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/shell"
	"github.com/benchgraph/benchgraph/metrics"
)

// fixRule is how a rule is named that is a fix's detect.
const fixRule = "fix."

// appliedFix is a fix that is to be applied, as evaluated for one candidate.
type appliedFix struct {
	fix *hclspec.Fix
	hclspec.FixCase
	digests []string // of the project's files that Files come from; empty: not one, or not there
}

// eligible lists the fixes that may be applied to something: those it lists, or, where it lists none, those that nothing
// in the file lists.
func (p *Project) eligible(listed ...[]hclspec.Address) []hclspec.Address {
	if all := slices.Concat(listed...); len(all) > 0 {
		return all
	}
	return p.unlisted
}

// indexFixes finds the fixes by address, and those that no block lists.
func (p *Project) indexFixes() {
	listed := map[hclspec.Address]bool{}
	list := func(fixes []hclspec.Address) {
		for _, a := range fixes {
			listed[a] = true
		}
	}
	for _, w := range p.Spec.Wheels {
		list(w.Fixes)
		if w.Build != nil {
			list(w.Build.Fixes)
		}
	}
	for _, i := range p.Spec.Images {
		list(i.Fixes)
	}
	for _, b := range p.Spec.Benchmarks {
		list(b.Fixes)
	}
	for _, t := range p.Spec.Tasks {
		list(t.Fixes)
	}
	p.fixes, p.unlisted = map[hclspec.Address]*hclspec.Fix{}, nil
	for i := range p.Spec.Fixes {
		f := &p.Spec.Fixes[i]
		p.fixes[f.Address] = f
		if !listed[f.Address] {
			p.unlisted = append(p.unlisted, f.Address)
		}
	}
	// Nothing says which comes first, and the order of blocks must not.
	slices.SortFunc(p.unlisted, func(a, b hclspec.Address) int { return strings.Compare(a.Name, b.Name) })
}

// due are the eligible fixes that are to be applied for a candidate: where the file says when, or where one was learnt
// from a failure of any variant of its commit. A fix comes after those that it names.
func (p *Project) due(eligible []hclspec.Address, candidate string) []appliedFix {
	return p.dueFor(eligible, candidate, func(fix string) bool { return p.learnt(fix, candidate) })
}

// dueFor is due with a say in what counts as learnt.
func (p *Project) dueFor(eligible []hclspec.Address, candidate string, learnt func(fix string) bool) []appliedFix {
	var due []appliedFix
	var visit func(a hclspec.Address)
	seen := map[hclspec.Address]bool{}
	visit = func(a hclspec.Address) {
		fix := p.fixes[a]
		if fix == nil || seen[a] || !slices.Contains(eligible, a) {
			return
		}
		seen[a] = true
		for _, before := range fix.After {
			visit(before)
		}
		c, ok := fix.Cases[candidate]
		if !ok {
			c = fix.Cases[""]
		}
		if c.When || learnt(a.Name) {
			applied := appliedFix{fix: fix, FixCase: c}
			for _, file := range c.Files {
				applied.digests = append(applied.digests, p.known[sourceOf(file)].SHA256)
			}
			due = append(due, applied)
		}
	}
	for _, a := range eligible {
		visit(a)
	}
	return due
}

// sourceOf is the project's file that a fix puts in place; empty when it comes from somewhere else.
func sourceOf(file hclspec.FixFile) string {
	if len(file.From) != 1 || strings.Contains(file.From[0].Literal, "$") || !filepath.IsLocal(file.From[0].Literal) {
		return ""
	}
	return path.Clean(file.From[0].Literal)
}

// readFixFiles looks at the project's files that fixes put in place: what is in them is part of a key. One that is not
// there is found out where it is needed.
func (b *builder) readFixFiles(ctx context.Context) error {
	for i := range b.Spec.Fixes {
		for _, c := range b.Spec.Fixes[i].Cases {
			for _, file := range c.Files {
				name := sourceOf(file)
				if name == "" {
					continue
				}
				b.fixFiles[name] = true
				if _, err := b.inputFile(ctx, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("%s: file %s: %w", b.Spec.Fixes[i].Address, name, err)
				}
			}
		}
	}
	return nil
}

func (p *Project) learnt(fix, candidate string) bool {
	commit, _, _ := strings.Cut(candidate, "/")
	return slices.ContainsFunc(p.Lock.Fixes[fix], func(l hclspec.LearntFix) bool { return l.Commit == commit })
}

// addRecipes adds what the recipes refer to.
func addRecipes(r *shell.Refs, fixes []appliedFix) {
	for _, f := range fixes {
		r.AddText(f.Run...)
		r.AddCommand(f.Verify)
		r.AddEnv(f.Env)
		for _, file := range f.Files {
			r.AddText(file.From, file.To)
		}
	}
}

// describeFixes writes the recipes, not their names or reasons, into a key.
func describeFixes(d *cache.Description, r shell.Refs, fixes []appliedFix) {
	for _, f := range fixes {
		d.Add("fix", f.fix.Effect)
		for _, run := range f.Run {
			d.Add("fix.run", run.Expand(r.Label))
		}
		for i, file := range f.Files {
			d.Add("fix.file", file.From.Expand(r.Label), f.digests[i], file.Content, file.To.Expand(r.Label))
		}
		r.DescribeEnv(d, f.Env)
		d.Add("fix.pip", f.Pip...)
		r.DescribeCommand(d, "fix.verify", f.Verify)
	}
}

// learner is a shell from whose failures fixes are learnt.
type learner struct {
	*shell.Shell
	p       *Project
	env     *engine.Env
	dir     string            // working directory
	allowed []hclspec.Address // what may be learnt
	applied []appliedFix      // what is there already
}

// enter opens a shell in an image, or on the host when that is the zero Address. From its failures those of the allowed
// fixes may be learnt that are not applied yet.
func (p *Project) enter(env *engine.Env, r shell.Refs, image hclspec.Address, at shell.Place, allowed []hclspec.Address, applied []appliedFix) (*learner, error) {
	if image != (hclspec.Address{}) {
		var err error
		if at.Image, err = shellIn(r.Input(env, image).Entry); err != nil {
			return nil, fmt.Errorf("%s: %w", image, err)
		}
	}
	sh, err := p.shells.Open(env, r, at)
	if err != nil {
		return nil, err
	}
	l := &learner{Shell: sh, p: p, env: env, dir: at.Dir, allowed: allowed, applied: applied}
	sh.Cures = l.detectors
	return l, nil
}

// detectors are rules for the fixes that may still be learnt.
func (l *learner) detectors() []metrics.Rule {
	var rules []metrics.Rule
	for _, a := range l.allowed {
		fix := l.p.fixes[a]
		applied := slices.ContainsFunc(l.applied, func(f appliedFix) bool { return f.fix == fix })
		if fix == nil || fix.Detect == "" || applied {
			continue
		}
		rules = append(rules, metrics.Rule{Name: fixRule + a.Name, Match: regexp.MustCompile(fix.Detect), Class: string(cache.Fixable)})
	}
	return rules
}

// apply applies the fixes to the working directory, each followed by its verify.
func (l *learner) apply(ctx context.Context, fixes []appliedFix) error {
	for _, f := range fixes {
		l.Say("fix %s: %s\n", f.fix.Address.Name, f.fix.Description)
		if len(f.Pip) > 0 {
			return &engine.Failure{Failure: cache.Failure{Class: cache.Permanent, Rule: "fix_needs_image", Stage: "build",
				Message: f.fix.Address.String() + " pins Python packages, which needs an image: the host's packages are never changed"}}
		}
		l.SetEnv(f.Env)
		for i, file := range f.Files {
			if err := l.place(file, f.digests[i]); err != nil {
				return fixFailure(f.fix, err)
			}
		}
		for _, run := range f.Run {
			if err := l.Run(ctx, "build", hclspec.Command{Shell: run}, 0, nil); err != nil {
				return err
			}
		}
		if f.Verify.Shell != nil || f.Verify.Argv != nil {
			if err := l.Run(ctx, "verify", f.Verify, 0, nil); err != nil {
				return err
			}
		}
		l.applied = append(l.applied, f)
		l.env.Emit(engine.Event{Type: engine.FixApplied, Reason: f.fix.Description, Data: map[string]any{"fix": f.fix.Address.Name, "effect": f.fix.Effect}})
	}
	return nil
}

// fixFailure is the failure of a fix whose file cannot be put in place.
func fixFailure(fix *hclspec.Fix, err error) error {
	var f *engine.Failure
	if errors.As(err, &f) {
		return err
	}
	return &engine.Failure{Err: err, Failure: cache.Failure{Class: cache.Permanent, Rule: "fix_file", Stage: "build", Message: fix.Address.String() + ": " + err.Error()}}
}

// place puts a fix's file into the working directory, and nowhere else.
func (l *learner) place(file hclspec.FixFile, digest string) error {
	to := l.OnHost(file.To)
	if !filepath.IsAbs(to) {
		to = filepath.Join(l.dir, to)
	}
	rel, err := filepath.Rel(l.dir, to)
	if err != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("file %s: outside the working directory", to)
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	content := []byte(file.Content)
	if file.From != nil {
		from := l.OnHost(file.From)
		if !filepath.IsAbs(from) {
			from = filepath.Join(l.p.Spec.Dir, from)
		}
		if content, err = os.ReadFile(from); err != nil {
			return err
		}
		if sourceOf(file) != "" && digest != fmt.Sprintf("%x", sha256.Sum256(content)) {
			return inputChanged(sourceOf(file))
		}
	}
	if err := root.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return err
	}
	return root.WriteFile(rel, content, 0o644)
}

// excused is the failure of a command that succeeded without doing what it should: what its output says of a fix, of
// something transient or of this machine goes before that.
func (l *learner) excused(missing error) error {
	var f *engine.Failure
	if err := l.Failure("run", l.Last(), "succeeded without its metric"); !errors.As(err, &f) {
		return err
	}
	if _, fixable := cutFix(f.Rule); fixable || f.Class.Retried() {
		return f
	}
	return missing
}

// cutFix is the name of the fix that a failure's rule asks for.
func cutFix(rule string) (string, bool) { return strings.CutPrefix(rule, fixRule) }

// gatherFixes tells every member with which fixes the artefacts that it measures were made. A build that one variant's fix
// made faster must not be held against a build without it.
func (b *builder) gatherFixes() {
	if len(b.fixes) == 0 {
		return
	}
	under := map[*engine.Node][]appliedFix{}
	var visit func(n *engine.Node) []appliedFix
	visit = func(n *engine.Node) []appliedFix {
		if known, ok := under[n]; ok {
			return known
		}
		under[n] = nil // a cycle is told when the graph is made
		var list []appliedFix
		if t, ok := n.Task.(interface{ applied() []appliedFix }); ok {
			list = slices.Clone(t.applied())
		}
		for _, dep := range n.Needs {
			list = addFixes(list, visit(dep))
		}
		under[n] = list
		return list
	}
	for _, g := range b.groups {
		for i := range g.members {
			m := &g.members[i]
			var r shell.Refs
			addMember(&r, *m)
			all := slices.Clone(m.fixes)
			for _, a := range r {
				if n := b.nodes[a]; n != nil {
					all = addFixes(all, visit(n))
				}
			}
			m.under = all[len(m.fixes):]
		}
	}
}

// addFixes appends the fixes that are not there yet.
func addFixes(list, more []appliedFix) []appliedFix {
	for _, f := range more {
		if !slices.ContainsFunc(list, func(have appliedFix) bool { return have.fix == f.fix }) {
			list = append(list, f)
		}
	}
	return list
}

func (t *buildTask) applied() []appliedFix   { return t.fixes }
func (t *commandTask) applied() []appliedFix { return t.fixes }
func (t *imageTask) applied() []appliedFix   { return t.fixes }
