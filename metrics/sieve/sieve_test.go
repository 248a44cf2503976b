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

// A line is tried only if it holds all words of some branch of an expression, whatever their order and case.
func TestALineThatLacksAWordIsNotTried(t *testing.T) {
	s := New([]*regexp.Regexp{regexp.MustCompile(`(?i)connection .*(reset|refus(ed|al))|early EOF`),
		regexp.MustCompile(`(lost|broken)+ pipes?\b|x(yz)?\d+ of .*disk{2,}`)})
	turn := 0
	for line, want := range map[string][]int{
		"Connection to x: RESET": {0}, "reset, a connection was Refused": {0}, "EARLY eof": {0},
		"connection to x": {}, "an early end of a connection": {}, "lost pipe": {1}, "a broken pipe": {1}, "a pipe": {},
		"pipes": {}, "xyz7 of this disk": {1}, "x7 of this diss": {},
	} {
		turn++
		if got := s.Candidates([]byte(line), turn); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}

// The search for words never hides a match: each line of a log is also tried with the bare expression.
func FuzzSieve(f *testing.F) {
	f.Add("an ERROR here", `(?i)error|fatal+`, "disk (full|empty)")
	f.Add("a broken PI\u017fe \xff", `(?i)broken .*(pise|\x{fffd})`, "a .*\ufffd.*broken|a broken")
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
