//go:build linux && faults

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor"
)

var (
	kills = flag.Int("kills", 30, "how often TestFaultKill kills an apply")
	seed  = flag.Uint64("seed", 0, "of what TestFaultKill and TestFaultCluster break; 0: another one each time")
)

// killed has a node of every kind that runs here: chains, a fan-in, real git, a server in blocks, verdicts, a report.
// Each chain also leaves a process behind, which somebody has to end; LEFT is how long it sleeps, and identifies it.
const killed = `
variable "round" { default = "0" }
mount "programs" {
  source   = "PROGRAMS"
  target   = "/programs"
  identity = "of the test"
}
repo "prog" { url = "./prog" }
commit "a" { repo = repo.prog }
variant "baseline" {
  baseline = true
  rev      = each.commit.parent
}
variant "human" { rev = each.commit.rev }
wheel "w" {
  for_each = candidates
  source   = each.source
  build { command = "cat value > $OUT/speed; echo ${var.round} > $OUT/round" }
  outputs  = ["*"]
}
task "first" {
  for_each = toset(["1", "2", "3", "4", "5", "6", "7", "8", "9"])
  inputs   = ["in/*"]
  command  = "cat in/* >$OUT/it; echo round ${var.round} chain ${each.key} >>$OUT/it; setsid sleep LEFT >&- 2>&- &"
}
task "second" {
  for_each = task.first
  data     = { "it" = each.value }
  command  = "sleep 0.02; cat it > $OUT/it; echo second >> $OUT/it; head -c 300000 /dev/zero > $OUT/large"
}
task "third" {
  for_each = task.second
  data     = { "from/" = each.value }
  command  = "cat from/it > $OUT/it; for i in 1 2 3 4 5 6 7 8 9; do echo $i > $OUT/$i; done"
}
task "fourth" {
  for_each = task.third
  data     = { "from/" = each.value }
  command  = "cat from/it > $OUT/it; echo fourth >> $OUT/it"
}
task "all" {
  data    = { for name, part in task.fourth : name => part }
  command = "cat 1 2 3 4 5 6 7 8 9 > $OUT/all"
}
benchmark "web" {
  for_each = candidates
  data     = { "w/" = wheel.w[each.key] }
  mounts   = [mount.programs]
  server {
    command = "exec serve $(cat w/speed)"
    ready { log = "serving" }
  }
  command = "sleep 0.01; ask /speed"
  design { samples = 4 }
  metrics {
    primary = "speed"
    metric "speed" {
      match  = "^([0-9.]+)$"
      unit   = "req/s"
      better = "higher"
    }
  }
}
compare "web" { of = [benchmark.web] }
report "all" {
  of      = [compare.web]
  formats = ["markdown", "json", "csv", "junit"]
}
`

func killWorld(t *testing.T, dir string) *world {
	programs, err := exec.LookPath("serve")
	check(t, err)
	places := strings.NewReplacer("LEFT", leftLength(), "PROGRAMS", filepath.Dir(programs))
	w := newWorldIn(t, dir, places.Replace(killed))
	for i := range 5 {
		w.write(fmt.Sprintf("in/%d", i), fmt.Sprintf("input %d\n", i))
	}
	script := `git init -q -b main prog; cd prog; echo 100 > value; git add -A; git commit -q -m first
echo 120 > value; git commit -q -a -m second; git tag a`
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir, cmd.Env = w.dir, w.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return w
}

// leftLength is how long the processes sleep that commands of a kill world leave, in seconds.
func leftLength() string { return strconv.Itoa(200000 + os.Getpid()) }

// finds is the outcome of an apply: the key of every node, and the figures that do not depend on the clock.
type finds struct {
	keys    map[string]string
	all     string
	outcome string
}

func (w *world) finds(args ...string) finds {
	w.t.Helper()
	f := finds{keys: map[string]string{}}
	for address, n := range w.plan(args...) {
		f.keys[address] = n.Key
		if n.Action != "cached" {
			w.t.Errorf("%s is to %s after an apply: %s", address, n.Action, n.Reason)
		}
	}
	_, file := w.result("task.all", args...)
	f.all = file("all")
	var doc struct {
		Counts  map[string]int
		Commits []struct{ Candidate, Outcome, Reason string }
	}
	w.json(&doc, append([]string{"status", "-json"}, args...)...)
	f.outcome = fmt.Sprint(doc)
	return f
}

