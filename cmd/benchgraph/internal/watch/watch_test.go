package watch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/plantest"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/stats"
)

func TestEventJSON(t *testing.T) {
	e := engine.Event{Type: engine.NodeFailed, Time: time.Unix(1, 5), Address: "task.a", Attempt: 2,
		Duration: 1500 * time.Millisecond, Log: "/l",
		Failure: &failure.Failure{Class: failure.Permanent, Rule: "r", Stage: "run", Evidence: "<e>", Message: "m"},
		Data:    map[string]any{"block": 3, "type": "spoofed", "class": "spoofed"}}
	line, err := MarshalEvent(e)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"type": "node_failed", "address": "task.a", "attempt": 2.0, "duration_s": 1.5, "log": "/l",
		"class": "permanent",
		"rule":  "r", "stage": "run", "evidence": "<e>", "message": "m", "block": 3.0}
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s = %v, want %v", name, got[name], v)
		}
	}
	if bytes.Count(line, []byte(`"type"`)) != 1 || bytes.Contains(line, []byte("\n")) {
		t.Errorf("%s", line)
	}
}

// screen is a terminal in memory that knows the few sequences that Live uses.
type screen struct {
	lines []string
	bad   string
}

func (s *screen) Write(p []byte) (int, error) {
	rest := string(p)
	if s.lines == nil {
		s.lines = []string{""}
	}
	up := regexp.MustCompile(`^\x1b\[([0-9]+)A`)
	for rest != "" {
		switch {
		case strings.HasPrefix(rest, clearBelow):
			rest = rest[len(clearBelow):]
		case up.MatchString(rest):
			m := up.FindStringSubmatch(rest)
			var n int
			fmt.Sscan(m[1], &n)
			if n >= len(s.lines) {
				s.bad = "above the screen"
				n = len(s.lines) - 1
			}
			s.lines = s.lines[:len(s.lines)-n]
			s.lines[len(s.lines)-1] = ""
			rest = rest[len(m[0]):]
		case rest[0] == '\n':
			s.lines, rest = append(s.lines, ""), rest[1:]
		case rest[0] == '\x1b' || rest[0] < ' ':
			s.bad, rest = fmt.Sprintf("control character %q", rest[0]), rest[1:]
		default:
			_, n := utf8.DecodeRuneInString(rest)
			s.lines[len(s.lines)-1] += rest[:n]
			rest = rest[n:]
		}
	}
	return len(p), nil
}

