// Package round decides, by the stored results of a planned graph, how the next graph differs: it has more blocks, or
// blocks without a member that cannot be built. It also adds learnt fixes to the lock.
package round

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell/input"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/tasks"
)

// Round is a planned graph, with the choice for the next graph.
type Round struct {
	*results.Stored
	Next   *tasks.Choice
	Missed []cache.Key    // keys under which blocks were looked up before members were dropped
	Looks  map[string]int // number of blocks at the last look, all measured, by group
}

// Adapt changes the choice by the results of the plan: members that cannot take part leave their groups, and groups
// whose verdicts are open get more blocks. It reports whether anything changed.
func (r *Round) Adapt(ctx context.Context) (bool, error) {
	changed := r.findMisfits()
	r.Looks = map[string]int{}
	for _, g := range r.Groups {
		_, alone := r.Next.Alone[g.Name]
		cut := r.Next.Blocks[g.Name] == 1
		switch whole := r.complete(g); {
		case (cut || !whole) && r.Unread(ctx, g) != cut: // no block after the pilot would count
			delete(r.Next.Blocks, g.Name)
			if changed = true; !cut {
				r.Next.Blocks[g.Name] = 1
			}
		case whole && (alone || cut): // members alone are not judged
		case whole:
			r.Looks[g.Name] = g.Count()
			changed = r.findIssues(ctx, g) || changed
			more, err := r.more(ctx, g)
			if err != nil {
				return false, err
			}
			if more > 0 {
				r.Next.Blocks[g.Name] = g.Count() + more
				changed = true
			}
		default:
			changed = r.drop(ctx, g, alone) || changed
		}
	}
	return changed, nil
}

// drop takes members that must not be measured out of a group's blocks. It reports whether there are any.
func (r *Round) drop(ctx context.Context, g *tasks.Group, alone bool) (changed bool) {
	if !alone {
		same := r.Identicals(r.Plan, g)
		maps.Copy(r.Next.Dropped, same)
		changed = len(same) > 0
	}
	wait := func() {} // called last, when all members that cannot be measured are known
	for _, m := range g.Members {
		address := m.Bench.Address.String()
		if _, known := r.Next.Dropped[address]; known {
			continue
		}
		gap, lacks := r.cannot(ctx, m)
		out := lacks
		if !lacks {
			gap, out = r.breaksBlocks(g, m)
		}
		if !out {
			continue
		}
		c, failed := r.causeBehind(g, m)
		if name := r.pendingFix(c); name != "" {
			gap = tasks.Absence{Outcome: stats.NotRun,
				Why: c.Address + " failed, and " + name + ", which mends that, has not been applied yet"}
		}
		r.Next.Dropped[address] = gap
		if failed {
			r.Next.Causes[address] = c
			if lacks && gap.Outcome == stats.Infra && !m.Baseline && !alone && g.Design.Pairing != "independent" &&
				!r.again(c) {
				wait = func() { r.wait(g, m, c) }
			}
		}
		changed = true
		for _, t := range g.Trials { // no block is stored, or no member would be dropped
			if step, ok := r.Plan.Step(t.At.String()); ok {
				r.Missed = append(r.Missed, step.Asked().Keys...)
			}
		}
	}
	wait()
	return changed
}

// findIssues notes members of a measured group for which a probe has since found a known issue, or whose code changes
// protected files. Their blocks stay, since other members were measured in them; their outcomes are those of members
// that were never measured. It reports whether it noted another member.
func (r *Round) findIssues(ctx context.Context, g *tasks.Group) (found bool) {
	for _, m := range g.Members {
		address := m.Bench.Address.String()
		if _, known := r.Next.Issues[address]; known || r.Excluded[m.Candidate].Outcome != "" {
			continue
		}
		for _, probe := range r.Probes[m.Candidate] {
			step, ok := r.Plan.Step(probe.String())
			if !ok || step.Failure == nil || !tasks.KnownIssue(step.Failure.Failure) &&
				!tasks.ProtectedFailure(step.Failure.Failure) {
				continue
			}
			r.Next.Issues[address], _ = causeOf(ctx, r.Plan, step)
			found = true
		}
	}
	return found
}

// complete reports whether the store has every sample of the group: in a block, or gathered from a block that is lost.
func (r *Round) complete(g *tasks.Group) bool {
	ungathered := func(m tasks.Member) bool {
		_, out := g.Absent[m.Name]
		return !out && !r.Has(m.Bench.Address)
	}
	lost := slices.ContainsFunc(g.Trials, func(t group.Block) bool { return !r.Has(t.At) })
	return len(g.Trials) > 0 && !(lost && slices.ContainsFunc(g.Members, ungathered))
}

