package stats

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/stats/inference"
)

// Outcomes returns all outcomes, in the order in which they are decided.
func Outcomes() []Outcome {
	return []Outcome{Skipped, NoPatch, Infeasible, NoBaseline, BuildFailed, Failed, Wrong, Infra, NotComparable, NotRun,
		Win, Loss, Tie, Inconclusive}
}

// Judged reports whether the outcome comes from figures: win, loss, tie or inconclusive.
func (o Outcome) Judged() bool { return o == Win || o == Loss || o == Tie || o == Inconclusive }

// Ratio holds the figures of a candidate against the other side; nil: too few blocks, or there is no ratio.
type Ratio struct {
	Effect  *float64 // relative, positive is better
	Speedup *float64 // how many times better: 1 + effect
	Low     *float64 // bounds of the interval, relative
	High    *float64
}

// Ratio returns the figures of a row that have a meaning.
func (c *Comparison) Ratio() (r Ratio) {
	if c.Blocks >= 1 && !c.NoRatio {
		speedup := 1 + c.Effect
		r.Effect, r.Speedup = &c.Effect, &speedup
	}
	if c.Blocks >= 2 && !c.NoRatio {
		r.Low, r.High = &c.Low, &c.High
	}
	return r
}

// MarshalJSON writes null for figures that have no meaning with so few blocks: a p of 0 would read as certainty.
func (c Comparison) MarshalJSON() ([]byte, error) {
	type plain Comparison
	row := struct {
		plain
		Effect *float64 `json:"effect"`
		Low    *float64 `json:"low"`
		High   *float64 `json:"high"`
		P      *float64 `json:"p"`
		// how many times better: 1 + effect
		Speedup *float64 `json:"speedup"`
		// absent: no figures; 0 is a figure
		Value        *float64 `json:"value,omitempty"`
		AgainstValue *float64 `json:"against_value,omitempty"`
		// null: not known
		Detectable *float64 `json:"detectable"`
	}{plain: plain(c)}
	ratio := c.Ratio()
	row.Effect, row.Speedup, row.Low, row.High = ratio.Effect, ratio.Speedup, ratio.Low, ratio.High
	if c.Blocks >= 2 {
		row.P = &c.P
	}
	if c.Blocks >= 1 || c.Value != 0 || c.AgainstValue != 0 {
		row.Value, row.AgainstValue = &c.Value, &c.AgainstValue
	}
	if c.Detectable > 0 {
		row.Detectable = &c.Detectable
	}
	if row.Caveats == nil {
		row.Caveats = []Caveat{}
	}
	return json.Marshal(row)
}

// Fields returns the row's JSON for an event: without settle, which is estimated at the end, and with of, the largest
// number of blocks that may be measured; nil: not known.
func (c Comparison) Fields() (fields map[string]any, err error) {
	text, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		return nil, err
	}
	delete(fields, "settle")
	if fields["of"] = nil; len(c.Looks) > 0 {
		fields["of"] = slices.Max(c.Looks)
	}
	return fields, nil
}

// subject identifies one outcome. A candidate that a compare measures with two benchmarks is two subjects.
type subject struct{ compare, benchmark, commit, candidate string }

func (s subject) String() string {
	return fmt.Sprintf("compare.%s, benchmark.%s, candidate %s of commit %s", s.compare, s.benchmark, s.candidate,
		s.commit)
}

// Ledger holds the outcomes of all candidates that were declared to be compared.
type Ledger struct {
	// number of (compare, benchmark, commit, candidate) declared in the file, counted there and not from Rows
	Universe int
	Rows     []Comparison // one primary row for each subject, and any number of secondary ones
}

// RefusedError is the error for figures that must not be shown: they are not comparable, or they do not add up.
type RefusedError struct {
	What    string   // what was refused: one line
	Reasons []string // each a sentence
}

func (e *RefusedError) Error() string {
	return e.What + ": " + strings.Join(e.Reasons, ";\n  ")
}

