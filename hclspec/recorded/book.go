package recorded

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Commit is a commit of the universe, with the known expected properties of its measurements.
type Commit struct {
	Name, Rev, Parent string
	Model             string // model in its command
}

// States of one variant of a commit, beside Statuses.
const (
	Measured  = "measured" // at least one value counts
	Conflict  = "conflict" // records contradict each other, and none supersedes the other
	Excluded  = "excluded" // there are values, and none counts
	NoValue   = "no_value" // there are metrics, and none has a value
	NotStated = "not_recorded"
	// NoBaseline is the state of a failed variant whose baseline has no value either, so that the failure may be the
	// baseline's.
	NoBaseline = "no_baseline"
)

// Entry is a record with the decision about it.
type Entry struct {
	Line
	Counts    bool   `json:"counts"`
	Why       string `json:"why,omitempty"`       // reason why it does not count
	Diagnosis string `json:"diagnosis,omitempty"` // cause of a failure, as far as a line of a log proves it
}

// State is the state of one variant of a commit. There is exactly one for each.
type State struct {
	Commit  string `json:"commit"`
	Variant string `json:"variant"`
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Records int    `json:"records"`
}

// Refusal is a line that is refused, with the reason.
type Refusal struct {
	Line Line   `json:"line"`
	Why  string `json:"why"`
}

func (r Refusal) String() string {
	l := r.Line
	what := cmp.Or(l.Claim, l.Verdict, l.Metric, l.Status, "record")
	if l.Commit != "" {
		what = l.Commit + "/" + cmp.Or(l.Variant(), "?") + " " + what
	}
	if l.Source != "" {
		what += " (" + l.Source + ")"
	}
	return what + ": " + r.Why
}

// Book holds all records of a universe of commits, with the counts computed from them.
type Book struct {
	Commits  []Commit
	Variants []string // variants in the records, sorted, baseline and human first
	Entries  []Entry
	States   []State // of every commit in every variant
	Refused  []Refusal
	sides    map[string]string // by variant
	named    map[string]int    // first commit of each name
	revs     []int             // commits with a revision, ordered by revision
}

// Convert converts a value into another unit. It returns false if the units have different dimensions.
type Convert func(value float64, from, to string) (float64, bool)

// Keep makes a book of lines. The states do not depend on the order of the lines.
func Keep(commits []Commit, lines []Line, convert Convert) *Book {
	b := &Book{Commits: commits, sides: map[string]string{}, named: map[string]int{}}
	for i, c := range slices.Backward(commits) {
		b.named[c.Name] = i
		if c.Rev != "" {
			b.revs = append(b.revs, i)
		}
	}
	slices.SortFunc(b.revs, func(i, j int) int { return cmp.Compare(commits[i].Rev, commits[j].Rev) })
	var said []Line
	superseded := map[string]bool{}
	for _, l := range lines {
		if l.Supersedes != "" {
			superseded[b.name(l.Commit)+" "+l.Variant()+" "+l.Supersedes] = true
		}
	}
	for _, l := range lines {
		if l.says() {
			said = append(said, l)
			continue
		}
		c, ok := b.commit(l.Commit)
		if !ok {
			b.refuse(l, "no commit of the file has that name or revision, so it is in no universe")
			continue
		}
		l.Commit = c.Name
		e := Entry{Line: l, Counts: true}
		e.Why = exclusion(&l, c)
		if superseded[c.Name+" "+l.Variant()+" "+l.Source] {
			e.Why = supersededBy
		}
		e.Counts = e.Why == ""
		if l.Status != "" {
			e.Diagnosis = diagnosis(&l)
		}
		b.Entries = append(b.Entries, e)
		b.sides[l.Variant()] = l.Side
		if v := l.Variant(); !slices.Contains(b.Variants, v) {
			b.Variants = append(b.Variants, v)
		}
	}
	slices.SortFunc(b.Variants, func(a, c string) int {
		return cmp.Or(cmp.Compare(place(a), place(c)), cmp.Compare(a, c))
	})
	slices.SortStableFunc(b.Entries, order)
	b.findConflicts(convert)
	b.settle()
	b.judge(said)
	return b
}

func place(variant string) int {
	switch variant {
	case "baseline":
		return 0
	case "human":
		return 1
	}
	return 2
}