// more returns how many further blocks the verdicts on the group ask for.
func (r *Round) more(ctx context.Context, g *tasks.Group) (int, error) {
	most := g.Design.BurnIn + g.Design.Max - g.Count() // further blocks that may be measured
	if most <= 0 {
		return 0, nil
	}
	told, all, err := r.Stand(ctx, g)
	if err != nil {
		return 0, err
	}
	more := 0
	for i := range r.Spec.Compares {
		if c := &r.Spec.Compares[i]; r.IsAbout(c, g) {
			k := findings.Case{Compare: c, Of: r.Of[c.Address], Allow: r.Allow}
			more = max(more, k.More(told, all))
		}
	}
	return min(most, more), nil
}

// wait keeps the other members of a group from being measured in blocks without m, if m lacks something only this time:
// they would have to be measured again together with m.
func (r *Round) wait(g *tasks.Group, m tasks.Member, c tasks.Cause) {
	for _, other := range g.Members {
		address := other.Bench.Address.String()
		if _, known := r.Next.Dropped[address]; !known && other.Name != m.Name {
			r.Next.Dropped[address] = tasks.Absence{Outcome: stats.NotRun, Why: fmt.Sprintf(
				"it is measured in the same blocks as %s, for which %s is missing this time: the next apply tries "+
					"again and, if it is missing again, measures the others without it, as with a skip block for %[1]s",
				m.Candidate, c.Address)}
		}
	}
}

// pendingFix returns the fix that a cause asks for and the lock does not have yet; "" if there is none, or for a zero
// cause.
func (r *Round) pendingFix(c tasks.Cause) string {
	step, ok := r.Plan.Step(c.Address)
	if !ok || c.Attempt.Failure == nil {
		return ""
	}
	candidate := tasks.SubjectOf(step.Node, c.Attempt.Failure)
	cures, _ := tasks.CuresOf(step.Node, candidate)
	if name, _, isNew := lesson(r.Lock, c.Attempt.Failure.Rule, cures, candidate); isNew {
		return "fix." + name
	}
	return ""
}

// again reports whether the node also failed like this in an earlier apply. If so, its group does not wait for it: a
// candidate whose build reports an unreachable server each time would keep its whole commit from being measured.
func (r *Round) again(c tasks.Cause) bool {
	return slices.ContainsFunc(r.Journal.Attempts(c.Address), func(a journal.Attempt) bool {
		return a.Key == c.Attempt.Key && a.Run != c.Attempt.Run && a.Failure != nil && a.Failure.Class.Retried() &&
			!a.Interrupted()
	})
}

// cannot returns why a member cannot be measured: a node that it needs failed or cannot be made here.
func (r *Round) cannot(ctx context.Context, m tasks.Member) (tasks.Absence, bool) {
	for _, a := range tasks.WaitsOf(m, r.Probes[m.Candidate]) {
		step, ok := r.Plan.Step(a.String())
		if !ok || a == m.Fill && step.Failure == nil { // nodes that block a fill also block the trials
			continue
		}
		if gap, out := causeOf(ctx, r.Plan, step); out {
			return gap, true
		}
	}
	if why := misfit(r.Plan, m.Bench.Data); why != "" {
		return tasks.Absence{Outcome: stats.Failed, Why: why}, true
	}
	return tasks.Absence{}, false
}

// breaksBlocks returns why a member cannot be measured: it made its blocks fail again and again.
func (r *Round) breaksBlocks(g *tasks.Group, m tasks.Member) (tasks.Absence, bool) {
	for _, t := range g.Trials {
		step, ok := r.Plan.Step(t.At.String())
		if !ok || step.Failure == nil || m.Baseline || m.Candidate == "" {
			continue
		}
		if f := step.Failure.Failure; f.Class.Retried() && f.IsAbout(m.Candidate) {
			return tasks.Absence{Outcome: stats.Infra, Why: findings.Explain(f)}, true
		}
	}
	return tasks.Absence{}, false
}

