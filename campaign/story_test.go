package campaign_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/docker"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/tasks"
)

// story is a project on disk with its state, for tests that read as stories.
type story struct {
	t       testing.TB
	dir     string
	lock    *lockfile.Lock
	secrets map[string]string
	events  []engine.Event
	offline bool
	locked  bool
	allow   []string
	host    executor.Executor  // nil: this machine
	engine  *container.Engine  // nil: there is none
	seen    func(engine.Event) // told of each event; nil: nobody
	disk    int64              // bytes of its disk that may be used; 0: all
	when    func(engine.Event) // called with each event; nil: nobody
	store   tasks.Store        // nil: one on disk
	gpus    []gpu.Device
}

// unguarded is the beginning of the file of a story whose commands need things outside of a sandbox.
const unguarded = "benchgraph { sandbox = \"none\" }\n"

// tell begins a story with the files of a project.
func tell(t testing.TB, files map[string]string) *story {
	t.Helper()
	s := &story{t: t, dir: t.TempDir(), lock: &lockfile.Lock{}, secrets: map[string]string{}}
	for name, text := range files {
		s.write(name, text)
	}
	return s
}

func (s *story) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	mode := os.FileMode(0o644)
	if strings.HasSuffix(name, ".sh") {
		mode = 0o755
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
}

// git runs git in the story's repository, which is made by the first call.
func (s *story) git(args ...string) string {
	s.t.Helper()
	repo := filepath.Join(s.dir, "repo")
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c",
		"commit.gpgsign=false"}, args...)...)
	cmd.Dir = repo
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit commits files to the repository and returns the commit.
func (s *story) commit(files map[string]string) string {
	s.t.Helper()
	if _, err := os.Stat(filepath.Join(s.dir, "repo", ".git")); err != nil {
		if err := os.MkdirAll(filepath.Join(s.dir, "repo"), 0o755); err != nil {
			s.t.Fatal(err)
		}
		s.git("init", "-q", "-b", "main")
	}
	for name, text := range files {
		s.write("repo/"+name, text)
	}
	s.git("add", "-A")
	s.git("commit", "-q", "--allow-empty", "-m", "change")
	return s.git("rev-parse", "HEAD")
}

// open opens the project as a new process would, calls the function, and closes everything again.
func (s *story) open(use func(context.Context, *campaign.Project)) hcl.Diagnostics {
	s.t.Helper()
	return s.openAs(use, campaign.Open)
}

