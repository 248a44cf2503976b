package classify

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/packs"
)

func rule(name, match string) Rule {
	return Rule{Rule: failure.Rule{Name: name}, Pattern: regexp.MustCompile(match)}
}

// The order of the rules decides, not the order of the lines. Wrappers come last, wherever they stand.
func TestTheFirstRuleDecides(t *testing.T) {
	wrapper := rule("wrapper", "failed")
	wrapper.Wrapper = true
	build := rule("build", "error")
	build.Stages = []string{"build"}
	rules := []Rule{wrapper, build, rule("specific", `disk (\w+)`), rule("general", `(?i)ERROR`)}
	for _, c := range []struct {
		stage, log, want string
		line             int
	}{
		{"", "nothing\n", "", 0},
		{"", "it failed\n", "wrapper", 1},
		{"run", "it failed\nan Error\n", "general", 2},
		{"run", "it failed\nan Error\nerror 2\ndisk full\ndisk empty\n", "specific", 4},
		{"build", "it failed\ndisk full\nerror 2\n", "build", 3},
		{"", "disk full\nerror\n", "build", 2},
		{"run", "50%\r51%\ran error\r\nmore", "general", 1},
		{"run", "2026-11-21T00:44:00Z \x1b[31mer\x00ror\x1b[0m", "general", 1},
	} {
		m, ok, err := Log(rules, c.stage, strings.NewReader(c.log))
		if err != nil || ok != (c.want != "") || m.Rule != c.want || m.Line != c.line {
			t.Errorf("%s %q: %+v, %v, %v; want %s in line %d", c.stage, c.log, m, ok, err, c.want, c.line)
		}
	}
	broken := errors.New("broken")
	if _, ok, err := Log(rules, "run", io.MultiReader(strings.NewReader("error\n"),
		iotest.ErrReader(broken))); ok || !errors.Is(err, broken) {
		t.Error("a log that could not be read to its end is no evidence:", ok, err)
	}
}

// Lines of warnings and notices decide if no line of an error does. The first level in a line is the level of the line.
func TestLevels(t *testing.T) {
	rules := []Rule{rule("first", "broken pipe"), rule("second", "it failed")}
	for line, want := range map[string]string{
		"broken pipe":                                         "first",
		"ERROR broken pipe, set DEBUG":                        "first",
		"WARNING 07-14 broken pipe":                           "second",
		"[W801 01:16:40.1 x.cpp:1] broken pipe":               "second",
		"[W1101 01:16:40.1 x.cpp:1] broken pipe":              "second",
		"[E801 01:16:40.1 x.cpp:1] broken pipe":               "first",
		"(A pid=1) INFO 07-14 09:12 [x.py:1] broken pipe":     "second",
		"2026-11-27 10:11:12,3 - bench - DEBUG - broken pipe": "second",
		"INFO:     broken pipe":                               "second",
		"2026-11-27 | INFO     | x:1 - broken pipe":           "second",
		"NetError: broken pipe (run with NET_DEBUG=INFO)":     "first",
		"run with NET_DEBUG=INFO: broken pipe":                "first",
		"a.OddWarning: broken pipe":                           "second",
		"Ignore import error when loading x: broken pipe":     "second",
		"broken pipe. Will ignore error and continue":         "second",
	} {
		m, _, err := Log(rules, "", strings.NewReader(line+"\nit failed\n"))
		if err != nil || m.Rule != want {
			t.Errorf("%q: %q, want %q, %v", line, m.Rule, want, err)
		}
	}
	m, _, err := Log([]Rule{rule("notice", "INFO .*memory takes")}, "", strings.NewReader("INFO x memory takes 9\n"))
	if err != nil || m.Rule != "notice" {
		t.Errorf("%+v, %v", m, err)
	}
}

// A rule is not tried where its match would change nothing: the answer is that of trying all rules on all lines.
func TestSkippedRulesChangeNothing(t *testing.T) {
	words := []string{"disk full", "pipe broken", "it failed"}
	rapid.Check(t, func(t *rapid.T) {
		var rules, order []Rule
		for _, word := range rapid.Permutation(words).Draw(t, "rules") {
			r := rule(word, word)
			r.Wrapper = rapid.Bool().Draw(t, "wrapper")
			rules = append(rules, r)
		}
		for _, wrapper := range []bool{false, true} {
			order = append(order, slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool {
				return r.Wrapper != wrapper
			})...)
		}
		log := rapid.SliceOf(rapid.SampledFrom(append([]string{"WARNING disk full", "WARNING pipe broken",
			"WARNING it failed", "Application startup complete"}, words...))).Draw(t, "log")
		first := func(lines []string, prefix string) int { // index of the first rule that matches such a line
			for i, r := range order {
				if slices.Contains(lines, prefix+r.Name) {
					return i
				}
			}
			return len(order)
		}
		started := 0
		for i, line := range log {
			if line == "Application startup complete" {
				started = i
			}
		}
		want, quiet := first(log, ""), first(log[started:], "WARNING ")
		if want == len(order) || order[want].Wrapper && quiet < len(order) && !order[quiet].Wrapper {
			want = quiet
		}
		m, found, err := Log(rules, "", strings.NewReader(strings.Join(log, "\n")))
		if err != nil || found != (want < len(order)) || found && m.Rule != order[want].Name {
			t.Fatalf("%+v, %v, %v; want rule %d of %v", m, found, err, want, order)
		}
	})
}