// causeOf returns the reason of the first node on the way to a step that has no result and cannot get one. A node with
// a result blocks no other, even if the user asked for another result.
func causeOf(ctx context.Context, plan *engine.Plan, step *engine.Step) (tasks.Absence, bool) {
	if step.Failure != nil {
		f := step.Failure.Failure
		why := f.Message // enough for a known issue: its probe is no cause
		if !tasks.KnownIssue(f) {
			why = step.Node.Address + ": " + findings.Explain(f)
		}
		return tasks.Absence{Outcome: classOf(step.Node, f), Why: why}, true
	}
	if _, stored := step.Stored(); stored || step.Action != engine.Blocked && step.Action != engine.Skip {
		return tasks.Absence{}, false
	}
	for _, dep := range slices.Concat(step.Node.Needs, step.Node.Order) {
		if s, ok := plan.Step(dep.Address); ok {
			if gap, out := causeOf(ctx, plan, s); out {
				return gap, true
			}
		}
	}
	exclude := step.Node.Exclude
	switch {
	case step.Never:
		return tasks.Absence{Outcome: stats.Infeasible, Why: step.Reason}, true
	case exclude.Action != "":
		return tasks.Absence{Outcome: stats.NotRun, Why: step.Node.Address + " " + exclude.Reason}, true
	case step.Node.Lacks != nil:
		if lacks := step.Node.Lacks(ctx); lacks != "" {
			return tasks.Absence{Outcome: stats.NotRun, Why: step.Node.Address + " " + lacks}, true
		}
	}
	return tasks.Absence{}, false
}

// causeBehind finds the failed node behind the absence of a member; false when nothing failed.
func (r *Round) causeBehind(g *tasks.Group, m tasks.Member) (tasks.Cause, bool) {
	seen := map[string]bool{}
	var follow func(step *engine.Step) (tasks.Cause, bool)
	follow = func(step *engine.Step) (tasks.Cause, bool) {
		at := step.Node.Address
		if seen[at] {
			return tasks.Cause{}, false
		}
		seen[at] = true
		if step.Failure != nil {
			return tasks.Cause{Address: at, Attempt: *step.Failure}, true
		}
		if _, stored := step.Stored(); stored {
			return tasks.Cause{}, false
		}
		for _, dep := range slices.Concat(step.Node.Needs, step.Node.Order) {
			if s, ok := r.Plan.Step(dep.Address); ok {
				if c, found := follow(s); found {
					return c, true
				}
			}
		}
		return tasks.Cause{}, false
	}
	for _, a := range tasks.WaitsOf(m, r.Probes[m.Candidate]) {
		if step, ok := r.Plan.Step(a.String()); ok {
			if c, found := follow(step); found {
				return c, true
			}
		}
	}
	for _, t := range g.Trials {
		step, ok := r.Plan.Step(t.At.String())
		if ok && step.Failure != nil && step.Failure.Failure.IsAbout(m.Candidate) {
			return tasks.Cause{Address: t.At.String(), Attempt: *step.Failure}, true
		}
	}
	return tasks.Cause{}, false
}

// classOf returns the outcome of a candidate for which a node failed.
func classOf(n *engine.Node, f *failure.Failure) stats.Outcome {
	switch {
	case f.Class.Retried():
		return stats.Infra
	case tasks.KnownIssue(f):
		return stats.Skipped
	case n.Kind == "repo": // the failure tells nothing about the candidate
		return stats.NotRun
	case n.Kind == "fill": // the candidate ran, as in a block
		return stats.Failed
	}
	return stats.BuildFailed
}

// findMisfits notes the tasks whose data needs the one file of a stored result that has several files, or none. The
// next round blocks these tasks. It reports whether there is a new one.
func (r *Round) findMisfits() (found bool) {
	some := false // most plans have no result that any data could be wrong for
	for i := range r.Plan.Steps {
		some = some || unlaid(&r.Plan.Steps[i], hclspec.Data{}) != ""
	}
	for i := 0; some && i < len(r.Spec.Tasks); i++ {
		if why := misfit(r.Plan, r.Spec.Tasks[i].Data); why != "" {
			address := r.Spec.Tasks[i].Address.String()
			found = found || r.Next.Misfits[address] == ""
			r.Next.Misfits[address] = why
		}
	}
	return found
}

// misfit returns why a stored result cannot be laid out as the file asks; "" if all can, as far as is known.
func misfit(plan *engine.Plan, data []hclspec.Data) string {
	for _, item := range data {
		if item.Tree {
			continue
		}
		if step, ok := plan.Step(item.Ref.String()); ok {
			if why := unlaid(step, item); why != "" {
				return why
			}
		}
	}
	return ""
}

// unlaid returns why the stored result of a step cannot be laid out as one file; "" if it can, as far as is known.
func unlaid(step *engine.Step, item hclspec.Data) string {
	// A remembered plan has the digest of a result without its files; then the node itself finds out.
	if m, stored := step.Stored(); stored && (!m.Created.IsZero() || m.Files != nil) {
		if message, remedy := input.Unlaid(item, cache.Entry{Meta: m}); message != "" {
			return message + ": " + remedy
		}
	}
	return ""
}