func (s *story) openAs(use func(context.Context, *campaign.Project),
	open func(context.Context, campaign.Config, *lockfile.Lock) (*campaign.Project, hcl.Diagnostics)) hcl.Diagnostics {
	t := s.t
	t.Helper()
	ctx := t.Context()
	state := filepath.Join(s.dir, ".benchgraph")
	must(t, os.MkdirAll(state, 0o755))
	store := s.store
	if store == nil {
		disk, err := disk.Open(filepath.Join(state, "store"))
		must(t, err)
		defer disk.Close()
		store = disk
	}
	host := s.host
	if host == nil {
		host = executor.NewHost(executor.HostOptions{})
	}
	var containers executor.Executor
	if s.engine != nil {
		containers = docker.New(s.engine, host)
	}
	journal, err := journal.Open(filepath.Join(state, "journal"))
	must(t, err)
	defer journal.Close()
	stat := cache.OpenStatCache(filepath.Join(state, "stat"))
	pool, err := device.NewPool(device.Options{CPUs: 2, Cores: device.Cores, Memory: 8 << 30,
		GPUs: gpu.These(s.gpus)})
	must(t, err)
	defer pool.Close()
	p, diags := open(ctx, campaign.Config{Config: tasks.Config{
		LockFile: filepath.Join(s.dir, "benchgraph.lock.hcl"), StateDir: state, Store: store, Journal: journal,
		Stat: stat, Pool: pool, Host: host, Containers: containers, Engine: s.engine, ImageDisk: s.disk,
		ImageLocks: filepath.Join(s.dir, ".locks"), HTTP: http.DefaultClient, Progress: io.Discard, Offline: s.offline,
		Allow:      s.allow,
		GitEnviron: os.Environ(),
		Environ:    []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LANG=C.UTF-8"},
		Secret:     func(name string) (string, bool) { v, ok := s.secrets[name]; return v, ok },
		Render: func(found []findings.Findings, _ *hclspec.Spec, r *hclspec.Report) (map[string][]byte, error) {
			return map[string][]byte{r.Address.Name + ".md": fmt.Appendf(nil, "%d findings\n", len(found))}, nil
		},
	}, Options: campaign.Options{
		MemoFile: filepath.Join(state, "memo"), Locked: s.locked,
		Load: func(l *lockfile.Lock) (*hclspec.Spec, hcl.Diagnostics) {
			spec, _, diags := hclspec.Load(hclspec.Options{Dir: s.dir, Lock: l})
			return spec, diags
		},
	}}, s.lock)
	if !diags.HasErrors() {
		use(ctx, p)
		must(t, stat.Save())
	}
	return diags
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// apply applies the project in a new process. It fails the test if the project cannot be opened.
func (s *story) apply() *campaign.Applied {
	s.t.Helper()
	var applied *campaign.Applied
	s.events = nil
	var mu sync.Mutex
	diags := s.open(func(ctx context.Context, p *campaign.Project) {
		var err error
		applied, err = p.Apply(ctx, campaign.ApplyOptions{RunID: "test",
			Emit: func(e engine.Event) {
				mu.Lock()
				defer mu.Unlock()
				s.events = append(s.events, e)
				if s.seen != nil {
					s.seen(e)
				}
				if s.when != nil {
					s.when(e)
				}
			},
			SaveLock: func(l *lockfile.Lock) error {
				again, diags := lockfile.Parse(l.Bytes(), "benchgraph.lock.hcl")
				if diags.HasErrors() {
					return diags
				}
				s.lock = again
				return nil
			}})
		must(s.t, err)
	})
	if diags.HasErrors() {
		s.t.Fatal(diags)
	}
	r, nodes := applied.Result, len(applied.Plan.Steps)
	if sum := r.Done + r.Cached + r.Failed + r.Blocked + r.Skipped + r.NotRun; sum != nodes {
		s.t.Errorf("%d nodes are counted, and there are %d: %+v", sum, nodes, r)
	}
	return applied
}

// ran lists the nodes that were run, by address.
func (s *story) ran() []string {
	var list []string
	for _, e := range s.events {
		if e.Type == engine.NodeStart {
			list = append(list, e.Address)
		}
	}
	slices.Sort(list)
	return list
}

// ledger judges the stored results, as status and report do.
func (s *story) ledger() []stats.Comparison {
	s.t.Helper()
	var rows []stats.Comparison
	s.open(func(ctx context.Context, p *campaign.Project) {
		plan, err := p.Plan(ctx, campaign.PlanOptions{AsIs: true})
		must(s.t, err)
		found, err := p.Stored(plan).Findings(ctx)
		must(s.t, err)
		for _, f := range found {
			rows = append(rows, f.Comparisons...)
		}
	})
	return rows
}

// outcomes are the ledger's outcomes by candidate.
func (s *story) outcomes() map[string]stats.Outcome {
	s.t.Helper()
	got := map[string]stats.Outcome{}
	for _, row := range s.ledger() {
		if row.Primary {
			got[row.Candidate] = row.Outcome
		}
	}
	return got
}

func (s *story) wantOutcomes(want map[string]stats.Outcome) {
	s.t.Helper()
	if got := s.outcomes(); !maps.Equal(got, want) {
		for _, row := range s.ledger() {
			s.t.Logf("%s: %s: %s", row.Candidate, row.Outcome, row.Reason)
		}
		for _, e := range s.events {
			if e.Failure != nil {
				s.t.Logf("%s %s: %+v", e.Type, e.Address, *e.Failure)
			}
		}
		s.t.Fatalf("outcomes are %v, want %v", got, want)
	}
}

// threeWay is a project that measures how many items a second a script claims, with a noise of 0.2 %.
const threeWay = `
repo "r" { path = "repo" }
commit "c" { rev = "%s" }
variant "baseline" {
  baseline = true
  rev      = each.commit.parent
}
variant "human" { rev = each.commit.rev }
variant "agent" {
  rev      = each.commit.parent
  patch    = "patches/${each.commit.name}.diff"
  optional = true
}
wheel "prog" {
  for_each = candidates
  source   = each.source
  build { command = "sh build.sh && cp prog $OUT/" }
  outputs = ["prog"]
}
benchmark "speed" {
  for_each = candidates
  data     = { "prog" = wheel.prog[each.key] }
  command  = "./prog"
  design { samples = 7 }
  metrics {
    metric "items" {
      match  = "work done: ([0-9.]+) items/s"
      unit   = "items/s"
      better = "higher"
    }
  }
}
compare "three_way" { of = [benchmark.speed] }
report "campaign" {
  of      = [compare.three_way]
  formats = ["markdown"]
}
`

const buildScript = "{ echo '#!/bin/sh'; cat prog.sh; } > prog && chmod +x prog\n"

// claims is a program that prints a speed.
func claims(speed int) string {
	return fmt.Sprintf("awk -v n=$(date +%%N) 'BEGIN { srand(n); printf \"work done: %%.3f items/s\\n\", %d * (1 + "+
		"0.004 * (rand() - 0.5)) }'\n", speed)
}

// patched is a patch that replaces prog.sh on top of a commit.
func (s *story) patched(from, text string) string {
	s.t.Helper()
	s.git("checkout", "-q", "--detach", from)
	s.write("repo/prog.sh", text)
	diff := s.git("diff") + "\n"
	s.git("checkout", "-q", "--force", "main")
	return diff
}

func TestThreeVariantsAreMeasuredToTheirVerdicts(t *testing.T) {
	t.Parallel()
	s := tell(t, nil)
	parent := s.commit(map[string]string{"prog.sh": claims(1000), "build.sh": buildScript})
	s.commit(map[string]string{"prog.sh": claims(1100)})
	s.write("benchmarks.hcl", fmt.Sprintf(threeWay, "HEAD"))
	s.write("patches/c.diff", s.patched(parent, claims(1001)))
	applied := s.apply()
	if applied.Result.Failed != 0 {
		t.Fatalf("%+v", applied.Result)
	}
	s.wantOutcomes(map[string]stats.Outcome{"c/human": stats.Win, "c/agent": stats.Tie})
	for _, row := range s.ledger() {
		if row.Candidate == "c/human" && (row.Effect < 0.09 || row.Effect > 0.11 || row.Blocks != 7) {
			t.Errorf("human: effect %v over %d blocks", row.Effect, row.Blocks)
		}
	}

	// A second run does nothing.
	s.apply()
	if ran := s.ran(); len(ran) > 0 {
		t.Errorf("the second run ran %q", ran)
	}

	// More samples run the missing blocks, and the nodes that read them.
	s.write("benchmarks.hcl", strings.Replace(fmt.Sprintf(threeWay, "HEAD"), "samples = 7", "samples = 9", 1))
	s.apply()
	want := []string{`benchmark.speed["c/agent"]`, `benchmark.speed["c/baseline"]`, `benchmark.speed["c/human"]`,
		"compare.three_way", "report.campaign", `trial.speed["c#8"]`, `trial.speed["c#9"]`}
	if ran := s.ran(); !slices.Equal(ran, want) {
		t.Errorf("nine samples ran %q, want %q", ran, want)
	}
}

func TestAMissingOptionalPatchIsNoPatch(t *testing.T) {
	t.Parallel()
	s := tell(t, nil)
	s.commit(map[string]string{"prog.sh": claims(1000), "build.sh": buildScript})
	s.commit(map[string]string{"prog.sh": claims(900)})
	s.write("benchmarks.hcl", fmt.Sprintf(threeWay, "HEAD"))
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/human": stats.Loss, "c/agent": stats.NoPatch})
}

func TestFailuresAreChargedToWhoCausedThem(t *testing.T) {
	t.Parallel()
	broken := "echo 'Segmentation fault' >&2; exit 139\n"
	tests := []struct {
		name                   string
		baseline, human, agent string
		wantHuman, wantAgent   stats.Outcome
		patch                  string
	}{
		{name: "a patch that does not apply is a failed build", baseline: claims(1000), human: claims(1100),
			patch: "--- a/prog.sh\n+++ b/prog.sh\n@@ -1,1 +1,1 @@\n-not there\n+at all\n", wantHuman: stats.Win,
			wantAgent: stats.BuildFailed},
		{name: "a candidate that crashes has failed, and the others are measured", baseline: claims(1000),
			human: claims(1100),
			agent: broken, wantHuman: stats.Win, wantAgent: stats.Failed},
		{name: "a candidate without the metric has failed", baseline: claims(1000), human: claims(1100),
			agent: "echo fine\n", wantHuman: stats.Win, wantAgent: stats.Failed},
		{name: "without a baseline nobody has failed", baseline: broken, human: claims(1100),
			agent: broken + "# too\n", wantHuman: stats.NoBaseline, wantAgent: stats.NoBaseline},
		{name: "what it prints of the machine excuses nobody", baseline: claims(1000), human: claims(1100),
			agent: "echo 'write: No space left on device'; exit 1\n", wantHuman: stats.Win, wantAgent: stats.Failed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := tell(t, nil)
			parent := s.commit(map[string]string{"prog.sh": tt.baseline, "build.sh": buildScript})
			s.commit(map[string]string{"prog.sh": tt.human})
			s.write("benchmarks.hcl", fmt.Sprintf(threeWay, "HEAD")+noSpace)
			patch := tt.patch
			if patch == "" {
				patch = s.patched(parent, tt.agent)
			}
			s.write("patches/c.diff", patch)
			applied := s.apply()
			s.wantOutcomes(map[string]stats.Outcome{"c/human": tt.wantHuman, "c/agent": tt.wantAgent})
			// Preflight reports a patch that does not apply, and nothing is tried.
			if r := applied.Result; (r.Failed == 0) != (tt.patch != "") || r.Failed != len(r.Failures) {
				t.Errorf("%d nodes failed, and %d failures are told", r.Failed, len(r.Failures))
			}
		})
	}
}

// noSpace is a failure rule without a long back-off.
const noSpace = `
failure "no_space" {
  match = "No space left on device"
  class = "infra"
  retry {
    attempts = 2
    backoff  = "10ms"
  }
}
`
