package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/image"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/shell/input"
)

// eligible returns the fixes that may be applied to a block: those that the block lists or, if it lists none, those
// that no block lists.
func (p *Drawing) eligible(listed ...[]hclspec.Address) []hclspec.Address {
	if all := slices.Concat(listed...); len(all) > 0 {
		return all
	}
	return p.unlisted
}

// indexFixes fills p.fixes and p.unlisted.
func (p *Drawing) indexFixes() {
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
	// No block gives these fixes an order, and the order of their own blocks must not matter.
	slices.SortFunc(p.unlisted, func(a, b hclspec.Address) int { return strings.Compare(a.Name, b.Name) })
}

// onHost is eligible for blocks that are no images. It leaves out unlisted fixes for images.
func (p *Drawing) onHost(listed ...[]hclspec.Address) []hclspec.Address {
	if len(slices.Concat(listed...)) > 0 {
		return p.eligible(listed...)
	}
	return slices.DeleteFunc(slices.Clone(p.unlisted), func(a hclspec.Address) bool { return p.fixes[a].InImage })
}

// due returns the eligible fixes that are applied to a block for a candidate: where their condition holds, or where the
// lock has them for the block and the candidate's commit, learnt from any variant. A fix follows the fixes in its
// After.
func (p *Drawing) due(eligible []hclspec.Address, block hclspec.Address, candidate string) []fix.Due {
	return p.dueFor(eligible, block, candidate, func(fix string) bool { return p.Learnt(fix, block, candidate) })
}

// dueFor is due with another test for learnt fixes.
func (p *Drawing) dueFor(eligible []hclspec.Address, block hclspec.Address, candidate string,
	learnt func(fix string) bool) []fix.Due {
	var due []fix.Due
	var visit func(a hclspec.Address)
	seen := map[hclspec.Address]bool{}
	visit = func(a hclspec.Address) {
		f := p.fixes[a]
		if f == nil || seen[a] || !slices.Contains(eligible, a) {
			return
		}
		seen[a] = true
		for _, before := range f.After {
			visit(before)
		}
		c, ok := f.Case(block, candidate)
		if ok && (c.When || learnt(a.Name)) {
			one := fix.Due{Fix: f, FixCase: c}
			for _, file := range c.Files {
				one.Digests = append(one.Digests, p.Seen.Known[fix.Source(file)].SHA256)
			}
			due = append(due, one)
		}
	}
	for _, a := range eligible {
		visit(a)
	}
	return due
}

// readFixFiles hashes the files of the project that fixes put in place, since keys contain the hashes. A missing file
// is reported when a node needs it.
func (b *builder) readFixFiles(ctx context.Context) error {
	for i := range b.Spec.Fixes {
		for _, c := range b.Spec.Fixes[i].Cases {
			for _, file := range c.Files {
				name := fix.Source(file)
				if name == "" {
					continue
				}
				b.Seen.FixFiles[name] = true
				if _, err := b.inputFile(ctx, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("%s: file %s: %w", b.Spec.Fixes[i].Address, name, err)
				}
			}
		}
	}
	return nil
}

// Learnt reports whether the lock has a fix for a block and the commit of a candidate.
func (p *Facts) Learnt(fix string, block hclspec.Address, candidate string) bool {
	if len(p.Lock.Fixes[fix]) == 0 {
		return false
	}
	commit := CommitOf(candidate)
	rev := p.revOf(commit)
	return slices.ContainsFunc(p.Lock.Fixes[fix], func(one lockfile.Fix) bool {
		return one.Holds(commit, rev) && isAt(one, block)
	})
}

// revOf returns the revision of a commit; "" if the commit has no code or does not exist.
func (p *Facts) revOf(commit string) string {
	return p.revs.get(p.Spec, func() map[string]string {
		all := map[string]string{}
		for i := range p.Spec.Commits {
			if c := &p.Spec.Commits[i]; lockfile.ObjectName(c.Rev) {
				all[c.Name] = c.Rev
			}
		}
		return all
	})[commit]
}

