package stats

import (
	"math"
	"testing"
)

func TestEffectsInWords(t *testing.T) {
	for _, tt := range []struct {
		row              Comparison
		effect, interval string
	}{
		{Comparison{Verdict: Verdict{Better: Higher, Effect: 0.052, Low: 0.041, High: 0.063, Blocks: 7}}, "+5.20 %",
			"+4.10 % to +6.30 %"},
		{Comparison{Verdict: Verdict{Better: Higher, Effect: -0.01, Low: -0.0152, High: 0, Blocks: 7}}, "−1.00 %",
			"−1.52 % to +0.00 %"},
		{Comparison{Verdict: Verdict{Better: Higher, Effect: 8.2627, Low: 4.4026, High: 14.88, Blocks: 7}},
			"×9.26", "×5.40 to ×15.88"},
		{Comparison{Verdict: Verdict{Better: Higher, Effect: 19, Low: 18, High: 20, Blocks: 7}},
			"×20", "×19 to ×21"},
		{Comparison{Verdict: Verdict{Better: Lower, Effect: 2.32, Low: 2.2, High: 2.4, Blocks: 7}, Unit: "ms"},
			"×3.32 (time −69.9 %)",
			"×3.20 to ×3.40"},
		{Comparison{Verdict: Verdict{Better: Lower, Effect: -0.5, Low: -0.6, High: -0.4, Blocks: 7}, Unit: "ns/op"},
			"×0.50 (time +100.0 %)", "×0.40 to ×0.60"},
		{Comparison{Verdict: Verdict{Better: Lower, Effect: 0.01, Low: 0, High: 0.02, Blocks: 7}, Unit: "B/op"},
			"×1.0100 (value −0.99 %)", "×1.0000 to ×1.0200"},
		{Comparison{Verdict: Verdict{Better: Lower, Effect: -0.01, Low: -0.1, High: 0.0823, Blocks: 4}, Unit: "B/op"},
			"×0.9900 (value +1.01 %)", "×0.9000 to ×1.0823"},
		{Comparison{Verdict: Verdict{Better: Lower, Effect: 0.15, Low: 0.09, High: 0.21, Blocks: 4}, Unit: "B/op"},
			"×1.15 (value −13.0 %)", "×1.09 to ×1.21"},
		{Comparison{Verdict: Verdict{Better: Lower, NoRatio: true, Value: 0, AgainstValue: 17, Blocks: 7},
			Unit: "allocs/op"}, "17 → 0",
			""},
		{Comparison{}, "-", ""},
		{Comparison{Verdict: Verdict{Better: Lower, Effect: -1, Low: -1, High: -1, Blocks: 2}},
			"×0 (value +100000000.0 %)", "×0 to ×0"},
		{Comparison{Verdict: Verdict{Better: Lower, Effect: -0.9999, Low: -0.99995, High: -0.995, Blocks: 4},
			Unit: "us"},
			"×0.0001 (time +999900.0 %)", "×5e-05 to ×0.005"},
		{Comparison{Verdict: Verdict{Better: Lower, Effect: math.MaxFloat64, Low: 0, High: math.MaxFloat64, Blocks: 1}},
			"×1.798e+308 (value −100.0 %)", ""},
	} {
		if effect, interval := tt.row.EffectText(), tt.row.IntervalText(); effect != tt.effect ||
			interval != tt.interval {
			t.Errorf("%q, %q; want %q, %q", effect, interval, tt.effect, tt.interval)
		}
	}
}

// A headline counts rows of a list in which few are false. The t test's p decides where the exact p cannot be small
// enough.
func TestRowsThatStand(t *testing.T) {
	rows := make([]Comparison, 20)
	for i := range rows {
		rows[i] = Comparison{Compare: "x", Primary: true,
			Verdict: Judge(repeated(1+0.02*float64(i%2+1), 7), Rule{Better: Higher})}
	}
	rows[0].P, rows[0].PT = 0.5, 0.5
	SetQ(rows)
	ledger := Ledger{Rows: rows}
	if total := ledger.Total(); rows[0].Stands() || !rows[1].Stands() || total.Standing[Win] != 19 ||
		total.Counts[Win] != 20 {
		t.Errorf("q %v and %v, %d stand of %d", rows[0].Q, rows[1].Q, total.Standing[Win], total.Counts[Win])
	}
}
