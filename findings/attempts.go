package findings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/internal/words"
	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/findings/rule"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/stats/inference"
)

// attempts counts how the attempts at the blocks of a contrast ended. Blocks that both sides share are counted once.
func attempts(s, base *group.Standing) *stats.Attempts {
	a := &stats.Attempts{Valid: len(s.Series[s.Bench.Metrics.Primary])}
	seen := map[int]bool{}
	count := func(block int, tries []sample.Try) {
		if seen[block] {
			return
		}
		seen[block] = true
		for _, t := range tries {
			if s.Run != "" && t.Run != s.Run { // an attempt of another run
				continue
			}
			if t.Voided {
				a.Voided++
				a.Retried++
			} else {
				a.Replaced++
			}
			for _, l := range t.Lost {
				a.Add(variantOf(l.Candidate), string(l.Class), l.Rule)
			}
		}
	}
	for _, side := range []*group.Standing{s, base} {
		if side == nil {
			continue
		}
		for _, e := range side.Evidence {
			count(e.Block, e.Tries)
		}
		for _, f := range side.Lost {
			a.Add(variantOf(side.Candidate()), string(f.Class), f.Rule)
		}
	}
	if s.Absent != "" {
		clear(seen) // attempts that the absent member voided are not those of the blocks without it
	}
	for _, block := range slices.Sorted(maps.Keys(s.Tries)) { // of blocks that have no result
		count(block, s.Tries[block])
	}
	slices.SortFunc(a.Causes, func(x, y stats.Cause) int {
		return cmp.Or(strings.Compare(x.Variant, y.Variant), strings.Compare(x.Class, y.Class),
			strings.Compare(x.Rule, y.Rule))
	})
	return a
}

func variantOf(candidate string) string {
	return candidate[strings.Index(candidate, "/")+1:]
}

const (
	significant = 0.05 // p of Fisher's exact test below which losses are one-sided
	mostLost    = 0.1  // share of attempts that one side may lose while the other loses none
)

// survivorship returns the reason why the remaining samples are a selection: one side lost more lifecycles than the
// other, or too many losses are charged to nobody; empty: they are none. failed reports whether the candidate lost
// significantly more; passes reports whether so many further valid blocks would outweigh the losses.
func survivorship(a *stats.Attempts, s, base *group.Standing, further int) (reason string, failed, passes bool) {
	own, theirs := a.Lost(s.Name), a.Lost(base.Name)
	causes := 0
	for _, c := range a.Causes {
		causes += c.Count
	}
	// Each voided attempt has one cause. Replaced results without a failure were whole lifecycles of both sides.
	valid := a.Valid + max(0, a.Replaced-max(0, causes-a.Voided))
	p := inference.FisherExact(own, valid, theirs, valid)
	if !oneSided(own, theirs, valid) {
		reason, passes = group.Selected(a, further)
		return reason, false, passes
	}
	return fmt.Sprintf("survivorship: %s lost %d of %d lifecycles and %s %d of %d (Fisher's exact test: p = %.3g), "+
			"so the samples that are left are a selection",
			s.Title(), own, own+valid, base.Title(), theirs, theirs+valid, p), own > theirs && p < significant,
		further > 0 && !oneSided(own, theirs, valid+further)
}

// oneSided reports whether the losses of the sides are so unequal that the valid lifecycles are a selection.
func oneSided(own, theirs, valid int) bool {
	more := max(own, theirs)
	return inference.FisherExact(own, valid, theirs, valid) < significant ||
		min(own, theirs) == 0 && float64(more) > mostLost*float64(more+valid)
}

// history returns the caveats about voided attempts, replaced results, several applies and changes of the machine.
func history(a *stats.Attempts, s, base *group.Standing) []stats.Caveat {
	var list []stats.Caveat
	if a.Voided > 0 {
		list = append(list, stats.Caveat{Kind: stats.CaveatVoided,
			Text: words.Count(a.Voided, "attempt at a block was", "attempts at blocks were") +
				" voided and tried again" + causesText(a)})
	}
	if a.Replaced > 0 {
		list = append(list, stats.Caveat{Kind: stats.CaveatRerolled,
			Text: words.Count(a.Replaced, "result of a block was", "results of blocks were") +
				" replaced on request (-replace or -retry-failed)"})
	}
	if text := runsText(s, base); text != "" {
		list = append(list, stats.Caveat{Kind: stats.CaveatRuns, Text: text})
	}
	if text := machineChanged(s, base); text != "" {
		list = append(list, stats.Caveat{Kind: stats.CaveatMachine, Text: text})
	}
	return list
}

