package stats

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestZerosAreNumbers(t *testing.T) {
	blocks := func(values ...float64) []Pair {
		var pairs []Pair
		for i := 0; i < len(values); i += 2 {
			pairs = append(pairs, Pair{Block: i/2 + 1, Candidate: values[i], Against: values[i+1]})
		}
		return pairs
	}
	for name, tt := range map[string]struct {
		pairs  []Pair
		better string
		want   Outcome
		ratio  bool
	}{
		"no allocations on both sides":     {blocks(0, 0, 0, 0, 0, 0, 0, 0), Lower, Tie, true},
		"all allocations are gone":         {blocks(0, 17, 0, 17, 0, 17, 0, 17), Lower, Win, false},
		"an allocation is new":             {blocks(1, 0, 1, 0, 1, 0, 1, 0), Lower, Loss, false},
		"what is better when it is higher": {blocks(1, 0, 2, 0, 1, 0, 2, 0), Higher, Win, false},
		"some blocks are zero on both":     {blocks(0, 0, 5, 5, 0, 0, 7, 7), Lower, Tie, true},
		"zero now and then":                {blocks(0, 1, 1, 0, 0, 1, 1, 1), Lower, Inconclusive, true},
		"too few":                          {blocks(0, 17, 0, 17), Lower, Inconclusive, false},
		"wild":                             {blocks(0, 1, 0, 1, 0, 1, 0, 1000), Lower, Inconclusive, false},
	} {
		v := Judge(tt.pairs, Rule{Better: tt.better})
		if v.Outcome != tt.want || v.NoRatio == tt.ratio {
			t.Errorf("%s: %q, no ratio %v: %s", name, v.Outcome, v.NoRatio, v.Reason)
		}
		if p := v.PT; p > 0 && p < 1e-15 {
			t.Errorf("%s: p_t is %v, and no blocks can show that", name, p)
		}
		row := Comparison{Compare: "x", Primary: true, Verdict: v}
		if figure := badFigure(row); figure != "" {
			t.Errorf("%s: %s", name, figure)
		}
	}
	if v := Judge(blocks(0, 0, 0, 0, 0, 0, 0, 0), Rule{Better: Lower}); v.Value != 0 || v.AgainstValue != 0 ||
		v.Effect != 0 {
		t.Errorf("%+v", v)
	}
}

// A measured zero is in the JSON; a missing value is not.
func TestZerosAreWritten(t *testing.T) {
	for want, v := range map[string]Verdict{
		`"value":0,"against_value":17`: {Blocks: 4, AgainstValue: 17, NoRatio: true},
		`"value":0,"against_value":0`:  {Blocks: 4},
		"":                             {},
	} {
		text, err := json.Marshal(Comparison{Verdict: v})
		known := strings.Contains(string(text), `value":`)
		if err != nil || !strings.Contains(string(text), want) || known != (want != "") {
			t.Errorf("%s: %s: %v", want, text, err)
		}
	}
}
