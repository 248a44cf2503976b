package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/benchgraph/benchgraph/device/gpu/nvmltest"
	"github.com/benchgraph/benchgraph/executor/modal/modaltest"
	"github.com/benchgraph/benchgraph/remote/againtest"
)

// TestMain is benchgraph-modal, too, where it is called so.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "benchgraph-modal" {
		main()
		return
	}
	os.Exit(m.Run())
}

// programs are the directory with benchgraph-modal, which is this test, and the path of benchgraph.
var programs = sync.OnceValues(func() (dir, benchgraph string) {
	dir, err := os.MkdirTemp("", "benchgraph-modal-test-")
	if err != nil {
		return
	}
	self, _ := os.Executable()
	_ = os.Symlink(self, filepath.Join(dir, "benchgraph-modal"))
	if benchgraph = os.Getenv("BENCHGRAPH_TEST_PROGRAM"); benchgraph == "" {
		benchgraph = filepath.Join(dir, "benchgraph")
		if out, err := exec.Command("go", "build", "-o", benchgraph, "../benchgraph").CombinedOutput(); err != nil {
			log.Fatalf("%v: %s", err, out)
		}
	}
	return dir, benchgraph
})

// campaign is a project whose blocks are measured by sandboxes of a stand-in for Modal. Its machine has no GPU.
type campaign struct {
	*modaltest.Server
	t      *testing.T
	dir    string
	env    []string
	bucket *s3mem.Backend // the shared store
	hold   string         // while there is a file of this name, what is measured does not end
}

const projectFile = `
benchgraph {
  sandbox = "none"
  store {
    url      = "s3://bench/store"
    endpoint = "ENDPOINT"
    region   = "us-east-1"
  }
}
machine "h100" { devices = "machines/h100.json" }
cost { gpu_hour = { "NVIDIA H100" = 7200 } }
executor "modal" "gpu" {
  machine  = machine.h100
  image    = "registry.example/bench@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
  program  = "PROGRAM"
  gpu      = "H100"
  secrets  = ["store"]
  volumes  = { "VOLUME" = "models" }
  cpus     = 1
  max_jobs = 4
}
commit "c" {}
variant "base" { baseline = true }
variant "fast" {}
task "built" {
  for_each = candidates
  command  = "echo ${each.key} > $OUT/made"
  artefact = true
}
benchmark "speed" {
  for_each = candidates
  data     = { "in" = task.built[each.key] }
  secrets  = ["TOKEN"]
  command  = <<-EOT
    case $TOKEN in *-token) ;; *) exit 3 ;; esac
    cat VOLUME/weights
    printf '\033[2J\377\000{"number":1,"done":true}\r\n'
    echo "work done: $(case $(cat in) in *fast) echo 200;; *) echo 100;; esac) items/s"
    echo devices $CUDA_VISIBLE_DEVICES
    while [ -e HOLD ]; do sleep 0.05; done
  EOT
  gpus { count = 2 }
  metrics {
    metric "rate" {
      match  = "work done: ([0-9.]+)"
      better = "higher"
    }
  }
  design { samples = 2 }
}
compare "speed" { of = [benchmark.speed] }
`

