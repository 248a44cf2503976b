package stats

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func row(compare, candidate string, outcome Outcome) Comparison {
	return Comparison{Compare: compare, Benchmark: "b", Commit: "c1", Candidate: candidate, Metric: "m", Primary: true,
		Verdict: Verdict{Outcome: outcome, Blocks: 7, P: 0.5}}
}

func TestLedger(t *testing.T) {
	good := []Comparison{row("x", "c1/human", Win), row("x", "c1/claude", Skipped), row("y", "c1/human", Tie)}
	secondary := row("x", "c1/human", Loss)
	secondary.Primary = false
	for _, test := range []struct {
		name     string
		universe int
		rows     []Comparison
		wrong    []string
	}{
		{"it adds up", 3, good, nil},
		{"secondary metrics do not count", 3, append([]Comparison{secondary}, good...), nil},
		{"nothing declared, nothing there", 0, nil, nil},
		{"one is missing", 4, good, []string{"4 candidates were declared, 3 have an outcome"}},
		{"one too many", 2, good, []string{"2 candidates were declared, 3 have an outcome"}},
		{"two outcomes, and one missing, do not cancel", 3, append(good[:2:2], good[0]),
			[]string{"2 outcomes on the primary metric", "3 candidates were declared, 2"}},
		{"no outcome", 1, []Comparison{row("x", "c1/human", "")}, []string{`"" is no outcome`}},
		{"a secondary row without a primary one", 0, []Comparison{secondary},
			[]string{"no outcome on the primary metric"}},
		{"a verdict from nothing", 1, []Comparison{{Primary: true,
			Verdict: Verdict{Outcome: Win}}}, []string{"win from 0 blocks"}},
		{"a figure that is none", 1, []Comparison{{Primary: true,
			Verdict: Verdict{Outcome: Failed, Effect: math.NaN()}, Metric: "m"}},
			[]string{"a figure of m is NaN"}},
		{"no probability", 1, []Comparison{{Primary: true,
			Verdict: Verdict{Outcome: Failed, P: 2}}}, []string{"no probabilities"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := (&Ledger{Universe: test.universe, Rows: test.rows}).Check()
			var refused *RefusedError
			if (err != nil) != (len(test.wrong) > 0) || err != nil && !errors.As(err, &refused) {
				t.Fatalf("got %v, want %q", err, test.wrong)
			}
			for _, want := range test.wrong {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want …%s…", err, want)
				}
			}
		})
	}
}

func TestTotalsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Ledger
		for i := range rapid.IntRange(0, 30).Draw(t, "n") {
			r := row(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "compare"), string(rune('a'+i)),
				rapid.SampledFrom(Outcomes()).Draw(t, "outcome"))
			r.Primary = rapid.Bool().Draw(t, "primary")
			l.Rows = append(l.Rows, r)
		}
		total := l.Total()
		sum, measured := 0, 0
		for o, n := range total.Counts {
			sum += n
			if o.Judged() {
				measured += n
			}
		}
		parts := 0
		for _, each := range l.Totals() {
			parts += each.Universe
		}
		if sum != total.Universe || parts != total.Universe || measured != total.Measured() {
			t.Fatalf("universe %d, sum %d, of compares %d, measured %d of %d", total.Universe, sum, parts, measured,
				total.Measured())
		}
	})
}

func TestComparisonJSON(t *testing.T) {
	decode := func(c Comparison) map[string]any {
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		var back Comparison
		if err := json.Unmarshal(text, &back); err != nil || back.Effect != c.Effect || back.Candidate != c.Candidate {
			t.Errorf("%s read back: %+v, %v", text, back, err)
		}
		return m
	}
	m := decode(Comparison{Candidate: "c/human", Verdict: Verdict{Outcome: Skipped, Reason: "AMD"}})
	if m["p"] != nil || m["effect"] != nil || m["caveats"] == nil || m["outcome"] != "skipped" {
		t.Errorf("a skipped row: %v", m)
	}
	m = decode(Comparison{Candidate: "c/human", Verdict: Verdict{Outcome: Win, Blocks: 7, Effect: 0.05, P: 0.0156}})
	if m["p"] != 0.0156 || m["effect"] != 0.05 || m["low"] != 0.0 {
		t.Errorf("a measured row: %v", m)
	}
}

func TestSetQ(t *testing.T) {
	rows := []Comparison{row("x", "a", Win), row("x", "b", Win), row("x", "c", Tie), row("x", "d", Skipped),
		row("y", "a", Loss)}
	rows[0].P, rows[1].P, rows[2].P, rows[4].P = 0.01, 0.02, 0.9, 0.04
	rows[3].Blocks = 0
	SetQ(rows)
	for i, want := range []float64{0.03, 0.03, 0.9, 0, 0.04} {
		if math.Abs(rows[i].Q-want) > 1e-12 {
			t.Errorf("row %d: q = %v, want %v", i, rows[i].Q, want)
		}
	}
}
