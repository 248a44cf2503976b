package recorded

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Count is one part of a partition.
type Count struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Of    int    `json:"of"`
}

// Availability partitions the commits by the sides that have a value. All agents count as one side.
func (b *Book) Availability() []Count {
	have, sides := map[string][]string{}, map[string]bool{}
	for _, s := range b.States {
		side := b.sides[s.Variant]
		sides[side] = true
		if s.State == Measured && !slices.Contains(have[s.Commit], side) {
			have[s.Commit] = append(have[s.Commit], side)
		}
	}
	counts := map[string]int{}
	for _, c := range b.Commits {
		counts[Pattern(have[c.Name], len(sides))]++
	}
	return Partition(counts, len(b.Commits))
}

// Pattern returns the name of a set of sides or variants, out of all.
func Pattern(have []string, all int) string {
	switch {
	case len(have) == 0:
		return "none"
	case len(have) == all:
		return "all"
	}
	return strings.Join(have, " and ") + " only"
}

// ByState partitions the variants of all commits by state.
func (b *Book) ByState() []Count {
	counts := map[string]int{}
	for _, s := range b.States {
		counts[s.State]++
	}
	return Partition(counts, len(b.States))
}

// Partition returns the parts of a partition of so many things, the larger ones first.
func Partition(counts map[string]int, of int) []Count {
	var all []Count
	for name, n := range counts {
		all = append(all, Count{name, n, of})
	}
	slices.SortFunc(all, func(a, c Count) int {
		return cmp.Or(cmp.Compare(c.Count, a.Count), cmp.Compare(a.Name, c.Name))
	})
	return all
}

// Counts returns all counts that the book computes, by name: commits, records, complete, win, loss, tie, each variant,
// each variant with each of its states, and the availability.
func (b *Book) Counts() map[string]int {
	counts := map[string]int{"commits": len(b.Commits), "records": len(b.Entries), "win": 0, "loss": 0, "tie": 0,
		"complete": b.complete()}
	for _, v := range b.Variants {
		counts[v] = 0
	}
	for _, s := range b.States {
		if s.State == Measured {
			counts[s.Variant]++
		}
		counts[s.Variant+" "+s.State]++
		counts[s.State]++
	}
	for _, name := range []string{"none", "all"} {
		counts[name] = 0
	}
	for _, c := range b.Availability() {
		counts[c.Name] = c.Count
	}
	return counts
}

// complete counts the commits for which all sides in the records have a value of one metric from one runner. At least
// one side must be able to be the baseline: one that is neither human nor agent. If there is none, no commit is
// complete.
func (b *Book) complete() int {
	type run struct{ commit, runner, metric, unit, model string }
	have := map[run]map[string]bool{}
	for i := range b.Entries {
		if e := &b.Entries[i]; e.Counts {
			r := run{e.Commit, e.Runner, e.Metric, e.Unit, e.Model}
			if have[r] == nil {
				have[r] = map[string]bool{}
			}
			have[r][e.Side] = true
		}
	}
	sides, based := map[string]bool{}, false
	for _, side := range b.sides {
		sides[side], based = true, based || side != "human" && side != "agent"
	}
	whole := map[string]bool{}
	for r, own := range have {
		if based && len(own) == len(sides) && len(own) > 1 {
			whole[r.commit] = true
		}
	}
	return len(whole)
}

// judge refuses the statements of studies that do not follow from their results.
func (b *Book) judge(said []Line) {
	counts := b.Counts()
	type whole struct{ source, name string }
	sums, of := map[whole]int{}, map[whole]Line{}
	var wholes []whole
	for _, l := range said {
		if l.Partition != "" && l.Count != nil {
			at := whole{l.Source, l.Partition}
			if _, known := of[at]; !known {
				wholes = append(wholes, at)
			}
			sums[at] += *l.Count
			of[at] = l
		}
	}
	for _, at := range wholes {
		if sums[at] != len(b.Commits) {
			l := of[at]
			l.Claim, l.Count = at.name, nil
			b.refuse(l, "its parts sum to %d, and there are %d commits", sums[at], len(b.Commits))
		}
	}
	for _, l := range said {
		if why := b.objection(l, counts); why != "" {
			b.refuse(l, "%s", why)
		}
	}
}

// objection returns the reason why a line does not follow from the records; empty: it does.
func (b *Book) objection(l Line, counts map[string]int) string {
	switch {
	case l.Fixable != nil:
		return "whether a failure can be mended follows from its rule and from attempts with a fix, not from a " +
			"statement"
	case l.Verdict != "":
		return b.noVerdict(l)
	case l.Percent != nil && (l.Of == nil || l.Count == nil):
		return "a percentage names its count and what that is a part of"
	}
	n, known := counts[l.Claim]
	switch {
	case !known:
		return "nothing that is recorded computes this count; counts that are computed: " +
			strings.Join(names(counts), ", ")
	case l.Of != nil && *l.Of != len(b.Commits):
		return fmt.Sprintf("it is of %d, and there are %d commits", *l.Of, len(b.Commits))
	case *l.Count != n:
		return fmt.Sprintf("%d is typed, and the records give %d", *l.Count, n)
	case l.Percent != nil && !near(*l.Percent, n, *l.Of):
		return fmt.Sprintf("%g %% is typed, and %d of %d is another share", *l.Percent, n, *l.Of)
	}
	return ""
}

func near(percent float64, n, of int) bool {
	if of == 0 {
		return false
	}
	share := 100 * float64(n) / float64(of)
	return percent > share-1 && percent < share+1
}

func names(counts map[string]int) []string {
	return slices.Sorted(maps.Keys(counts))
}

// noVerdict returns the reason why records of two sides give no winner.
func (b *Book) noVerdict(l Line) string {
	name := b.name(l.Commit)
	side := func(variant string) (found []*Entry) {
		for i := range b.Entries {
			if e := &b.Entries[i]; e.Commit == name && e.Variant() == variant &&
				(l.Metric == "" || e.Metric == l.Metric) {
				found = append(found, e)
			}
		}
		return found
	}
	one, other := side(l.Variant()), side(l.Against)
	if len(one) == 0 || len(other) == 0 {
		return fmt.Sprintf("no verdict: %s and %s do not both have a record of the metric", l.Variant(), l.Against)
	}
	best := ""
	for _, a := range one {
		for _, c := range other {
			if best = Difference(*a, *c); best == "" {
				return "no verdict: one value a side says nothing of the noise between runs"
			}
		}
	}
	return "no verdict: " + best
}

// Difference returns the reason why two records cannot be compared; empty: everything that is recorded about them
// agrees.
func Difference(a, c Entry) string {
	for _, e := range []Entry{a, c} {
		if !e.Counts {
			return e.Variant() + ": " + e.Why
		}
	}
	for _, field := range []struct{ name, a, c string }{
		{"runner", a.Runner, c.Runner}, {"metric", a.Metric, c.Metric}, {"unit", a.Unit, c.Unit},
		{"model", a.Model, c.Model},
		{"gpus", fmt.Sprint(a.GPUs), fmt.Sprint(c.GPUs)}, {"methodology", a.Methodology, c.Methodology},
	} {
		if field.a != field.c {
			return fmt.Sprintf("not comparable: %s is %q against %q", field.name, field.a, field.c)
		}
	}
	if a.Methodology == "" {
		return "not comparable: how they were measured is not recorded"
	}
	return ""
}
