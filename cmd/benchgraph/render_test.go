package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/stats"
)

// Findings are read back from the store, where anybody may have put them: whatever they say, every format of a report
// is written of them or refused, and nothing in it is hidden.
func FuzzFindings(f *testing.F) {
	seed, err := json.Marshal(findings.Findings{
		Universe: 2,
		Comparisons: []stats.Comparison{{Compare: "c", Commit: "a", Candidate: "a/x", Against: "a/b", Metric: "m",
			Primary: true, Verdict: stats.Verdict{Outcome: stats.Win, Blocks: 7, P: 0.01, Effect: 0.1}}},
		Measurements: []sample.Measurement{{Benchmark: "b", Commit: "a", Candidate: "a/x", Block: 1, Metric: "m",
			Value: 1.5, Unit: "ms", Start: "2024-01-01T00:00:00Z"}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"comparisons": [{"compare": "\u001b[2J", "blocks": -1, "outcome": "\u202e", "p": 1e308}], ` +
		`"universe": -9}`))
	f.Add([]byte(`null`))
	formats := []string{"markdown", "json", "csv", "benchfmt", "junit", "html", "github"}
	f.Fuzz(func(t *testing.T, text []byte) {
		var found findings.Findings
		if json.Unmarshal(text, &found) != nil {
			return
		}
		fuzzing.Frugal(t, len(text), func() {
			files, err := place{}.render([]findings.Findings{found}, &hclspec.Spec{}, &hclspec.Report{Formats: formats})
			if err != nil {
				return
			}
			for name, content := range files {
				shown := strings.NewReplacer("\r\n", "", "\n", "", "\t", "").Replace(string(content))
				if !utf8.ValidString(shown) || strings.ContainsFunc(shown, func(r rune) bool {
					return !unicode.IsPrint(r)
				}) {
					t.Fatalf("%s: %q", name, content)
				}
			}
		})
	})
}
