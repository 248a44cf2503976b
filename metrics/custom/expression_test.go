package custom

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/metricstest"
)

// A metric that an output prints twice is a sample only if both values are the same number, however one of them is
// hidden or spelt. If no value can be read, the first warning says so.
func TestOneNumber(t *testing.T) {
	dots, words := `took: ([0-9.]+) us`, `took: (\S+) us`
	long := strings.Repeat("A", 3<<20)
	for _, c := range []struct{ name, match, text, value, doubt, warning string }{
		{"one", dots, "took: 30 us\n", "30", "", ""},
		{"a progress bar", dots, strings.Repeat("step 1\r", 20_000) + "took: 30 us\n", "30", "", ""},
		{"the end of a long line", dots, "took: 5 us\n" + long + "took: 108189 us\n", "108189", "first as 5", ""},
		{"the end of a long line that never ends", dots, "took: 5 us\n" + long + "took: 108189 us", "108189",
			"first as 5", ""},
		{"bytes that are no text", dots, strings.Repeat("\xff", 60_000) + "took: 108189 us\n", "108189", "", ""},
		{"not finite behind", words, "took: 30000 us\ntook: inf us\n", "30000", `"inf" is not finite`, ""},
		{"not finite in front", words, "took: inf us\ntook: 30000 us\n", "30000", `"inf" is not finite`, ""},
		{"too large", words, "took: 1e400 us\ntook: 30000 us\n", "30000", `"1e400" is too large`, ""},
		{"a decimal comma", words, "took: 30000 us\ntook: 90,5 us\n", "30000", `"90,5" is not a number`, ""},
		{"a decimal comma that match does not take", dots, "took: 30000 us\ntook: 90,5 us\n", "30000",
			`"90,5" follows the label`, ""},
		{"on the same line", dots, "took: 30000 us, took: 90,5 us\n", "30000", `"90,5" follows`, ""},
		{"another label that ends alike", `^took: ([0-9.]+)`, "it took: 90\ntook: 30\n", "30", "", ""},
		{"a label in other letters", `(?i)^took: ([0-9.]+)`, "took: 30\nTook: 90,5\n", "30", `a part of "90,5"`, ""},
		{"nan that match does not take", `took: +([0-9.]+) us`, "took: 30000 us\ntook:   nan us\n", "30000",
			`"nan" follows`, ""},
		{"another unit", words, "took: 30000 us\ntook: 90 ms\n", "30000", "", `"90 ms" follows the label`},
		{"after a hundred warnings", words, strings.Repeat("took: x us\n", 200) + "took: 30 us\n", "30",
			`"x" is not a number`, ""},
		{"more than are looked at", `took: (\d+) us`, strings.Repeat("took: 5 us ", 1001) + "took: 9 us\n", "5",
			"more than 1000 matches", ""},
		{"cut, and whole", `took: ([0-9.]+)`, "took: 30,000\ntook: 30\n", "30", `a part of "30,000"`, ""},

		{"cut", `took: ([0-9.]+)`, "took: 3.0e4 us\n", "", "", `the match takes 3.0, which is only a part of "3.0e4"`},
		{"cut in front", `([0-9.]+) us`, "took: 30,000 us\n", "", "", `takes 000, which is only a part of "30,000"`},
		{"a narrow blank", `took: ([0-9.]+)`, "took: 1\u202f037.28 us\n", "", "", `takes 1, which is only a part of`},
		{"groups behind blanks", `took: ([0-9.]+)`, "took: 30 000 us\n", "30", "", "three digits follow 30"},
		{"no number", words, "took: 30_000 us\n", "", "", `took: "30_000" is not a number`},
		{"a group that may be a fraction", words, "took: 1,234 us\n", "", "", `took: "1,234" is not a number`},
		{"a group in an expression for groups", `took: ([0-9.,]+) us`, "took: 1,234 us\n", "1,234", "", ""},
		{"a column of a table", `^(?:[^,]*,){2}([0-9.]+)`, "took,1,30,5\n", "30", "", ""},
		{"a column between commas", `^(?:[^,]*,){2}([^,]+)`, "took,1,30,5\n", "30", "", ""},
		{"the comma of a table", `^took,([0-9.]+),`, "took,30,5\n", "30", "", ""},
		{"less than nothing", words, "took: -5 us\n", "", "", "took: -5 us: a duration is not negative"},
		{"less than nothing, and more", words, "took: -5 us\ntook: 5 us\n", "5", "a duration is not negative", ""},
		{"a change may be negative", `by (\S+) %`, "by -5 %\n", "-5", "", ""},
		{"a mark at the end", `took: ([0-9.]+)`, "It took: 30.\n", "30.", "", ""},
		{"a unit without a blank", `took: ([0-9.]+)`, "took: 30us\n", "30", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := metricstest.Parse(t, custom1(t, Definition{Name: "took", Match: c.match}), c.text)
			got := ""
			for _, s := range r.Samples {
				got += s.Printed
			}
			if got != c.value {
				t.Errorf("value %q, want %q; %v", got, c.value, r.Warnings)
			}
			if why := r.Doubts["took"]; (c.doubt == "") != (why == "") || !strings.Contains(why, c.doubt) {
				t.Errorf("doubt %q, want %q", why, c.doubt)
			}
			if all := fmt.Sprint(r.Warnings); c.warning != "" && !strings.Contains(all, c.warning) ||
				c.warning == "" && c.doubt == "" && len(r.Warnings) > 0 {
				t.Errorf("warnings %s, want %q", all, c.warning)
			}
		})
	}
}

// A long line has each match once, wherever its pieces begin.
func TestPiecesOfALine(t *testing.T) {
	for _, fill := range []string{"A", "\xff", "é", "x y "} {
		for n := lines.Max - 2000; n < lines.Max+12_000; n += 487 {
			front := strings.Repeat(fill, n/len(fill))
			p := custom1(t, Definition{Name: "took", Match: `took: ([0-9]+)`})
			r := metricstest.Parse(t, p, front+"took: 108189 us"+front+"\n")
			if len(r.Samples) != 1 || r.Samples[0].Value != 108189 || len(r.Doubts)+len(r.Warnings) > 0 {
				t.Fatalf("%q %d: %+v %v %v", fill, n, r.Samples, r.Doubts, r.Warnings)
			}
		}
	}
}
