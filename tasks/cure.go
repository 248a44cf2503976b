package tasks

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/image"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/shell/output"
)

// cure is a fix that may be learnt from the failures of a node.
type cure struct {
	fix *hclspec.Fix
	at  string // block that it is then applied to, as kind.name
}

// cures are the fixes that failures of a block may teach. A failure of a patched candidate says something of its patch,
// and not of the environment: it teaches only fixes that are declared for patches.
func (p *drawing) cures(eligible []hclspec.Address, block hclspec.Address, candidate string) []cure {
	c := p.candidates[candidate]
	patched := c != nil && c.Patch != ""
	var all []cure
	for _, a := range eligible {
		f := p.fixes[a]
		if f == nil || f.Detect == "" || patched && !f.Patches {
			continue
		}
		if _, ok := f.Case(block, candidate); ok {
			all = append(all, cure{f, blockOf(block)})
		}
	}
	return all
}

func fixesOf(cures []cure) []*hclspec.Fix {
	all := make([]*hclspec.Fix, len(cures))
	for i, c := range cures {
		all[i] = c.fix
	}
	return all
}

// curesOf are the cures of a node, or of a member of a block, and the fixes that are applied there.
func curesOf(n *engine.Node, candidate string) (cures []cure, applied []fix.Due) {
	switch t := n.Task.(type) {
	case *buildTask:
		return t.cures, fix.Merge(slices.Clone(t.fixes), t.built)
	case *commandTask:
		return t.cures, fix.Merge(slices.Clone(t.fixes), t.built)
	case *image.Task:
		for _, f := range t.Allowed {
			cures = append(cures, cure{f, blockOf(t.Spec.Address)})
		}
		return cures, t.Fixes
	case *fillTask:
		m := t.members[0]
		return m.cures, fix.Merge(slices.Clone(m.fixes), m.built)
	case *trialTask:
		for _, m := range t.members {
			if m.candidate == candidate {
				return m.cures, fix.Merge(slices.Clone(m.fixes), m.built)
			}
		}
	}
	return nil, nil
}

// learn takes over the fixes that failures ask for into the lock. It returns what was new.
func (p *facts) learn(plan *engine.Plan) []string {
	var news []string
	for i := range plan.Steps {
		s := &plan.Steps[i]
		if s.Failure == nil {
			continue
		}
		f := s.Failure.Failure
		name, ok := fix.Wanted(f.Rule)
		if !ok {
			continue
		}
		candidate := subjectOf(s.Node, f)
		cures, _ := curesOf(s.Node, candidate)
		if i := slices.IndexFunc(cures, func(c cure) bool { return c.fix.Address.Name == name }); i >= 0 {
			news = append(news, p.teach(cures[i], candidate, f.Evidence)...)
		}
	}
	return news
}

// subjectOf is the candidate that a failure is about: that of the block's member, or the node's key.
func subjectOf(n *engine.Node, f *cache.Failure) string {
	if a, err := hclspec.ParseAddress(n.Address); err == nil {
		return cmp.Or(f.Subject, a.Key)
	}
	return f.Subject
}

// teach adds a fix to the lock, and says so; nothing when it is there.
func (p *facts) teach(c cure, candidate, evidence string) []string {
	name, commit := c.fix.Address.Name, commitOf(candidate)
	known := func(l hclspec.LearntFix) bool { return l.Commit == commit && (l.At == "" || l.At == c.at) }
	if slices.ContainsFunc(p.Lock.Fixes[name], known) {
		return nil
	}
	if p.Lock.Fixes == nil {
		p.Lock.Fixes = map[string][]hclspec.LearntFix{}
	}
	p.Lock.Fixes[name] = append(p.Lock.Fixes[name], hclspec.LearntFix{Commit: commit, At: c.at, Evidence: evidence})
	return []string{fmt.Sprintf("fix.%s learnt for %s: %s (applied to %s)", name, cmp.Or(commit, "all"), evidence,
		c.at)}
}

// relearn looks whether fixes that were declared since would have been learnt from failures that are remembered: of
// nodes, and of members of blocks. It returns whether the lock has changed.
func (p *Project) relearn(ctx context.Context, plan *engine.Plan) (bool, error) {
	if len(p.fixes) == 0 || p.Locked {
		return false, nil
	}
	var news []string
	for i := range plan.Steps {
		s := &plan.Steps[i]
		if s.Failure != nil && s.Action == engine.Blocked && !s.Failure.Failure.Class.Retried() {
			news = append(news, p.recognize(s.Node, s.Failure.Failure, s.Failure.ID, "")...)
		}
	}
	ends, err := p.ends(ctx, plan, p.groups...)
	if err != nil {
		return false, err
	}
	for _, g := range p.groups {
		for _, t := range g.trials {
			end := ends[t.At.String()]
			step, ok := plan.Step(t.At.String())
			if end.Entry.Dir == "" || !ok {
				continue
			}
			rec, err := sample.ReadRecord(end.Entry)
			if err != nil {
				return false, fmt.Errorf("%s: %w", t.At, err)
			}
			for _, name := range sortedKeys(rec.Members) {
				if f := rec.Members[name].Failure; f != nil {
					news = append(news, p.recognize(step.Node, f, end.Entry.Log, name)...)
				}
			}
		}
	}
	if len(news) == 0 {
		return false, nil
	}
	for _, text := range news {
		fmt.Fprintf(p.Progress, "a remembered failure: %s\n", text)
	}
	p.unsaved = true
	p.next.remeasure()
	return true, nil
}

// recognize learns the fix whose detect matches a failure that is remembered, in the line that stands for it or else in
// the complete log of the attempt: in the part of a member, for a block.
func (p *Project) recognize(n *engine.Node, f *cache.Failure, attempt, member string) []string {
	candidate := subjectOf(n, f)
	cures, applied := curesOf(n, candidate)
	rules := fix.Detectors(fixesOf(cures), applied)
	asked := func(r metrics.Rule) bool { return r.Name == f.Rule } // apply learns this one by itself
	if len(rules) == 0 || p.recognized[attempt+" "+candidate] || slices.ContainsFunc(rules, asked) {
		return nil
	}
	p.recognized[attempt+" "+candidate] = true
	evidence := f.Evidence
	i := slices.IndexFunc(rules, func(r metrics.Rule) bool { return r.Match.MatchString(evidence) })
	if log, err := os.Open(filepath.Join(p.StateDir, "logs", filepath.Base(attempt)+".log")); i < 0 && err == nil {
		defer log.Close()
		if m, ok, err := metrics.Classify(rules, "", output.NewReader(log, member)); ok && err == nil {
			evidence = m.Evidence
			i = slices.IndexFunc(rules, func(r metrics.Rule) bool { return r.Name == m.Rule.Name })
		}
	}
	if i < 0 {
		return nil
	}
	name, _ := fix.Wanted(rules[i].Name)
	at := slices.IndexFunc(cures, func(c cure) bool { return c.fix.Address.Name == name })
	return p.teach(cures[at], candidate, evidence)
}