// Once a rule explains the failure, later rules are not tried on the lines of a flood.
func TestALaterRuleDoesNotMatter(t *testing.T) {
	c := newSearch([]Rule{rule("full", "disk full"), rule("pipe", "pipe broken"), rule("wrapper", "it failed")}, 2)
	for i, step := range []struct {
		line string
		want []bool // by rule, and of the pseudo rule: a match matters
	}{
		{"nothing", []bool{true, true, true, true}}, {"it failed", []bool{true, true, false, true}},
		{"WARNING pipe broken", []bool{true, true, false, true}}, {"pipe broken", []bool{true, false, false, false}},
		{"disk full", []bool{false, false, false, false}},
	} {
		c.line(i+1, []byte(step.line))
		for rule, want := range step.want {
			if c.matters(rule) != want {
				t.Errorf("after %q: rule %d matters: %v", step.line, rule, !want)
			}
		}
	}
}

// Floods of lines that match rules, or nearly match them.
func BenchmarkFloods(b *testing.B) {
	all, err := packs.Rules()
	if err != nil {
		b.Fatal(err)
	}
	var rules []Rule
	for _, r := range all {
		rules = append(rules, Rule{Rule: r, Pattern: regexp.MustCompile(r.Match)})
	}
	for name, line := range map[string]string{
		"error":   "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB\n",
		"wrapper": "make: *** [all] Error 2\n",
		"warning": "WARNING 07-14 09:12:01 [x.py:12] CUDA out of memory. Tried to allocate 20.00 MiB\n",
		"nearly":  "INFO 07-14 09:12:01 [x.py:12] no error: out of 20 MiB, connection was reset never\n",
		"plain":   "the quick brown fox jumps over the lazy dog 12345\n",
	} {
		log := strings.Repeat(line, 200_000)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(log)))
			for b.Loop() {
				if _, _, err := Log(rules, "run", strings.NewReader(log)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Evidence shows the match, however long and dirty the line is.
func TestEvidence(t *testing.T) {
	for log, want := range map[string]string{
		"  \x1b[1mfatal:\x1b[0m \tno\x07 space \n": "fatal:  no space",
		"\xff fatal: ok": "\ufffd fatal: ok",
	} {
		m, ok, _ := Log([]Rule{rule("r", "fatal")}, "", strings.NewReader(log))
		if !ok || m.Evidence != want {
			t.Errorf("%q: %q, want %q", log, m.Evidence, want)
		}
	}
	long := strings.Repeat("é", 5000) + "fatal" + strings.Repeat("ü", 5000)
	m, _, _ := Log([]Rule{rule("r", "fatal")}, "", strings.NewReader(long))
	if len(m.Evidence) > lines.MaxEvidence || !strings.Contains(m.Evidence, "fatal") || !utf8.ValidString(m.Evidence) {
		t.Errorf("%d bytes: %s", len(m.Evidence), m.Evidence)
	}
}

// Endless lines cost bounded memory, and do not shift the numbers of later lines.
func TestLongLines(t *testing.T) {
	log := io.MultiReader(strings.NewReader("first\n"), io.LimitReader(zeros{}, 5<<20), strings.NewReader("\nfatal\n"))
	m, ok, err := Log([]Rule{rule("r", "fatal")}, "", log)
	if !ok || err != nil || m.Line != 3 {
		t.Errorf("%+v %v %v", m, ok, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("0"), len(p))), nil }

// The search for words must never hide a match.
func TestRequiredWordsHideNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expression := rapid.StringMatching(
			`(\(\?i\))?[abC]{0,5}(\((aBab|bcbc|B+)\|[ab]?(cccc|\.)\))?[*+?]?[abc]{0,5}`).Draw(t, "expression")
		if _, err := syntax.Parse(expression, syntax.Perl); err != nil {
			t.Skip()
		}
		lines := rapid.SliceOf(rapid.StringMatching(`[abcABC]{0,12}`)).Draw(t, "lines")
		r := rule("r", expression)
		_, found, err := Log([]Rule{r}, "", strings.NewReader(strings.Join(lines, "\n")))
		if want := slices.ContainsFunc(lines, r.Pattern.MatchString); err != nil || found != want &&
			strings.Join(lines, "") != "" {
			t.Fatalf("%s on %q: %v, want %v, %v", expression, lines, found, want, err)
		}
	})
}

func FuzzClassify(f *testing.F) {
	f.Add([]byte("a\r\nb error\x1b[0m\xff"), `(?i)ERR|b+`)
	f.Add([]byte("OSError: [Errno 28] No space left on device"), `\[Errno \d+\]`)
	f.Add(bytes.Repeat([]byte("\x00\x1b]"), 500), `^$`)
	f.Fuzz(func(t *testing.T, log []byte, expression string) {
		re, err := regexp.Compile(expression)
		if err != nil {
			return
		}
		var m Match
		var ok bool
		fuzzing.Frugal(t, len(log), func() {
			m, ok, err = Log([]Rule{{Pattern: re}}, "run", bytes.NewReader(log))
		})
		if err != nil || len(m.Evidence) > lines.MaxEvidence || !utf8.ValidString(m.Evidence) ||
			strings.ContainsAny(m.Evidence, "\x00\x1b\r\n\t") || ok != (m.Line > 0) {
			t.Fatalf("%+v %v %v", m, ok, err)
		}
	})
}