func order(a, c Entry) int {
	value := func(e Entry) float64 {
		if e.Value == nil {
			return 0
		}
		return *e.Value
	}
	return cmp.Or(cmp.Compare(a.Commit, c.Commit), cmp.Compare(place(a.Variant()), place(c.Variant())),
		cmp.Compare(a.Variant(), c.Variant()),
		cmp.Compare(a.Runner, c.Runner), cmp.Compare(a.Metric, c.Metric), cmp.Compare(a.Status, c.Status),
		cmp.Compare(a.Source, c.Source),
		cmp.Compare(value(a), value(c)), cmp.Compare(a.Cause, c.Cause))
}

// commit finds the first commit with a name, or with a revision of which name has at least 7 digits.
func (b *Book) commit(name string) (Commit, bool) {
	if name == "" {
		return Commit{}, false
	}
	first, ok := b.named[name]
	if len(name) >= 7 {
		at, _ := slices.BinarySearchFunc(b.revs, name, func(i int, name string) int {
			return cmp.Compare(b.Commits[i].Rev, name)
		})
		for ; at < len(b.revs) && strings.HasPrefix(b.Commits[b.revs[at]].Rev, name); at++ {
			if i := b.revs[at]; !ok || i < first {
				first, ok = i, true
			}
		}
	}
	if !ok {
		return Commit{}, false
	}
	return b.Commits[first], true
}

func (b *Book) name(of string) string {
	c, _ := b.commit(of)
	return c.Name
}

func (b *Book) refuse(l Line, format string, args ...any) {
	b.Refused = append(b.Refused, Refusal{l, fmt.Sprintf(format, args...)})
}

// exclusion returns the reason why a record does not count; empty: it counts.
func exclusion(l *Line, c Commit) string {
	switch {
	case l.Metric == "":
		return "it has no metric"
	case l.Value == nil:
		return "the metric has no value"
	case len(l.Flags) > 0:
		return "flagged: " + strings.Join(l.Flags, ", ")
	case l.Unit == "":
		return "its unit is not recorded"
	case l.Model != "" && c.Model != "" && l.Model != c.Model:
		return fmt.Sprintf("measured with %s, and the commit's command names %s: another methodology", l.Model, c.Model)
	}
	expected := ""
	switch l.Side {
	case "baseline", "agent":
		expected = c.Parent
	case "human":
		expected = c.Rev
	}
	if l.Installed != "" && expected != "" && !strings.HasPrefix(expected, l.Installed) &&
		!strings.HasPrefix(l.Installed, expected) {
		return fmt.Sprintf("it ran %s, and %s was to be measured", l.Installed, expected)
	}
	return ""
}

// Beginnings of reasons.
const (
	undiagnosed = "undiagnosed"
	conflicting = "conflict:"
)

// diagnosis returns the cause of a failure as far as a line of a log proves it.
func diagnosis(l *Line) string {
	switch {
	case l.Cause == "" && l.Evidence == "":
		return undiagnosed
	case l.Evidence == "":
		return undiagnosed + ": no line of a log shows " + fmt.Sprintf("%q", l.Cause)
	case l.Cause == "":
		return undiagnosed + ": " + l.Evidence
	}
	return l.Cause + ": " + l.Evidence
}

// same identifies a measurement: two records with one identity and different values cannot both be true.
type same struct{ commit, variant, runner, metric, model, methodology string }

func (e *Entry) identity() same {
	return same{e.Commit, e.Variant(), e.Runner, e.Metric, e.Model, e.Methodology}
}

// figure is a value in the unit in which it was recorded.
type figure struct {
	value float64
	unit  string
}

// rounding is the relative difference that may come from writing one value in two units.
const rounding = 1e-9

// findConflicts excludes all values of a measurement that is recorded with different values. Units of one dimension are
// converted before the comparison.
func (b *Book) findConflicts(convert Convert) {
	figures := map[same][]figure{}
	for _, e := range b.Entries {
		if e.Counts {
			f, id := figure{*e.Value, e.Unit}, e.identity()
			if !slices.Contains(figures[id], f) {
				figures[id] = append(figures[id], f)
			}
		}
	}
	for i := range b.Entries {
		e := &b.Entries[i]
		if !e.Counts {
			continue
		}
		var all []float64
		for _, f := range figures[e.identity()] {
			v, ok := convert(f.value, f.unit, e.Unit)
			if ok && !slices.ContainsFunc(all, func(w float64) bool { return math.Abs(v-w) <= rounding*math.Abs(v) }) {
				all = append(all, v)
			}
		}
		if len(all) > 1 {
			slices.Sort(all)
			e.Counts, e.Why = false,
				fmt.Sprintf(conflicting+" %v %s are recorded for the same measurement, and none supersedes the other",
					all, e.Unit)
		}
	}
}