// TestFaultKill kills applies at random moments. Nothing that is stored is corrupt, no node that was reported as done
// is lost, nothing goes on running, and later applies come to the same end as without the kill.
func TestFaultKill(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("go test -tags faults -run TestFaultKill ./cmd/benchgraph -kills %d -seed %d", *kills, *seed)
	random := rand.New(rand.NewPCG(*seed, 1))
	w := killWorld(t, t.TempDir())
	w.env = append(w.env, "BENCHGRAPH_STATE_DIR="+w.path("undisturbed"))
	w.must(0, "apply", "-var", "round=0")
	want := w.finds("-var", "round=0")
	w.env = w.env[:len(w.env)-1]
	if len(want.keys) < 50 {
		t.Fatalf("the graph has %d nodes only", len(want.keys))
	}

	pids, done := map[int]bool{}, map[string]string{}
	count, rounds := 0, 0
	for ; count < *kills; rounds++ {
		variable := fmt.Sprintf("round=%d", rounds)
		clear(done)
		for finished := false; !finished && count < *kills; {
			k := w.kill(random, variable)
			finished = k.code == 0
			if !finished {
				count++
			}
			delete(pids, k.pid)                 // a number that is used again
			if executor.CheckSandbox() == nil { // the kernel ends them, at once
				until(t, "the end of all that its commands left", func() bool { return sleepers(leftLength()) == 0 })
			}
			if strings.Contains(k.stdout, `"node_start"`) { // it has ended what earlier ones left
				if left := marked(pids); len(left) > 0 {
					t.Errorf("still running: %q", left)
				}
			}
			pids[k.pid] = true
			w.keeps(done, k.stdout, variable)
			if t.Failed() {
				t.Fatalf("after kill %d, %s", count, k.when)
			}
		}
		w.must(0, "apply", "-var", variable)
		if left := marked(pids); len(left) > 0 {
			t.Errorf("still running: %q", left)
		}
		got := w.finds("-var", variable)
		if wantAll := strings.ReplaceAll(want.all, "round 0",
			strings.Replace(variable, "=", " ", 1)); got.all != wantAll {
			t.Errorf("all is %q, want %q", got.all, wantAll)
		}
		if rounds == 0 && !maps.Equal(got.keys, want.keys) {
			t.Errorf("keys are %v, want %v", got.keys, want.keys)
		}
		// A lifecycle that fails by itself on such a busy machine is one loss of few, and no verdict may hide that.
		if strings.Contains(got.outcome, "inconclusive survivorship: ") {
			t.Logf("it came to %s", got.outcome)
		} else if got.outcome != want.outcome || len(got.keys) != len(want.keys) {
			t.Errorf("it came to %s, want %s", got.outcome, want.outcome)
		}
		if !exists(w.path("report", "report.md")) {
			t.Error("no report was written")
		}
	}
	t.Logf("%d kills in %d rounds", count, rounds)
}

// kill is an apply that was killed, unless it ended before.
type kill struct {
	outcome
	pid  int
	when string
}

// kill starts an apply and kills it: after a time, to hit its start, or soon after an event, to hit the work between
// two events.
func (w *world) kill(random *rand.Rand, variable string) kill {
	w.t.Helper()
	cmd := w.command("apply", "-json", "-var", variable)
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	var after time.Duration
	events := 0
	switch random.IntN(3) {
	case 0:
		after = time.Duration(random.IntN(100_000)) * time.Microsecond
	case 1:
		after = time.Duration(random.IntN(1_500_000)) * time.Microsecond
	default:
		events = 1 + random.IntN(60)
		after = time.Duration(random.IntN(8_000)) * time.Microsecond
	}
	stop := func() { cmd.Process.Signal(os.Kill) }
	if events == 0 {
		defer time.AfterFunc(after, stop).Stop()
	}
	lines := bufio.NewReader(out)
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		stdout.WriteString(line)
		if n == events {
			defer time.AfterFunc(after, stop).Stop()
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	_ = cmd.Wait() // killed
	o := outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), cmd.ProcessState}
	if o.code > 0 {
		w.t.Fatalf("exit code %d\n%s\n%s", o.code, o.stdout, o.stderr)
	}
	return kill{o, cmd.Process.Pid, fmt.Sprintf("%s after event %d, having said:\n%s%s", after, events, o.stdout,
		o.stderr)}
}

// keeps makes sure that nothing stored is corrupt, and that every result is there which this or an earlier apply
// reported as done.
func (w *world) keeps(done map[string]string, said, variable string) {
	w.t.Helper()
	for _, e := range events(w.t, said) {
		if e.Type == "node_done" {
			done[e.Address] = e.Key
		}
	}
	w.verify()
	plan := w.plan("-var", variable)
	for address, key := range done {
		if n := plan[address]; n.Action != "cached" || n.Key != key {
			w.t.Errorf("%s was done as %s, and is now %+v", address, key, n)
		}
	}
}

// planned is a node of plan -json.
type planned struct{ Address, Kind, Action, Reason, Key string }

func (w *world) plan(args ...string) map[string]planned {
	w.t.Helper()
	var doc struct{ Nodes []planned }
	w.json(&doc, append([]string{"plan", "-json"}, args...)...)
	nodes := map[string]planned{}
	for _, n := range doc.Nodes {
		nodes[n.Address] = n
	}
	return nodes
}

// event is a line of apply -json.
type event struct {
	Type, Address, Key, Class, Rule, Message, Remedy, Reason string
	Exit                                                     int     `json:"exit_code"`
	Duration                                                 float64 `json:"duration_s"`
}

// events returns the whole lines of apply -json; a kill may have cut off the last line.
func events(t testing.TB, out string) []event {
	t.Helper()
	var all []event
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, e)
	}
	return all
}
