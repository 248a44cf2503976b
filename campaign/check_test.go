package campaign_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/stats"
)

// answers is a program that prints a speed, and an answer if it is asked.
func answers(speed int, answer string) string {
	return fmt.Sprintf("if test \"$1\" = answer; then %s; exit; fi\n", answer) + claims(speed)
}

// A program that is fast and wrong does not win.
func TestAFastWrongProgramDoesNotWin(t *testing.T) {
	t.Parallel()
	const same = `check {
    command = "./prog answer > $OUT/answer.txt"
    same    = { "*.txt" = { tolerance = 0.01 } }
  }`
	right := answers(1000, "echo score 0.91")
	for name, tt := range map[string]struct {
		check           string
		baseline, human string
		want            stats.Outcome
		reason          string
	}{
		"the same answer": {same, right, answers(1100, "echo score 0.911"), stats.Win, ""},
		"another answer": {same, right, answers(1100, "echo score 0.5"), stats.Wrong,
			`[wrong]: check/answer.txt, line 1: "0.5" against "0.91"`},
		"no answer": {same, right, answers(1100, "true"), stats.Wrong, "the end of the file against"},
		"a check that fails": {`check { command = "./prog answer" }`, right,
			answers(1100, "echo 'assertion failed' >&2; exit 1"), stats.Wrong, "assertion failed"},
		"a check without ground": {same, answers(1000, "exit 1"), answers(1100, "echo 1"), stats.NoBaseline,
			"the check failed"},
		"a check that cannot run": {`check { command = "./porg || exit 1" }`, right, answers(1100, "true"),
			stats.NoBaseline, "the check failed: run: "},
		"files of the measured command": {`check { same = { "log" = {} } }`, answers(1000, "true") +
			"echo one > $OUT/log\n", answers(1100, "true") + "echo two > $OUT/log\n",
			stats.Wrong, `out/log, line 1: "two" against "one"`},
		"a file that nobody left": {`check { same = { "log" = {} } }`, right, answers(1100, "true"), stats.NoBaseline,
			"no file that matches"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(measured, "  metrics {", "  "+tt.check+"\n  metrics {", 1)
			s := tell(t, map[string]string{"benchmarks.hcl": simple(text, tt.baseline, tt.human)})
			s.apply()
			s.wantOutcomes(map[string]stats.Outcome{"c/v1": tt.want})
			if row := s.ledger()[0]; !strings.Contains(row.Reason, tt.reason) {
				t.Errorf("%s", row.Reason)
			}
			if name == "a check that cannot run" {
				return // it may run next time
			}
			if s.apply(); len(s.ran()) > 0 {
				t.Errorf("the second run ran %q", s.ran())
			}
		})
	}
}

// A program that begins to cheat after its first check is caught in the block that is drawn.
func TestTheSecondCheckIsInABlockThatIsDrawn(t *testing.T) {
	t.Parallel()
	count := t.TempDir() + "/count"
	cheat := answers(1100, fmt.Sprintf("if test -f %s; then echo 2; else touch %s; echo 1; fi", count, count))
	text := strings.Replace(measured, "  metrics {",
		"  check {\n    command = \"./prog answer > $OUT/a\"\n    same    = { a = {} }\n  }\n  metrics {", 1)
	s := tell(t, map[string]string{"benchmarks.hcl": unguarded + simple(text, answers(1000, "echo 1"), cheat)})
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/v1": stats.Wrong})
}
