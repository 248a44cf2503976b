package sieve

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func TestRequiredWords(t *testing.T) {
	for expression, want := range map[string]string{
		`fooL`:                      `["fooL"]`,
		`(?i)Fooo|barr`:             `["fooo" "barr"]`,
		`a+(long|longer)+x{2,3}`:    `["long"]`,
		`\d+ (of|out of) \d+ hunks`: `[" hunks"]`,
		`foo`:                       `[]`,
		`(?i)größe`:                 `[]`,
		`größe`:                     `["größe"]`,
		`.*`:                        `[]`,
		`abcd|.`:                    `[]`,
		`(`:                         `[]`,
	} {
		words := []string{}
		for _, w := range required(expression) {
			words = append(words, string(w.text))
		}
		if fmt.Sprintf("%q", words) != want {
			t.Errorf("%s: %q, want %s", expression, words, want)
		}
	}
}

// The search for words never hides a match: each line of a log is also tried with the bare expression.
func FuzzSieve(f *testing.F) {
	f.Add("an ERROR here", `(?i)error|fatal+`, "disk (full|empty)")
	f.Add("\u212aelvin", `(?i)kelvin`, "(abcd|efgh)?xyzw")
	f.Fuzz(func(t *testing.T, line, one, two string) {
		fuzzing.Frugal(t, len(line)+len(one)+len(two), func() {
			var rules []*regexp.Regexp
			for _, expression := range []string{one, two} {
				re, err := regexp.Compile(expression)
				if err != nil {
					t.Skip()
				}
				rules = append(rules, re)
			}
			found := New(rules).Candidates([]byte(line), 1)
			for i, r := range rules {
				if r.MatchString(line) && !slices.Contains(found, i) {
					t.Fatalf("%s matches %q and is not tried", r, line)
				}
			}
		})
	})
}