// settle gives every commit in every variant exactly one state.
func (b *Book) settle() {
	type cell struct{ commit, variant string }
	entries := map[cell][]*Entry{}
	for i := range b.Entries {
		e := &b.Entries[i]
		at := cell{e.Commit, e.Variant()}
		entries[at] = append(entries[at], e)
	}
	for _, c := range b.Commits {
		for _, v := range b.Variants {
			s := State{Commit: c.Name, Variant: v, Records: len(entries[cell{c.Name, v}])}
			s.State, s.Reason = standing(entries[cell{c.Name, v}])
			if s.State == "failed" && v != "baseline" && slices.Contains(b.Variants, "baseline") {
				if base, _ := standing(entries[cell{c.Name, "baseline"}]); base != Measured {
					s.State, s.Reason = NoBaseline,
						"the baseline is "+base+", so nobody can tell whose failure it was; "+s.Reason
				}
			}
			b.States = append(b.States, s)
		}
	}
}

// supersededBy is the reason of entries that a later record replaces.
const supersededBy = "a later record supersedes it"

// standing returns the state of one variant of a commit by its records: the best state of its runners.
func standing(entries []*Entry) (state, reason string) {
	byRunner := map[string][]*Entry{}
	for _, e := range entries {
		if e.Why != supersededBy {
			byRunner[e.Runner] = append(byRunner[e.Runner], e)
		}
	}
	best := len(ranks())
	for _, runner := range slices.Sorted(maps.Keys(byRunner)) {
		s, why := standingIn(byRunner[runner])
		if r := slices.Index(ranks(), s); r < best {
			best, state, reason = r, s, why
		}
	}
	if state == "" {
		return NotStated, "nothing is recorded of it"
	}
	return state, reason
}

// ranks returns the states of a runner, the most informative first.
func ranks() []string {
	return []string{Measured, Conflict, "failed", "build_failed", "infra", "infeasible", "no_image", "no_patch",
		"not_run", "skipped", Excluded, NoValue}
}

// standingIn returns the state by the records of one runner.
func standingIn(entries []*Entry) (state, reason string) {
	var counts, conflict, value bool
	statuses := map[string][]string{} // status → diagnoses
	var reasons []string              // reasons of values that do not count
	for _, e := range entries {
		counts = counts || e.Counts
		conflict = conflict || strings.HasPrefix(e.Why, conflicting)
		value = value || e.Value != nil
		if e.Status != "" {
			statuses[e.Status] = append(statuses[e.Status], e.Diagnosis)
		}
		if !e.Counts && e.Metric != "" {
			reasons = append(reasons, e.Why)
		}
	}
	why := clearest(reasons)
	names := slices.Sorted(maps.Keys(statuses))
	switch {
	case counts && len(names) > 0 || len(names) > 1:
		if counts {
			names = append([]string{Measured}, names...)
		}
		return Conflict, "recorded as " + strings.Join(names, " and as ") + ", and none supersedes the other"
	case counts:
		return Measured, ""
	case conflict:
		return Conflict, why
	case len(names) == 1:
		return names[0], clearest(statuses[names[0]])
	case value:
		return Excluded, why
	}
	return NoValue, why
}

// clearest returns the most informative reason, whatever the order of the records: a conflict before others, a cause
// with a line of a log before an undiagnosed failure. Empty: there is no reason.
func clearest(reasons []string) string {
	rank := func(reason string) int {
		switch {
		case strings.HasPrefix(reason, conflicting):
			return 0
		case reason == "":
			return 4
		case reason == undiagnosed:
			return 3
		case strings.HasPrefix(reason, undiagnosed):
			return 2
		}
		return 1
	}
	return slices.MinFunc(append([]string{""}, reasons...), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
}