func check(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func newCampaign(t *testing.T) *campaign {
	t.Helper()
	helper, program := programs()
	c := &campaign{Server: modaltest.Start(t), t: t, dir: t.TempDir(), bucket: s3mem.New()}
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+w", c.dir).Run() }) // results are read-only
	check(t, c.bucket.CreateBucket("bench"))
	store := httptest.NewServer(gofakes3.New(c.bucket, gofakes3.WithTimeSkewLimit(0),
		gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(store.Close)
	keys := map[string]string{"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "hidden-from-others"}
	c.Secret("store", keys)
	check(t, os.WriteFile(filepath.Join(c.Volume("models"), "weights"), []byte("the weights\n"), 0o644))
	library, err := nvmltest.Build(t.TempDir(), false)
	check(t, err)
	machine := func(id string, gpus int) []string {
		scenario := nvmltest.Scenario(id, "NVIDIA_H100", 81559, gpus)
		own := filepath.Join(c.dir, ".machines", id)
		check(t, os.MkdirAll(own, 0o755), os.WriteFile(filepath.Join(own, "gpus"), []byte(scenario), 0o644))
		return []string{"HOME=" + own, "TMPDIR=" + own, "BENCHGRAPH_NVML=" + library, "NVML_SCENARIO=" + own + "/gpus",
			"BENCHGRAPH_HOST_LOCK=" + own + "/lock"}
	}
	c.Machine(machine)
	c.env = append(c.Environ(), "PATH="+helper+":"+os.Getenv("PATH"), "HOME="+c.path(".home"), "TOKEN=hidden-token",
		"BENCHGRAPH_HOST_LOCK="+c.path(".home", "lock"), "GORACE=atexit_sleep_ms=10")
	for name, value := range keys {
		c.env = append(c.env, name+"="+value)
	}
	c.hold = c.path("hold")
	check(t, os.MkdirAll(c.path("machines"), 0o755), os.Mkdir(c.path(".home"), 0o755),
		os.WriteFile(c.path("benchmarks.hcl"), []byte(strings.NewReplacer("ENDPOINT", store.URL, "PROGRAM", program,
			"VOLUME", c.path(".models"), "HOLD", c.hold).Replace(projectFile)), 0o644))
	describe := exec.Command(program, "devices", "-json")
	describe.Env = append(machine("described", 4), "PATH="+os.Getenv("PATH"))
	text, err := describe.Output()
	check(t, err, os.WriteFile(c.path("machines", "h100.json"), text, 0o644))
	return c
}

func (c *campaign) path(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}

// command is a benchgraph that was not started yet, and what it will have written.
func (c *campaign) command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	_, program := programs()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	c.t.Cleanup(stop)
	cmd := exec.CommandContext(ctx, program, args...)
	out := &bytes.Buffer{}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = c.dir, c.env, out, out, time.Second
	return cmd, out
}

// must runs a command line that has to end with the exit code, and to say all of the texts.
func (c *campaign) must(code int, args []string, texts ...string) string {
	c.t.Helper()
	cmd, out := c.command(args...)
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		c.t.Fatalf("%v: exit code %d, want %d\n%s", args, got, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out.String(), text) {
			c.t.Errorf("%v does not say %q:\n%s", args, text, out)
		}
	}
	return out.String()
}

func (c *campaign) states() (all []string) {
	for _, sb := range c.Sandboxes() {
		all = append(all, sb.State())
	}
	return all
}

// runs waits until a sandbox runs the command that is measured.
func (c *campaign) runs() *modaltest.Sandbox {
	c.t.Helper()
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(20 * time.Millisecond) {
		for _, sb := range c.Sandboxes() {
			held, _ := filepath.Glob(c.path(".machines", sb.ID, "benchgraph-jobs-*", "job-*"))
			if len(held) > 0 && sb.State() == "RUNNING" {
				return sb
			}
		}
	}
	c.t.Fatal("no sandbox runs")
	return nil
}

func TestACampaignOnModal(t *testing.T) {
	t.Parallel()
	c := newCampaign(t)
	c.must(0, []string{"plan"}, "Planned for machine h100",
		"2 of these nodes run as jobs of executor gpu, at most 4 at once")
	c.must(0, []string{"apply"}, " is submitted", " runs on ta-", "100 → 200 items/s", "Apply: 7 done")
	if states := c.states(); strings.Join(states, " ") != "SUCCESS SUCCESS" {
		t.Errorf("sandboxes: %s", states)
	}
	for _, sb := range c.Sandboxes() {
		if sb.GPU != "H100:2" || sb.CPU != 1 || sb.Limit != 24*time.Hour || sb.Tags["benchgraph_key"] == "" {
			t.Errorf("%+v", sb)
		}
	}
	c.must(0, []string{"plan"}, "Plan: 0 to run")
	c.must(0, []string{"logs", `trial.speed["c#2"]`}, "the weights", "job sb-", "work done: 200")
	c.must(0, []string{"report"})
	report, err := os.ReadFile(c.path("report", "report.md"))
	check(t, err)
	if !regexp.MustCompile(`attempts took .* and 0\.\d\d GPU-hours, \d+\.\d\d in the currency`).Match(report) {
		t.Errorf("the report has no GPU-hours:\n%s", report)
	}
	if seen := c.Seen(); strings.Contains(seen, "hidden") {
		t.Errorf("others with the account can read a secret: %s", seen)
	}
	c.eachObject(func(name, text string) {
		if strings.Contains(text, "hidden") {
			t.Errorf("%s in the store has a secret", name)
		}
		if strings.HasPrefix(name, "store/jobs/") {
			t.Errorf("%s is left of a job", name)
		}
	})
}

// eachObject calls a function with each object of the store.
func (c *campaign) eachObject(f func(name, text string)) {
	c.t.Helper()
	list, err := c.bucket.ListBucket("bench", nil, gofakes3.ListBucketPage{})
	check(c.t, err)
	if len(list.Contents) == 0 {
		c.t.Error("the store is empty")
	}
	for _, o := range list.Contents {
		object, err := c.bucket.GetObject("bench", o.Key, nil)
		check(c.t, err)
		text, err := io.ReadAll(object.Contents)
		check(c.t, err)
		f(o.Key, string(text))
	}
}

// A killed apply leaves its sandboxes, and the next apply follows them.
func TestSandboxesAreFoundAgain(t *testing.T) {
	t.Parallel()
	c := newCampaign(t)
	check(t, os.WriteFile(c.hold, nil, 0o644))
	cmd, _ := c.command("apply")
	check(t, cmd.Start())
	first := c.runs()
	check(t, cmd.Process.Kill())
	_ = cmd.Wait()
	time.AfterFunc(time.Second, func() { _ = os.Remove(c.hold) })
	c.must(0, []string{"apply"}, "job "+first.ID+" was submitted before", "100 → 200 items/s")
	if states := c.states(); strings.Join(states, " ") != "SUCCESS SUCCESS" {
		t.Errorf("sandboxes: %s", states)
	}
}

// An apply that is interrupted ends its sandboxes.
func TestAnInterruptEndsSandboxes(t *testing.T) {
	t.Parallel()
	c := newCampaign(t)
	check(t, os.WriteFile(c.hold, nil, 0o644))
	cmd, out := c.command("apply")
	check(t, cmd.Start())
	c.runs()
	check(t, cmd.Process.Signal(syscall.SIGINT))
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for _, state := range c.states() {
		if state != "TERMINATED" {
			t.Errorf("sandboxes: %s", c.states())
		}
	}
}

// A block with a result is measured again in a sandbox, see againtest.
func TestABlockIsMeasuredAgain(t *testing.T) {
	t.Parallel()
	c := newCampaign(t)
	files := againtest.Files{Hold: c.hold, Bad: c.path("bad"), Ran: c.path("ran")}
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(t, err, os.WriteFile(c.path("benchmarks.hcl"), []byte(strings.Replace(string(text), "    echo \"work done",
		"    "+files.Lines()+"\n    echo \"work done", 1)), 0o644))
	s := &againtest.Site{Files: files, State: c.path(".benchgraph"), Running: func() { c.runs() },
		Jobs: func() int { return len(c.Sandboxes()) }}
	s.Command = func(args ...string) *exec.Cmd {
		cmd, _ := c.command(args...)
		return cmd
	}
	s.Over = func() {
		for slices.Contains(c.states(), "RUNNING") {
			time.Sleep(20 * time.Millisecond)
		}
	}
	s.Left = func() (left string) {
		c.eachObject(func(name, _ string) {
			if strings.HasPrefix(name, "store/jobs/") {
				left += name
			}
		})
		return left
	}
	s.Test(t)
}

// A sandbox that Modal ends is followed by another one; without a token, nothing is started at all.
func TestWhatModalDoes(t *testing.T) {
	t.Parallel()
	c := newCampaign(t)
	all := c.env
	c.env = append(c.env, "MODAL_TOKEN_ID=", "MODAL_TOKEN_SECRET=")
	c.must(1, []string{"apply"}, "executor gpu: modal: there is no token; set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET")
	c.must(1, []string{"doctor"}, "missing  executor gpu", "there is no token")
	if n := len(c.Sandboxes()); n > 0 {
		t.Errorf("%d sandboxes", n)
	}
	if left, _ := os.ReadDir(c.path(".benchgraph", "runs")); len(left) > 0 {
		t.Errorf("%d runs", len(left))
	}
	c.env = all
	check(t, os.WriteFile(c.hold, nil, 0o644))
	cmd, out := c.command("apply")
	done := make(chan error, 1)
	check(t, cmd.Start())
	go func() { done <- cmd.Wait() }()
	c.runs().Preempt()
	check(t, os.Remove(c.hold))
	if err := <-done; err != nil || !strings.Contains(out.String(), "ended as PREEMPTED on ta-") ||
		!strings.Contains(out.String(), "attempt 2") {
		t.Errorf("%v\n%s", err, out)
	}
	states := strings.Join(c.states(), " ")
	if strings.Count(states, "SUCCESS") != 2 || strings.Count(states, " ") != 2 {
		t.Errorf("sandboxes: %s", states)
	}
}