// Check checks that the outcomes partition the universe: exactly one primary row for each subject, of a known outcome,
// and as many subjects as were declared. It also checks that every figure is a number. The error is a *RefusedError
// that lists all mistakes.
func (l *Ledger) Check() error {
	var wrong []string
	primary := map[subject]int{}
	secondary := map[subject]bool{}
	for _, row := range l.Rows {
		s := subject{row.Compare, row.Benchmark, row.Commit, row.Candidate}
		if row.Primary {
			primary[s]++
		} else {
			secondary[s] = true
		}
		if !slices.Contains(Outcomes(), row.Outcome) {
			wrong = append(wrong, fmt.Sprintf("%v: %q is no outcome", s, row.Outcome))
		}
		if figure := badFigure(row); figure != "" {
			wrong = append(wrong, fmt.Sprintf("%v: %s", s, figure))
		}
	}
	for s, count := range primary {
		if count > 1 {
			wrong = append(wrong, fmt.Sprintf("%v: %d outcomes on the primary metric, want 1", s, count))
		}
	}
	for s := range secondary {
		if primary[s] == 0 {
			wrong = append(wrong, fmt.Sprintf("%v: no outcome on the primary metric", s))
		}
	}
	if len(primary) != l.Universe {
		wrong = append(wrong, fmt.Sprintf("%d candidates were declared, %d have an outcome", l.Universe, len(primary)))
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return &RefusedError{What: "the accounting does not add up", Reasons: wrong}
}

// identical reports whether a row is a tie without blocks, because both sides are one artefact.
func (c *Comparison) identical() bool {
	return c.Outcome == Tie && c.Blocks == 0 && slices.ContainsFunc(c.Caveats, func(caveat Caveat) bool {
		return caveat.Kind == CaveatIdentical
	})
}

// Measured reports whether a row has figures: it was judged, and is no tie of one artefact with itself.
func (c *Comparison) Measured() bool { return c.Outcome.Judged() && !c.identical() }

// badFigure describes an impossible figure of a row; empty: there is none.
func badFigure(row Comparison) string {
	figures := []float64{row.Effect, row.First, row.Canary, row.Low, row.High, row.P, row.Q, row.HodgesLehmann,
		row.Value, row.AgainstValue, row.Tie, row.Detectable}
	for _, v := range figures {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprintf("a figure of %s is %v", row.Metric, v)
		}
	}
	switch {
	case row.identical():
	case (row.Outcome == Win || row.Outcome == Loss || row.Outcome == Tie) && row.Blocks < fewest:
		return fmt.Sprintf("%s from %d blocks, fewer than the %d that a verdict needs", row.Outcome, row.Blocks, fewest)
	case row.P < 0 || row.P > 1 || row.Q < 0 || row.Q > 1:
		return fmt.Sprintf("p = %v and q = %v are no probabilities", row.P, row.Q)
	}
	return ""
}

// Totals are the outcomes of one compare, counted from its primary rows.
type Totals struct {
	Compare  string          `json:"compare"` // empty: all compares
	Universe int             `json:"universe"`
	Counts   map[Outcome]int `json:"counts"`   // has every outcome, also those of no row
	Standing map[Outcome]int `json:"standing"` // wins and losses that a headline may count, once SetQ was called
	// Doubtful is the number of wins and losses that no headline may count, once SetQ was called.
	Doubtful int `json:"-"`
	// Identical is the number of ties without figures, because both sides are one artefact.
	Identical int `json:"identical"`
}

// Total counts the primary rows of all compares.
func (l *Ledger) Total() Totals {
	t := newTotals("")
	for _, row := range l.Rows {
		t.add(row)
	}
	return t
}

// Totals counts the primary rows of each compare, in the order of their names.
func (l *Ledger) Totals() []Totals {
	byName := map[string]*Totals{}
	for _, row := range l.Rows {
		if byName[row.Compare] == nil {
			t := newTotals(row.Compare)
			byName[row.Compare] = &t
		}
		byName[row.Compare].add(row)
	}
	var all []Totals
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, *byName[name])
	}
	return all
}

func newTotals(compare string) Totals {
	t := Totals{Compare: compare, Counts: map[Outcome]int{}, Standing: map[Outcome]int{Win: 0, Loss: 0}}
	for _, o := range Outcomes() {
		t.Counts[o] = 0
	}
	return t
}

func (t *Totals) add(row Comparison) {
	if row.Primary {
		t.Universe++
		t.Counts[row.Outcome]++
		if row.Stands() {
			t.Standing[row.Outcome]++
		}
		if row.Doubtful() {
			t.Doubtful++
		}
		if row.identical() {
			t.Identical++
		}
	}
}

// Measured returns the number of candidates with figures: the denominator of every share of wins, losses and ties.
func (t Totals) Measured() int {
	return t.Counts[Win] + t.Counts[Loss] + t.Counts[Tie] - t.Identical + t.Counts[Inconclusive]
}

// SetQ fills Q of the judged rows by Benjamini-Hochberg within each compare, over its commits. Primary rows and
// secondary rows are two lists. A list of all primary wins and losses with q <= Headline is expected to hold at most 5
// % false ones. Q is computed from the t test's p over all looks, or from the exact p in rows without a t test.
func SetQ(rows []Comparison) {
	type family struct {
		compare string
		primary bool
	}
	members := map[family][]int{}
	for i, row := range rows {
		rows[i].Q = 0
		if row.Outcome.Judged() && row.Blocks >= fewest {
			f := family{row.Compare, row.Primary}
			members[f] = append(members[f], i)
		}
	}
	for _, indexes := range members {
		ps := make([]float64, len(indexes))
		for k, i := range indexes {
			ps[k] = rows[i].P
			if rows[i].PT > 0 {
				ps[k] = inference.Overall(rows[i].PT, len(rows[i].Looks))
			}
		}
		for k, q := range inference.BenjaminiHochberg(ps) {
			rows[indexes[k]].Q = q
		}
	}
}