// isAt reports whether a fix was learnt for a block.
func isAt(l lockfile.Fix, block hclspec.Address) bool { return l.At == "" || l.At == blockOf(block) }

// blockOf returns the declared block of an address: the wheel of a build, the benchmark of a try.
func blockOf(a hclspec.Address) string {
	if a.Kind == "build" {
		a.Kind = "wheel"
	}
	declared, _, _ := strings.Cut(a.Name, " ")
	return a.Kind + "." + declared
}

// gatherFixes gives every member the fixes with which its measured artefacts were made. A build that a fix of one
// variant made faster must not be compared with a build without it.
func (b *builder) gatherFixes() {
	if len(b.fixes) == 0 {
		return
	}
	under := map[*engine.Node][]fix.Due{}
	var visit func(n *engine.Node) []fix.Due
	visit = func(n *engine.Node) []fix.Due {
		if known, ok := under[n]; ok {
			return known
		}
		under[n] = nil // NewGraph reports cycles
		var list []fix.Due
		switch t := n.Task.(type) {
		case worker:
			list = slices.Clone(t.common().fixes)
		case *image.Task:
			list = slices.Clone(t.Fixes)
		}
		for _, dep := range n.Needs {
			list = fix.Merge(list, visit(dep))
		}
		under[n] = list
		return list
	}
	for _, g := range b.Groups {
		for i := range g.Members {
			m := &g.Members[i]
			var r input.Refs
			addMember(&r, *m)
			all := slices.Clone(m.fixes)
			for _, a := range r {
				if n := b.nodes[a]; n != nil {
					all = fix.Merge(all, visit(n))
				}
			}
			m.under = all[len(m.fixes):]
		}
	}
}

// cures returns the fixes that failures of a block may teach. A failure of a patched candidate tells of its patch
// rather than of the environment, so it teaches only fixes that are declared for patches.
func (p *Drawing) cures(eligible []hclspec.Address, block hclspec.Address, candidate string) []fix.Cure {
	c := p.candidates[candidate]
	patched := c != nil && c.Patch != ""
	rev := p.revOf(CommitOf(cmp.Or(candidate, block.Key)))
	var all []fix.Cure
	for _, a := range eligible {
		f := p.fixes[a]
		if f == nil || f.Detect == "" {
			continue
		}
		if _, ok := f.Case(block, candidate); !ok {
			continue
		}
		one := fix.Cure{Fix: f, At: blockOf(block), Rev: rev}
		if patched && !f.Patches {
			one.At = ""
		}
		all = append(all, one)
	}
	return all
}

// SubjectOf returns the candidate that a failure of a node is about: a member of a block, under its present name, or
// the node's key.
func SubjectOf(n *engine.Node, f *failure.Failure) string {
	if t, ok := n.Task.(*trialTask); ok {
		for _, m := range t.members {
			if m.Candidate != "" && f.IsAbout(m.Candidate) {
				return m.Candidate
			}
		}
	}
	a, _ := hclspec.ParseAddress(n.Address)
	return a.Key
}

// CuresOf returns the fixes that a failure of a node, or of one member of a block, may teach, and the fixes that are
// applied already.
func CuresOf(n *engine.Node, candidate string) (cures []fix.Cure, applied []fix.Due) {
	cures, applied = curesOf(n, candidate)
	return slices.DeleteFunc(slices.Clone(cures), func(c fix.Cure) bool { return c.At == "" }), applied
}

func curesOf(n *engine.Node, candidate string) (cures []fix.Cure, applied []fix.Due) {
	switch t := n.Task.(type) {
	case worker:
		w := t.common()
		return w.cures, fix.Merge(slices.Clone(w.fixes), w.built)
	case *image.Task:
		return t.Cures, t.Fixes
	case *fillTask:
		m := t.members[0]
		return m.cures, fix.Merge(slices.Clone(m.fixes), m.built)
	case *trialTask:
		for _, m := range t.members {
			if m.Candidate == candidate {
				return m.cures, fix.Merge(slices.Clone(m.fixes), m.built)
			}
		}
	}
	return nil, nil
}
