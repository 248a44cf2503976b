package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/forecast"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/plantest"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/stats"
)

func text(t *testing.T, p *engine.Plan, verbose bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := Plan(&b, Style{}, PlanOutline(p, forecast.Predict(p, on(2), nil), verbose), verbose); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// on is a machine that plans are forecast for.
func on(cpus int, devices ...gpu.Device) forecast.Machine {
	return forecast.Machine{CPUs: cpus, Devices: devices}
}

func TestAPlanIsShort(t *testing.T) {
	var list []engine.Step
	for i := range 9 {
		list = append(list, plantest.Step(fmt.Sprintf("wheel.w[\"c%d/human\"]", i), engine.Run,
			fmt.Sprintf("needs source.s[\"c%d/human\"], which is to be run", i)))
	}
	for i := range 8 {
		list = append(list, plantest.Step(fmt.Sprintf("source.s[\"c%d\"]", i), engine.Cached, "up to date"))
	}
	got := text(t, plantest.Of(t, list...), false)
	if !strings.Contains(got, "wheel.w (9)") || strings.Contains(got, "c3/human") ||
		!strings.Contains(got, `source.s["c7"]`) {
		t.Errorf("nine are one line, eight are not:\n%s", got)
	}
	if !strings.HasSuffix(got, "\nPlan: 9 to run (9 build), 8 cached.\n") {
		t.Errorf("the last line sums up:\n%s", got)
	}
	if got := text(t, plantest.Of(t, list...), true); strings.Count(got, "\n") != 17+2 {
		t.Errorf("-verbose shows all:\n%s", got)
	}
}

func TestAPlanOfManyNodesIsShortAndFast(t *testing.T) {
	var list []engine.Step
	for i := range 100_000 {
		address, reason := fmt.Sprintf("task.block%d[\"k\"]", i), fmt.Sprintf("reason %d", i)
		list = append(list, plantest.Step(address, engine.Run, reason))
	}
	begun := time.Now()
	got := text(t, plantest.Of(t, list...), false)
	if n := strings.Count(got, "\n"); n > 60 {
		t.Errorf("%d lines", n)
	}
	if !strings.Contains(got, "task.* (100,000)") {
		t.Errorf("got\n%s", got)
	}
	t.Logf("%v", time.Since(begun))
}

func TestSum(t *testing.T) {
	gpus := engine.Step{Action: engine.Run, Estimate: 31 * time.Hour / 8,
		Node: &engine.Node{Address: `trial.t["c#1"]`, Resources: device.Request{GPUs: device.GPUs{Count: 8}}}}
	tests := []struct {
		list []engine.Step
		want string
	}{
		{nil, "Plan: 0 to run."},
		{[]engine.Step{plantest.Step("task.a", engine.Cached, "")}, "Plan: 0 to run, 1 cached."},
		{[]engine.Step{gpus, plantest.Step("wheel.w", engine.Blocked, ""), plantest.Step("wheel.v", engine.Skip, "")},
			"Plan: 1 to run (1 measure), 1 blocked, 1 skipped; about 31 GPU-h, $122."},
		{[]engine.Step{gpus, plantest.Step("task.a", engine.Run, "")},
			"Plan: 2 to run (1 build, 1 measure); at least (1 of unknown duration) 31 GPU-h, $122."},
	}
	for _, test := range tests {
		p := plantest.Of(t, test.list...)
		if got := Sum(p, forecast.Predict(p, on(4), forecast.Prices{"NVIDIA H100 80GB HBM3": 3.95})); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}

// A plan names the benchmarks whose blocks may run at once. Quiet blocks, and blocks that need all cores, run alone.
func TestBlocksThatRunAtOnce(t *testing.T) {
	block := func(address string, r device.Request) engine.Step {
		return engine.Step{Action: engine.Run, Node: &engine.Node{Address: address, Resources: r}}
	}
	plain, quiet := device.Request{CPUs: 2}, device.Request{CPUs: 2, Quiet: true}
	gpus := device.Request{CPUs: 2, GPUs: device.GPUs{Count: 1}}
	for _, tt := range []struct {
		cores int
		list  []engine.Step
		want  string
	}{
		{4, []engine.Step{block(`trial.b["c#1"]`, plain), block(`trial.a["c#1"]`, plain), block("trial.a", plain)},
			"Blocks of benchmark.a, benchmark.b may run at once and disturb each other: quiet = true in a benchmark " +
				"gives each of its blocks the host."},
		{3, []engine.Step{block("trial.a", plain), block("trial.b", plain)}, ""},
		{4, []engine.Step{block("trial.a", plain), block("trial.b", quiet), block("trial.c", gpus)}, ""},
	} {
		p := plantest.Of(t, tt.list...)
		notes := PlanOutline(p, forecast.Predict(p, on(tt.cores), nil), false).Notes
		if got := strings.Join(notes, "\n"); got != tt.want {
			t.Errorf("%d cores: %q", tt.cores, got)
		}
	}
}

func TestPrediction(t *testing.T) {
	a := engine.Step{Action: engine.Run, Estimate: time.Minute, Node: &engine.Node{Address: "task.a"}}
	b := engine.Step{Action: engine.Run, Estimate: time.Minute, Node: &engine.Node{Address: "task.b"}}
	c := engine.Step{Action: engine.Run, Estimate: time.Minute,
		Node: &engine.Node{Address: "task.c", Needs: []*engine.Node{a.Node, b.Node}}}
	p := plantest.Of(t, a, b, c)
	if f := forecast.Predict(p, on(2), nil); f.Wall != 2*time.Minute {
		t.Errorf("on two cores: %v, want the longest path, 2m", f.Wall)
	}
	if f := forecast.Predict(p, on(1), nil); f.Wall != 3*time.Minute {
		t.Errorf("on one core: %v, want the sum, 3m", f.Wall)
	}
	f := forecast.Predict(p, on(2), nil)
	if got := critical(f, p); got != "Critical path (2 min of about 2 min): task.a → task.c" {
		t.Errorf("%q", got)
	}
	large := engine.Step{Action: engine.Run, Estimate: time.Hour,
		Node: &engine.Node{Address: "trial.large", Resources: device.Request{GPUs: device.GPUs{Count: 2}}}}
	small := engine.Step{Action: engine.Run, Estimate: time.Hour,
		Node: &engine.Node{Address: "trial.small", Resources: device.Request{GPUs: device.GPUs{Count: 1}}}}
	if f := forecast.Predict(plantest.Of(t, large, small), on(64, gputest.Devices(2, "NVIDIA L4", 24<<30)...),
		nil); f.Wall != 90*time.Minute {
		t.Errorf("on two devices: %v, want what they need together, 1h30m", f.Wall)
	}
	two := engine.Step{Action: engine.Run, Estimate: time.Hour,
		Node: &engine.Node{Address: "trial.t", Resources: device.Request{GPUs: device.GPUs{Count: 2}}}}
	prices := forecast.Prices{"A": 1, "B": 5}
	if f := forecast.Predict(plantest.Of(t, two), on(1, gpu.Device{Name: "A"}), prices); f.Cost != 2 {
		t.Errorf("with the device that is here: %v, want 2", f.Cost)
	}
	if f := forecast.Predict(plantest.Of(t, two), on(1), prices); f.Cost != 10 {
		t.Errorf("with any device: %v, want 10", f.Cost)
	}
	two.Node.Resources.GPUs.Memory = 80 << 30
	smaller := gpu.Device{Name: "A", Memory: 79<<30 + 600<<20}
	if f := forecast.Predict(plantest.Of(t, two), on(1, smaller), prices); f.Cost != 2 {
		t.Errorf("with a device of 80 GiB as its driver counts them: %v, want 2", f.Cost)
	}
}

func TestPlanJSON(t *testing.T) {
	n := plantest.Step("task.a", engine.Run, "no result yet")
	n.Key = cache.Key{1}
	p := plantest.Of(t, n)
	var b bytes.Buffer
	if err := PlanJSON(&b, p, forecast.Predict(p, on(1), nil), nil, []Diagnostic{}); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Format string
		Nodes  []struct {
			Address, Kind, Action, Reason, Key string
			Needs                              []string
			Resources                          map[string]any
			Estimate                           *float64 `json:"estimate_s"`
		}
		Summary map[string]float64
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	got := doc.Nodes[0]
	if doc.Format != "1.0" || got.Address != "task.a" || got.Kind != "task" || got.Action != "run" ||
		len(got.Key) != 64 ||
		got.Needs == nil || got.Resources["cpus"] != 1.0 || got.Estimate == nil || doc.Summary["run"] != 1 {
		t.Errorf("%s", &b)
	}
}

// On a terminal, a row that is too long loses its values and what is said of its outcome to the lines below; elsewhere
// it stays a line.
func TestVerdictsOnATerminal(t *testing.T) {
	rows := []stats.Comparison{{Compare: "x", Commit: "c1", Candidate: "c1/human", Metric: "output_token_throughput",
		Primary: true,
		Verdict: stats.Verdict{Outcome: stats.Win, Effect: 0.052, Low: 0.041, High: 0.063, Blocks: 7,
			Better: stats.Higher, Value: 104200, AgainstValue: 99.5,
			Caveats: []stats.Caveat{{Kind: "fix", Text: "the fix f may change speed, and both sides have it"}}},
		Unit: "tok/s",
	}}
	for columns, want := range map[int]string{
		0: `compare.x: 1 candidate = 1 win
  commit  candidate  metric                   better    value                 effect                      outcome
  c1      human      output_token_throughput  ↑ higher  99.5 → 104,200 tok/s  +5.20 % [+4.10 %, +6.30 %]  win (the fix f may change speed, and both sides have it)
`,
		90: `compare.x: 1 candidate = 1 win
  commit  candidate  metric                      effect                      outcome
  c1      human      output_token_throughput  ↑  +5.20 % [+4.10 %, +6.30 %]  win
    99.5 → 104,200 tok/s; (the fix f may change speed, and both sides have it)
`,
		80: `compare.x: 1 candidate = 1 win
  commit  candidate  metric                      effect   outcome
  c1      human      output_token_throughput  ↑  +5.20 %  win
    99.5 → 104,200 tok/s; [+4.10 %, +6.30 %]; (the fix f may change speed, and
    both sides have it)
`,
	} {
		var b bytes.Buffer
		Verdicts(&b, Style{Columns: columns}, rows)
		if got := b.String(); got != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", columns, got, want)
		}
	}
	rows = append(rows, rows[0], stats.Comparison{Compare: "x", Commit: "c2", Candidate: "c2/human", Primary: true,
		Verdict: stats.Verdict{Outcome: stats.NotRun, Reason: "nobody measures it"}})
	rows[0].Benchmark, rows[1].Benchmark = "latency_of_the_first_token", "throughput"
	for columns := 70; columns <= 130; columns += 10 {
		var b bytes.Buffer
		Verdicts(&b, Style{Columns: columns}, rows)
		for line := range strings.Lines(b.String()) {
			if Cells(strings.TrimSuffix(line, "\n")) > columns {
				t.Errorf("a line is wider than %d columns:\n%s", columns, &b)
			}
		}
		for _, part := range []string{"latency_of_the_first_token", "output_token_throughput", "[+4.10 %, +6.30 %]",
			"99.5 → 104,200 tok/s", "nobody measures it"} {
			if !strings.Contains(b.String(), part) {
				t.Errorf("%d columns have no %q:\n%s", columns, part, &b)
			}
		}
	}
	for _, line := range wrap("the "+strings.Repeat("x", 30)+" end of 日本語日本語日本語", 12) {
		if Cells(line) > 12 {
			t.Errorf("%q is too wide", line)
		}
	}
}

func TestVerdicts(t *testing.T) {
	var b bytes.Buffer
	Verdicts(&b, Style{}, []stats.Comparison{
		{Compare: "x", Commit: "c1", Candidate: "c1/human", Metric: "m", Primary: true,
			Verdict: stats.Verdict{Outcome: stats.Win, Effect: 0.052, Low: 0.041, High: 0.063, Blocks: 7,
				Caveats: []stats.Caveat{{Kind: "fix", Text: "fix f"}}},
		},
		{Compare: "x", Commit: "c1", Candidate: "c1/claude", Metric: "m", Primary: true,
			Verdict: stats.Verdict{Outcome: stats.Failed, Reason: "run: \x1b[31mexit status 1"},
		},
		{Compare: "x", Commit: "c1", Candidate: "c1/human", Metric: "n",
			Verdict: stats.Verdict{Outcome: stats.Tie, Blocks: 7}},
	})
	for _, want := range []string{
		"compare.x: 2 candidates = 1 failed + 1 win\n",
		"c1      human      m       -       0 → 0  +5.20 % [+4.10 %, +6.30 %]  win (fix f)\n",
		"failed: run: exit status 1\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), " n ") {
		t.Errorf("a secondary metric is shown:\n%s", &b)
	}
	b.Reset()
	Grounds(&b, []stats.Comparison{{Verdict: stats.Verdict{Blocks: 7, PT: 1e-15}},
		{Verdict: stats.Verdict{Blocks: 7, PT: 0.00123}}})
	if got := b.String(); !strings.Contains(got, "; p_t < 1e-12\n") || !strings.Contains(got, "; p_t = 0.0012\n") {
		t.Errorf("grounds without a p:\n%s", got)
	}
}

func TestVerdictsOfSeveralBenchmarksSayWhich(t *testing.T) {
	rows := []stats.Comparison{
		{Compare: "x", Benchmark: "latency", Commit: "c1", Candidate: "c1/human", Metric: "m", Primary: true,
			Verdict: stats.Verdict{Outcome: stats.Win, Effect: 0.05, Blocks: 1}},
		{Compare: "x", Commit: "c2", Candidate: "c2/human", Primary: true,
			Verdict: stats.Verdict{Outcome: stats.NotRun, Reason: "nobody measures it"},
		},
		{Compare: "x", Benchmark: "load", Commit: "c1", Candidate: "c1/human", Metric: "m", Primary: true,
			Verdict: stats.Verdict{Outcome: stats.Tie, Effect: 0.01, Blocks: 1}},
	}
	var one, two bytes.Buffer
	Verdicts(&one, Style{}, rows[:2])
	Verdicts(&two, Style{}, rows)
	if strings.Contains(one.String(), "latency") {
		t.Errorf("the only benchmark takes a column:\n%s", &one)
	}
	for _, want := range []string{"human      latency    m       -       0 → 0  +5.00 %  win\n",
		"human      load       m       -       0 → 0  +1.00 %  tie\n", "not_run: nobody measures it\n"} {
		if !strings.Contains(two.String(), want) {
			t.Errorf("no %q in\n%s", want, &two)
		}
	}
}

func TestNumber(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := Number(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestCleanedTextHasNoControlCharacters(t *testing.T) {
	if got := Clean("\x1b]0;title\atext\u202e\n" + strings.Repeat("é", 5000)); len(got) > 4<<10+3 ||
		!strings.HasPrefix(got, "text\uFFFD é") {
		t.Errorf("%d bytes: %.40q", len(got), got)
	}
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		got := Clean(in)
		if strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }) {
			t.Fatalf("Clean(%q) = %q", in, got)
		}
		n := rapid.IntRange(0, 50).Draw(t, "columns")
		if short := Fit(got, n); Cells(short) > n {
			t.Fatalf("Fit(%q, %d) = %q", got, n, short)
		}
	})
}

// One long name moves its own row and no other.
func TestALongCellMovesNoOtherRow(t *testing.T) {
	long := strings.Repeat("n", 300)
	for columns, want := range map[int]int{0: WidestPadding, 80: 40, 200: WidestPadding} {
		var b strings.Builder
		Style{Columns: columns}.tableWithNotes(&b, "", [][]string{{"commit", "outcome"}, {"c1", "win"}, {long, "tie"}},
			make([]string, 3))
		if !strings.Contains(b.String(), "c1"+strings.Repeat(" ", want)+"win\n"+long+"  tie\n") {
			t.Errorf("%d columns:\n%s", columns, &b)
		}
	}
}

func TestNotesThatDoNotFitStandBelow(t *testing.T) {
	for columns, want := range map[int]string{
		0:  "failed task.a  some evidence that is long\n",
		60: "failed task.a  some evidence that is long\n",
		30: "failed task.a\n    some evidence that is long\n",
		22: "failed task.a\n    some evidence that\n    is long\n",
	} {
		var b strings.Builder
		Style{Columns: columns}.Noted(&b, "failed task.a", "some evidence that is long")
		if b.String() != want {
			t.Errorf("%d columns: %q, want %q", columns, b.String(), want)
		}
	}
}
