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
