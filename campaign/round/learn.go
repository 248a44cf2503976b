package round

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/shell/output"
	"github.com/benchgraph/benchgraph/source/download"
	"github.com/benchgraph/benchgraph/tasks"
)

// Learner adds to a lock the fixes and the digests of downloads that plans teach.
type Learner struct {
	Lock     *lockfile.Lock
	Logs     string          // directory of the logs of attempts
	searched map[string]bool // attempts whose logs were searched for fixes that were declared later
}

// Learn adds the fixes that failures of a plan ask for. It returns a line of news for each new fix.
func (l *Learner) Learn(plan *engine.Plan) (news []string) {
	for i := range plan.Steps {
		if s := &plan.Steps[i]; s.Failure != nil {
			f := s.Failure.Failure
			candidate := tasks.SubjectOf(s.Node, f)
			cures, _ := tasks.CuresOf(s.Node, candidate)
			news = append(news, l.teach(f.Rule, cures, candidate, f.Evidence)...)
		}
	}
	return news
}

// teach adds the fix that a rule asks for to the lock, and returns the news for the user. It returns nil if the lock
// has the fix already, or if the cures do not have it.
func (l *Learner) teach(rule string, cures []fix.Cure, candidate, evidence string) []string {
	name, learnt, isNew := lesson(l.Lock, rule, cures, candidate)
	if !isNew {
		return nil
	}
	learnt.Evidence = evidence
	l.Lock.Learn(name, learnt)
	return []string{fmt.Sprintf("fix.%s learnt for %s: %s (applied to %s)", name, cmp.Or(learnt.Commit, "all"),
		evidence, learnt.At)}
}

// lesson returns the fix that a rule asks for, as an entry for the lock. isNew is false if the lock has the entry, and
// if the cures lack the fix.
func lesson(lock *lockfile.Lock, rule string, cures []fix.Cure, candidate string) (name string, learnt lockfile.Fix,
	isNew bool) {
	name, wanted := fix.Wanted(rule)
	at := slices.IndexFunc(cures, func(c fix.Cure) bool { return c.Fix.Address.Name == name })
	if !wanted || at < 0 {
		return name, learnt, false
	}
	c := cures[at]
	learnt = lockfile.Fix{Commit: tasks.CommitOf(candidate), Rev: c.Rev, At: c.At}
	return name, learnt, !slices.ContainsFunc(lock.Fixes[name], func(known lockfile.Fix) bool {
		return known.Holds(learnt.Commit, learnt.Rev) && (known.At == "" || known.At == learnt.At)
	})
}

// Relearn adds fixes that were declared after a failure that asks for them: a remembered failure of a node, or of a
// member of a block. It returns a line of news for each new fix.
func (l *Learner) Relearn(ctx context.Context, s *results.Stored) (news []string, err error) {
	for i := range s.Plan.Steps {
		step := &s.Plan.Steps[i]
		if f := step.Failure; f != nil && step.Action == engine.Blocked && !f.Failure.Class.Retried() {
			news = append(news, l.recognize(step.Node, f.Failure, f.ID, "")...)
		}
	}
	err = s.Records(ctx, func(step *engine.Step, e cache.Entry, rec *sample.Record) {
		for _, name := range slices.Sorted(maps.Keys(rec.Members)) {
			if f := rec.Members[name].Failure; f != nil {
				news = append(news, l.recognize(step.Node, f, e.Log, name)...)
			}
		}
	})
	return news, err
}

// recognize learns the fix whose detect matches a remembered failure: its evidence, or else a line of the attempt's
// complete log. For a block, only the member's part of the log counts.
func (l *Learner) recognize(n *engine.Node, f *failure.Failure, attempt, member string) []string {
	candidate := tasks.SubjectOf(n, f)
	cures, applied := tasks.CuresOf(n, candidate)
	rules := fix.Detectors(cures, applied)
	asked := func(r classify.Rule) bool { return r.Name == f.Rule } // Learn learns the fix of this rule
	if len(rules) == 0 || l.searched[attempt+" "+candidate] || slices.ContainsFunc(rules, asked) {
		return nil
	}
	if l.searched == nil {
		l.searched = map[string]bool{}
	}
	l.searched[attempt+" "+candidate] = true
	for _, r := range rules {
		if r.Pattern.MatchString(f.Evidence) {
			return l.teach(r.Name, cures, candidate, f.Evidence)
		}
	}
	log, err := os.Open(filepath.Join(l.Logs, filepath.Base(attempt)+".log"))
	if err != nil {
		return nil
	}
	defer log.Close()
	m, ok, err := classify.Log(rules, "", output.NewReader(log, member))
	if !ok || err != nil {
		return nil
	}
	return l.teach(m.Rule, cures, candidate, m.Evidence)
}

// Pin adds the digests of downloads whose digest the file does not declare. It reports whether the lock changed.
func (l *Learner) Pin(plan *engine.Plan) (changed bool) {
	for i := range plan.Steps {
		url := tasks.Undeclared(plan.Steps[i].Node)
		if url == "" {
			continue
		}
		entry, stored := plan.Steps[i].Stored()
		at := slices.IndexFunc(entry.Files, func(f cache.File) bool { return f.Path == download.FileName(url) })
		if !stored || at < 0 || l.Lock.Fetches[url].SHA256 == entry.Files[at].SHA256 {
			continue
		}
		if l.Lock.Fetches == nil {
			l.Lock.Fetches = map[string]lockfile.Fetch{}
		}
		l.Lock.Fetches[url] = lockfile.Fetch{SHA256: entry.Files[at].SHA256, Size: entry.Files[at].Size}
		changed = true
	}
	return changed
}