func TestLive(t *testing.T) {
	log := filepath.Join(t.TempDir(), "a.log")
	if err := os.WriteFile(log, []byte("first\n\x1b[2J10%\r20%\x07 évil\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	a, b := plantest.Step("task.a", engine.Run, ""), plantest.Step("task.b", engine.Run, "")
	a.Estimate, b.Estimate = time.Minute, time.Minute
	for _, columns := range []int{200, 40, 12, 1} {
		s := &screen{}
		l := NewLive(s, view.Style{}, plantest.Of(t, a, b), func() (int, int) { return columns, 24 })
		l.Event(engine.Event{Type: engine.NodeStart, Time: time.Now(), Address: "task.a", Log: log})
		l.Event(engine.Event{Type: engine.NodeProgress, Address: "task.a", Phase: "build"})
		l.Event(engine.Event{Type: engine.NodeFailed, Address: "task.b",
			Failure: &failure.Failure{Class: failure.Permanent, Message: "it\x1b[31m broke", Evidence: "here"},
			Log:     "/b.log"})
		l.mu.Lock()
		shown := strings.Join(s.lines, "\n")
		for _, line := range s.lines[len(s.lines)-3:] {
			if view.Cells(line) > max(columns-1, 10) {
				t.Errorf("%d columns: %q is too wide", columns, line)
			}
		}
		l.mu.Unlock()
		if s.bad != "" {
			t.Errorf("%d columns: %s", columns, s.bad)
		}
		for _, want := range []string{"it broke [permanent, undiagnosed]", "| here", "log: /b.log"} {
			if !strings.Contains(shown, want) {
				t.Errorf("%d columns: no %q in\n%s", columns, want, shown)
			}
		}
		if columns == 200 &&
			!regexp.MustCompile(`task\.a +build +\d+ ms +20%\x{FFFD} évil\n\[x{12}-{12}\] 1/2  1 failed  1 running `+
				`.* about .* left`).MatchString(shown) {
			t.Errorf("the table is\n%s", shown)
		}
		l.Close()
		l.Close()
		if strings.Contains(strings.Join(s.lines, "\n"), "running") || s.bad != "" {
			t.Errorf("%d columns: after Close: %s\n%s", columns, s.bad, strings.Join(s.lines, "\n"))
		}
		l.Event(engine.Event{Type: engine.NodeFailed, Address: "task.a",
			Failure: &failure.Failure{Message: "interrupted"}})
		if !strings.Contains(strings.Join(s.lines, "\n"), "interrupted") {
			t.Error("what happens after Close is not shown")
		}
	}
}

// Many nodes on small terminals: the table never has more lines or columns than the terminal, and the last line shows
// the progress.
func TestLiveFits(t *testing.T) {
	var all []engine.Step
	for i := range 30 {
		all = append(all, plantest.Step(fmt.Sprintf("trial.serving[\"commit-%d#1\"]", i), engine.Run, ""))
	}
	for _, size := range [][2]int{{80, 24}, {40, 10}, {20, 4}, {10, 2}} {
		s := &screen{}
		l := NewLive(s, view.Style{}, plantest.Of(t, all...), func() (int, int) { return size[0], size[1] })
		for _, st := range all {
			l.Event(engine.Event{Type: engine.NodeStart, Time: time.Now(), Address: st.Node.Address})
		}
		l.Event(engine.Event{Type: engine.Note,
			Reason: "waiting: trial.serving needs 2 GPUs: device 0 is used by process 4711"})
		l.mu.Lock()
		begin := slices.IndexFunc(s.lines, func(line string) bool { return strings.HasPrefix(line, "⠋") })
		if begin < 0 {
			begin = len(s.lines) - 2
		}
		shown := s.lines[begin : len(s.lines)-1]
		if len(shown) > size[1]-1 {
			t.Errorf("%v: %d lines:\n%s", size, len(shown), strings.Join(shown, "\n"))
		}
		for _, line := range shown {
			if view.Cells(line) > max(size[0]-1, 10) {
				t.Errorf("%v: %q is too wide", size, line)
			}
		}
		if last := shown[len(shown)-1]; !strings.Contains(last, "0/30") {
			t.Errorf("%v: the last line is %q", size, last)
		}
		if size[1] >= 10 && !(strings.HasPrefix(shown[len(shown)-2], "waiting: trial.serving needs") &&
			strings.Contains(strings.Join(shown, "\n"), "more")) {
			t.Errorf("%v: what waits, or how much more runs, is not shown:\n%s", size, strings.Join(shown, "\n"))
		}
		l.mu.Unlock()
		l.Close()
	}
}

// A window that becomes narrower breaks the lines of the table, and all of their rows are cleared.
func TestLiveInANarrowerWindow(t *testing.T) {
	var out bytes.Buffer
	columns := 80
	l := NewLive(&out, view.Style{Color: true}, plantest.Of(t, plantest.Step("task.a", engine.Run, "")),
		func() (int, int) { return columns, 24 })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw("")
	out.Reset()
	columns = 20
	rows := (view.Cells(view.Clean(l.bar(79))) + columns - 1) / columns
	if l.draw(""); rows < 2 || !strings.HasPrefix(out.String(), fmt.Sprintf("\x1b[%dA", rows)) {
		t.Errorf("%d rows: %q", rows, out.String())
	}
}

// After Ctrl-Z and fg, the table is below the lines of the shell, and overwrites none of them.
func TestLiveGoesOn(t *testing.T) {
	var out bytes.Buffer
	l := NewLive(&out, view.Style{}, plantest.Of(t, plantest.Step("task.a", engine.Run, "")),
		func() (int, int) { return 80, 24 })
	defer l.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw("")
	if err := syscall.Kill(os.Getpid(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for range 200 { // the signal may take a moment
		l.last = time.Time{}
		out.Reset()
		if l.draw(""); !strings.HasPrefix(out.String(), "\x1b") {
			break
		}
	}
	if strings.HasPrefix(out.String(), "\x1b") {
		t.Errorf("%q", out.String())
	}
	out.Reset()
	if l.draw(""); !strings.HasPrefix(out.String(), "\x1b[1A") {
		t.Errorf("the next table: %q", out.String())
	}
}

// The durations of nodes in this apply predict the rest, first by blocks of the same commit; and the table shows how a
// candidate compares.
func TestProgress(t *testing.T) {
	var all []engine.Step
	for _, address := range []string{"wheel.w[\"a\"]", "trial.x[\"c#1\"]", "trial.x[\"c#2\"]", "trial.x[\"d#1\"]",
		"benchmark.x[\"c/human\"]"} {
		st := plantest.Step(address, engine.Run, "")
		st.Estimate = 0
		all = append(all, st)
	}
	all[1].Estimate = time.Millisecond
	l := newProgress(plantest.Of(t, all...))
	if got := l.left(); got != "at least 1 ms left" {
		t.Errorf("at first: %q", got)
	}
	l.note(engine.Event{Type: engine.NodeDone, Address: all[0].Node.Address, Duration: time.Second})
	l.note(engine.Event{Type: engine.NodeStart, Address: all[1].Node.Address, Time: time.Now()})
	sample := func(variant string, block int, value float64) {
		l.note(engine.Event{Type: engine.SampleTaken, Address: all[1].Node.Address, Data: map[string]any{
			"benchmark": "x", "candidate": "c/" + variant, "block": block, "value": value, "better": "lower",
			"baseline": variant == "base"}})
	}
	g := l.group(all[1].Node.Address)
	sample("base", 1, 200)
	if got := g.soFar(); got != "" {
		t.Errorf("without a candidate: %q", got)
	}
	sample("human", 1, 100)
	sample("human", 2, 7) // whose baseline has not run yet
	l.note(engine.Event{Type: engine.NodeDone, Address: all[1].Node.Address, Duration: 10 * time.Second})
	if got, want := g.name(true)+", "+g.soFar(), "c x 1/2 blocks, human ×2.00 so far"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := l.left(); got != "about 20 s left" {
		t.Errorf("after one block: %q", got)
	}
	l.note(engine.Event{Type: engine.NodeStart, Address: all[2].Node.Address, Time: time.Now()})
	l.note(engine.Event{Type: engine.Note, Address: all[2].Node.Address, Reason: engine.Waiting + "job 7 to start"})
	if got := l.left(); got != "at least 20 s left" {
		t.Errorf("while a job is queued: %q", got)
	}
	if running, queued := l.busy(); running != 0 || queued != 1 {
		t.Errorf("%d running, %d queued", running, queued)
	}
	l.note(engine.Event{Type: engine.VerdictMade, Data: map[string]any{"compare": "k", "benchmark": "x",
		"candidate": "c/human", "outcome": stats.Inconclusive}})
	l.note(engine.Event{Type: engine.VerdictMade, Data: map[string]any{"compare": "k", "benchmark": "x",
		"candidate": "c/human", "outcome": stats.Win}})
	if got := l.verdicts(); got != "1 win" {
		t.Errorf("verdicts: %q", got)
	}
}