// machineChanged names the properties of the machine that differed between blocks. It returns "" if none is known to
// differ.
func machineChanged(s, base *group.Standing) string {
	seen := map[string]map[string]map[int]bool{} // name → value → blocks
	for _, e := range slices.Concat(s.Evidence, base.Evidence) {
		for name, value := range e.Machine {
			if seen[name] == nil {
				seen[name] = map[string]map[int]bool{}
			}
			if seen[name][value] == nil {
				seen[name][value] = map[int]bool{}
			}
			seen[name][value][e.Block] = true
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		values := seen[name]
		if len(values) < 2 {
			continue
		}
		first := func(value string) int { return slices.Min(slices.Collect(maps.Keys(values[value]))) }
		var texts []string
		for _, value := range slices.SortedFunc(maps.Keys(values), func(a, b string) int {
			return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a, b))
		}) {
			texts = append(texts, value+" in "+words.Blocks(slices.Sorted(maps.Keys(values[value]))))
		}
		parts = append(parts, name+": "+strings.Join(texts, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return "the machine was not the same for all blocks: " + strings.Join(parts, "; ")
}

func causesText(a *stats.Attempts) string {
	var parts []string
	for _, cause := range a.Causes {
		parts = append(parts, fmt.Sprintf("%s: %s [%s] × %d", cmp.Or(cause.Variant, "machine"), cause.Class,
			cmp.Or(cause.Rule, "undiagnosed"), cause.Count))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + words.Some(parts) + ")"
}

// runsText lists the blocks of each apply; empty: one apply measured all blocks.
func runsText(sides ...*group.Standing) string {
	blocks := map[string]map[int]bool{}
	var order []string
	for _, s := range sides {
		for _, e := range s.Evidence {
			if e.Run == "" {
				continue
			}
			if blocks[e.Run] == nil {
				blocks[e.Run] = map[int]bool{}
				order = append(order, e.Run)
			}
			blocks[e.Run][e.Block] = true
		}
	}
	if len(order) < 2 {
		return ""
	}
	slices.Sort(order)
	parts := make([]string, len(order))
	for i, run := range order {
		parts[i] = fmt.Sprintf("%s in run %s", words.Blocks(slices.Sorted(maps.Keys(blocks[run]))), run)
	}
	return fmt.Sprintf("the blocks were measured by %d applies: %s", len(order), words.Some(parts))
}

// ruleChanged returns a caveat if the rule that judges a row differs from the rule that its earliest block recorded.
// There is none for a row that shares the blocks of another row, if the rule of that row is the recorded one.
func (c *Case) ruleChanged(row stats.Comparison, fields []methodology.Field, s, base *group.Standing) []stats.Caveat {
	var first *sample.Evidence
	for _, side := range []*group.Standing{s, base} {
		for _, e := range slices.Concat(side.Aside, side.Evidence) {
			if len(e.Rule) > 0 && (first == nil || e.Start.Before(first.Start)) {
				first = &e
			}
		}
	}
	if first == nil || len(fields) == 0 {
		return nil
	}
	before, now := rule.Recorded(first, slices.Concat(s.Evidence, base.Evidence)), rule.From(fields)
	of := rule.Row{Compare: c.Compare, Metric: row.Metric, Unit: row.Unit, Primary: row.Primary}
	for _, other := range s.Shares.Rules {
		primary := before["primary"]
		its := rule.Row{Compare: c.Compare, Metric: primary, Unit: base.Units[primary], Primary: true}
		if len(before.Changes(rule.From(other), its)) == 0 {
			return nil
		}
	}
	var parts []string
	if text := before.Late(now, of); text != "" && row.Primary {
		parts = append(parts, text)
	}
	if parts = append(parts, before.Changes(now, of)...); len(parts) == 0 {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatRule, Text: fmt.Sprintf(
		"the judging rule changed after block %d was measured: %s", first.Block, strings.Join(parts, ", "))}}
}
