package campaign

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/shell/output"
	"github.com/benchgraph/benchgraph/tasks"
)

// learn takes over the fixes that failures ask for into the lock. It returns what was new.
func (p *Project) learn(plan *engine.Plan) []string {
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
		cures, _ := tasks.CuresOf(s.Node, candidate)
		if i := slices.IndexFunc(cures, func(c tasks.Cure) bool { return c.Fix.Address.Name == name }); i >= 0 {
			news = append(news, p.teach(cures[i], candidate, f.Evidence)...)
		}
	}
	return news
}

// subjectOf is the candidate that a failure is about: that of the block's member, or the node's key.
func subjectOf(n *engine.Node, f *failure.Failure) string {
	if a, err := hclspec.ParseAddress(n.Address); err == nil {
		return cmp.Or(f.Subject, a.Key)
	}
	return f.Subject
}

// teach adds a fix to the lock, and says so; nothing when it is there.
func (p *Project) teach(c tasks.Cure, candidate, evidence string) []string {
	name, commit := c.Fix.Address.Name, tasks.CommitOf(candidate)
	known := func(l hclspec.LearntFix) bool { return l.Commit == commit && (l.At == "" || l.At == c.At) }
	if slices.ContainsFunc(p.Lock.Fixes[name], known) {
		return nil
	}
	if p.Lock.Fixes == nil {
		p.Lock.Fixes = map[string][]hclspec.LearntFix{}
	}
	p.Lock.Fixes[name] = append(p.Lock.Fixes[name], hclspec.LearntFix{Commit: commit, At: c.At, Evidence: evidence})
	return []string{fmt.Sprintf("fix.%s learnt for %s: %s (applied to %s)", name, cmp.Or(commit, "all"), evidence,
		c.At)}
}

// relearn looks whether fixes that were declared since would have been learnt from failures that are remembered: of
// nodes, and of members of blocks. It returns whether the lock has changed.
func (p *Project) relearn(ctx context.Context, plan *engine.Plan) (bool, error) {
	if len(p.Spec.Fixes) == 0 || p.Locked {
		return false, nil
	}
	var news []string
	for i := range plan.Steps {
		s := &plan.Steps[i]
		if s.Failure != nil && s.Action == engine.Blocked && !s.Failure.Failure.Class.Retried() {
			news = append(news, p.recognize(s.Node, s.Failure.Failure, s.Failure.ID, "")...)
		}
	}
	ends, err := p.ends(ctx, plan, p.Groups...)
	if err != nil {
		return false, err
	}
	for _, g := range p.Groups {
		for _, t := range g.Trials {
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
	p.next.Remeasure()
	return true, nil
}

// recognize learns the fix whose detect matches a failure that is remembered, in the line that stands for it or else in
// the complete log of the attempt: in the part of a member, for a block.
func (p *Project) recognize(n *engine.Node, f *failure.Failure, attempt, member string) []string {
	candidate := subjectOf(n, f)
	cures, applied := tasks.CuresOf(n, candidate)
	rules := fix.Detectors(tasks.FixesOf(cures), applied)
	asked := func(r metrics.Rule) bool { return r.Name == f.Rule } // apply learns this one by itself
	if len(rules) == 0 || p.recognized[attempt+" "+candidate] || slices.ContainsFunc(rules, asked) {
		return nil
	}
	p.recognized[attempt+" "+candidate] = true
	evidence := f.Evidence
	i := slices.IndexFunc(rules, func(r metrics.Rule) bool { return r.Pattern.MatchString(evidence) })
	if log, err := os.Open(filepath.Join(p.StateDir, "logs", filepath.Base(attempt)+".log")); i < 0 && err == nil {
		defer log.Close()
		if m, ok, err := metrics.Classify(rules, "", output.NewReader(log, member)); ok && err == nil {
			evidence = m.Evidence
			i = slices.IndexFunc(rules, func(r metrics.Rule) bool { return r.Name == m.Rule })
		}
	}
	if i < 0 {
		return nil
	}
	name, _ := fix.Wanted(rules[i].Name)
	at := slices.IndexFunc(cures, func(c tasks.Cure) bool { return c.Fix.Address.Name == name })
	return p.teach(cures[at], candidate, evidence)
}
