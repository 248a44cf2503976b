package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/device/gpu/nvmltest"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/slurm/slurmtest"
)

// clustered is a project whose benchmarks run on a real Slurm cluster of two nodes with four played devices each. The
// machine of the project has no device, and the nodes do not see the project's directory.
type clustered struct {
	*world
	*slurmtest.Cluster
	hold string // while this file exists, measured commands do not end
	work string // directory with the requests of jobs
}

// clusterFile is the root file of a clustered project.
const clusterFile = `
benchgraph {
  sandbox = "none"
  store { url = "file://SHARED" }
}
machine "h200" { devices = "machines/h200.json" }
executor "slurm" "gpu" {
  machine  = machine.h200
  program  = "PROGRAM"
  work_dir = "WORK"
  cpus     = 1
  max_jobs = 4
}
commit "c" {}
`

// rate reads the numbers of a clustered project.
const rate = `metrics {
    metric "rate" {
      match  = "work done: ([0-9.]+)"
      better = "higher"
    }
  }`

// forget removes all results, also those of the shared store.
func (c *clustered) forget(t testing.TB) {
	t.Helper()
	store := filepath.Join(filepath.Dir(c.hold), "store")
	check(t, os.RemoveAll(c.path(".benchgraph")), os.RemoveAll(store), os.Mkdir(store, 0o755))
}

func newClustered(t testing.TB, file string) *clustered {
	t.Helper()
	return newClusteredOf(t, slurmtest.Nodes{Count: 2}, file)
}

// newClusteredOf is newClustered with other nodes. Workers use the disks of those that have their own.
func newClusteredOf(t testing.TB, nodes slurmtest.Nodes, file string) *clustered {
	t.Helper()
	c := &clustered{world: newWorld(t, "")}
	nodes.GPUs, nodes.Hides = 4, c.path(".")
	c.Cluster = slurmtest.Start(t, nodes)
	library, err := nvmltest.Build(t.TempDir(), false)
	check(t, err)
	shared, err := os.MkdirTemp("/srv", "benchgraph-test-") // /tmp is hidden in a sandbox anyway
	check(t, err)
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+w", shared).Run(); _ = os.RemoveAll(shared) })
	program, err := exec.LookPath("benchgraph")
	check(t, err)
	for i := range nodes.Count {
		node := fmt.Sprintf("n%d", i+1)
		played := filepath.Join(shared, node)
		check(t, os.WriteFile(played, []byte(nvmltest.Scenario(node, "NVIDIA_H200", 143771, 4)), 0o644))
		profile := []string{"BENCHGRAPH_NVML=" + library, "NVML_SCENARIO=" + played,
			"BENCHGRAPH_HOST_LOCK=" + played + ".lock", "BENCHGRAPH_CACHE_DIR=" + played + ".store"}
		if nodes.Disk != "" {
			profile = append(profile, "TMPDIR="+nodes.Disk, "BENCHGRAPH_CACHE_DIR="+filepath.Join(nodes.Disk, "store"))
		}
		c.Profile(node, profile...)
	}
	c.world.env = append(c.world.env, c.Environ()...)
	c.world.env = append(c.world.env, "PATH="+os.Getenv("PATH"))
	check(t, os.MkdirAll(c.path("machines"), 0o755), os.Mkdir(filepath.Join(shared, "store"), 0o755))
	c.hold, c.work = filepath.Join(shared, "hold"), filepath.Join(shared, "jobs")
	c.write("benchmarks.hcl", strings.NewReplacer("SHARED", filepath.Join(shared, "store"), "PROGRAM", program,
		"WORK", c.work, "RATE", rate, "HOLD", "while [ -e "+c.hold+" ]; do sleep 0.05; done").Replace(file))
	// A job makes the description of a node, as the documentation says.
	describe := c.Command("srun", "--gpus=4", program, "devices", "-json")
	c.write("machines/h200.json", describe)
	return c
}

const measuredFile = clusterFile + `
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
  command  = <<-EOT
    sample $(case $(cat in) in *fast) echo 200;; *) echo 100;; esac) 0.01
    echo devices $CUDA_VISIBLE_DEVICES
    HOLD
  EOT
  gpus { count = 2 }
  RATE
  design { samples = 4 }
}
compare "speed" { of = [benchmark.speed] }
`

// jobs returns the states of the jobs that the cluster has had, by number.
func (c *clustered) jobs() []string {
	c.t.Helper()
	var states []string
	for line := range strings.Lines(c.Command("squeue", "-h", "-a", "-t", "all", "-S", "i", "-o", "%T %j")) {
		if state, name, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(name, "benchgraph_") {
			states = append(states, state)
		}
	}
	return states
}

// jobIs waits until the last job is in a state.
func (c *clustered) jobIs(state string) {
	c.t.Helper()
	until(c.t, "a job is "+state, func() bool {
		all := c.jobs()
		return len(all) > 0 && all[len(all)-1] == state
	})
}

// The nodes of a cluster measure the blocks that the machine of the project cannot.
func TestACampaignOnSlurm(t *testing.T) {
	t.Parallel()
	c := newClustered(t, measuredFile)
	o := c.must(0, "plan")
	o.says(t, "Planned for machine h200", "4 of these nodes run as jobs of executor gpu, at most 4 at once")
	o = c.must(0, "apply")
	o.says(t, " is submitted", "win", "Apply: 9 done")
	if n := len(c.jobs()); n != 4 {
		t.Errorf("%d jobs for four blocks", n)
	}
	for _, a := range c.attempts() {
		if a.Duration <= 0 || a.Duration > time.Minute {
			t.Errorf("attempt %s took %s", a.Address, a.Duration)
		}
		if !strings.Contains(a.Hardware, ", 2 × NVIDIA H200") {
			t.Errorf("attempt %s ran on %q", a.Address, a.Hardware)
		}
	}
	c.must(0, "plan").says(t, "Plan: 0 to run")
	c.must(0, "apply").says(t, "Apply: 0 done, 9 cached")
	c.must(0, "logs", `trial.speed["c#2"]`).says(t, "job ", "block 2: base")
	var trial struct {
		Record struct {
			Class struct {
				GPUs []struct{ Name string } `json:"gpus"`
			} `json:"hardware_class"`
		} `json:"record"`
	}
	c.json(&trial, "show", "-json", `trial.speed["c#2"]`)
	if gpus := trial.Record.Class.GPUs; len(gpus) != 1 || gpus[0].Name != "NVIDIA H200" {
		t.Errorf("a block was measured on %v", gpus)
	}
	for _, dir := range []string{c.work, filepath.Join(filepath.Dir(c.hold), "store", "jobs", "*"),
		c.path(".benchgraph", "submitted")} {
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		if check(t, err); len(left) > 0 {
			t.Errorf("%s is left of a job", left[0])
		}
	}
	// A node that has a result in its own store shares it again.
	c.forget(t)
	c.must(0, "apply").says(t, "Apply: 9 done")
	// Another project directory has what the first one shared.
	other := newWorld(t, "")
	other.env = c.world.env
	for _, name := range []string{"benchmarks.hcl", "machines/h200.json"} {
		text, err := os.ReadFile(c.path(name))
		check(t, err)
		other.write(name, string(text))
	}
	other.must(0, "apply").says(t, "Apply: 0 done, 9 cached")
}

// attempts returns the attempts at the four blocks in the journal.
func (c *clustered) attempts() (all []journal.Attempt) {
	c.t.Helper()
	j, err := journal.Open(c.path(".benchgraph", "journal"))
	check(c.t, err)
	defer j.Close()
	for i := range 4 {
		all = append(all, j.Attempts(fmt.Sprintf("trial.speed[\"c#%d\"]", i+1))...)
	}
	return all
}

// The time that a job is queued does not count as time of the node: status shows that the node waits, and the journal
// has the two times apart. GPU hours are those of jobs, even if a job ends before the queue was asked.
func TestQueueTimeIsApart(t *testing.T) {
	t.Parallel()
	c := newClustered(t, measuredFile)
	blocker := strings.TrimSpace(c.Command("sbatch", "--parsable", "--output=/dev/null", "--nodes=2", "--exclusive",
		"--wrap=sleep 600"))
	until(t, "the cluster is busy", func() bool { return c.Command("squeue", "-h", "-t", "RUNNING", "-o", "%i") != "" })
	cmd := c.command("apply")
	done := make(chan outcome, 1)
	go func() { done <- c.finish(cmd) }()
	c.jobIs("PENDING")
	until(t, "status shows the wait", func() bool {
		o := c.must(0, "status")
		return strings.Contains(o.stdout, "  waiting: job ") && strings.Contains(o.stdout, " waiting")
	})
	time.Sleep(2 * time.Second)
	c.Command("scancel", blocker)
	o := <-done
	o.exits(t, 0)
	o.says(t, "waiting: job ", "queued for ", "win")
	queued := 0
	for _, a := range c.attempts() {
		if a.Queued > 2*time.Second && a.Duration > 0 && a.Duration < a.Queued+time.Minute {
			queued++
		}
	}
	if queued == 0 {
		t.Errorf("no attempt was queued: %+v", c.attempts())
	}
	// Two devices for any second are more than this.
	c.forget(t)
	c.must(6, "apply", "-max-gpu-hours=0.00001").says(t, "-max-gpu-hours 1e-05 is used up")
}

// A killed apply leaves its job in the queue, and the next apply follows that job.
func TestAJobIsFoundAgain(t *testing.T) {
	t.Parallel()
	c := newClustered(t, measuredFile)
	check(t, os.WriteFile(c.hold, nil, 0o644))
	cmd := c.command("apply")
	check(t, cmd.Start())
	c.jobIs("RUNNING")
	check(t, cmd.Process.Kill())
	_ = cmd.Wait()
	time.AfterFunc(2*time.Second, func() { _ = os.Remove(c.hold) })
	c.must(0, "apply").says(t, " was submitted before", "win")
	if all := c.jobs(); len(all) != 4 {
		t.Errorf("jobs %v for four blocks", all)
	}
}

// apply -detach returns when only jobs are left, which go on. The next apply takes their results and failures.
func TestDetach(t *testing.T) {
	t.Parallel()
	c := newClustered(t, measuredFile)
	check(t, os.WriteFile(c.hold, nil, 0o644))
	o := c.must(0, "apply", "-detach")
	o.says(t, "1 job goes on without this apply; benchgraph apply follows it", "Apply: 2 done, 7 not run")
	if strings.Contains(o.stderr+o.stdout, "interrupted") {
		t.Errorf("a job that goes on is told as interrupted:\n%s", o.stderr)
	}
	c.must(0, "apply", "-detach").says(t, "was submitted before", "1 job goes on")
	over := func() {
		check(t, os.Remove(c.hold))
		until(t, "all jobs are over", func() bool { return c.Command("squeue", "-h", "-o", "%i") == "" })
	}
	over()
	c.must(0, "apply").says(t, "win", "Apply: 6 done, 3 cached")
	if all := c.jobs(); len(all) != 4 {
		t.Errorf("jobs %v for four blocks", all)
	}
}

// apply removes objects that jobs have left if no node has their key, or if their project is gone. It keeps those of
// queued jobs and of another checkout.
func TestLeftoversOfJobs(t *testing.T) {
	t.Parallel()
	c := newClustered(t, measuredFile)
	check(t, os.WriteFile(c.hold, nil, 0o644))
	c.must(0, "apply", "-detach")
	dirs := func() []string {
		all, err := filepath.Glob(filepath.Join(c.work, "*"))
		check(t, err)
		return all
	}
	running := dirs()
	if len(running) != 1 {
		t.Fatalf("directories %v of one job", running)
	}
	project, err := os.ReadFile(filepath.Join(running[0], "project"))
	check(t, err)
	yesterday := time.Now().Add(-25 * time.Hour)
	// leave makes the directory of a job of another project.
	leave := func(name, state string, at time.Time) string {
		t.Helper()
		dir := filepath.Join(c.work, name)
		check(t, os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "project"),
			[]byte(strings.ReplaceAll(string(project), c.path(".benchgraph"), state)), 0o600), os.Chtimes(dir, at, at))
		return dir
	}
	_, owner, _ := strings.Cut(filepath.Base(running[0]), ":") // with the end of the name
	stale := strings.Repeat("0", 64)
	gone := leave(stale+":00000000.job", "/nowhere/at/all", yesterday)
	young := leave(stale+":00000001.job", "/nowhere/at/all", time.Now())
	other := leave(stale+":00000002.job", c.path(), yesterday)
	foreign := filepath.Join(c.work, "notes")
	check(t, os.Mkdir(foreign, 0o700), os.Chtimes(foreign, yesterday, yesterday))
	// The block has changed: nobody waits for the job, which runs.
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(t, err)
	c.write("benchmarks.hcl", strings.Replace(string(text), "sample $(", "true; sample $(", 1))
	c.must(0, "apply", "-detach")
	now := dirs()
	for dir, stays := range map[string]bool{gone: false, young: true, other: true, foreign: true, running[0]: true} {
		if slices.Contains(now, dir) != stays {
			t.Errorf("%s stays: %v", dir, !stays)
		}
	}
	check(t, os.Remove(c.hold))
	until(t, "all jobs are over", func() bool { return c.Command("squeue", "-h", "-o", "%i") == "" })
	c.must(0, "apply")
	for _, dir := range dirs() {
		if strings.HasSuffix(dir, owner) {
			t.Errorf("%s is left", dir)
		}
	}
	// The failure of a block that has a result by now is not needed.
	var plan struct {
		Nodes []struct{ Address, Key string }
	}
	c.json(&plan, "plan", "-json")
	failed := filepath.Join(filepath.Dir(c.hold), "store", "jobs", strings.TrimSuffix(owner, ".job"))
	check(t, os.MkdirAll(failed, 0o755))
	for _, n := range plan.Nodes {
		if n.Address == `trial.speed["c#1"]` {
			failed = filepath.Join(failed, n.Key+".json")
		}
	}
	check(t, os.WriteFile(failed, []byte(`{"failure": {"class": "infra", "message": "the disk is full"}}`), 0o644))
	c.must(0, "apply")
	if fileExists(failed) {
		t.Errorf("%s is left", failed)
	}
}

// A candidate that fails while no apply follows its job has failed, and costs no other job.
func TestAFailureWhileDetached(t *testing.T) {
	t.Parallel()
	c := newClustered(t, strings.NewReplacer("HOLD\n", "HOLD\n! grep -q fast in || { echo no such kernel; exit 3; }\n",
		"samples = 4", "samples = 1").Replace(measuredFile))
	check(t, os.WriteFile(c.hold, nil, 0o644))
	c.must(0, "apply", "-detach").says(t, "1 job goes on")
	check(t, os.Remove(c.hold))
	until(t, "the job is over", func() bool { return c.Command("squeue", "-h", "-o", "%i") == "" })
	c.must(3, "apply").says(t, "= 1 failed", "no such kernel")
	if all := c.jobs(); len(all) != 1 {
		t.Errorf("jobs %v for one block", all)
	}
}

// Jobs that end again and again while no apply follows them are a failure, and cost no further job.
func TestJobsThatEndUnseen(t *testing.T) {
	t.Parallel()
	c := newClustered(t, measuredFile)
	check(t, os.WriteFile(c.hold, nil, 0o644))
	for range 3 {
		c.must(0, "apply", "-detach").says(t, "1 job goes on")
		c.Command("scancel", strings.TrimSpace(c.Command("squeue", "-h", "-o", "%i")))
		until(t, "the job is over", func() bool { return c.Command("squeue", "-h", "-o", "%i") == "" })
	}
	check(t, os.Remove(c.hold))
	c.must(3, "apply").says(t, "3 jobs in a row ended without a result, while no apply followed them")
	if all := c.jobs(); len(all) != 3 {
		t.Errorf("jobs %v", all)
	}
	c.must(0, "apply").says(t, "win")
}

// A job asks for a time limit that is derived from the timeouts. A job that reaches the limit is followed by a job
// without one. If the cluster refuses the limit, the next job asks for none.
func TestDerivedTimeLimits(t *testing.T) {
	t.Parallel()
	c := newClustered(t, strings.Replace(measuredFile, "gpus { count", "timeout = \"5m\"\n  gpus { count", 1))
	limits := func() string { return strings.TrimSpace(c.Command("squeue", "-h", "-t", "RUNNING", "-o", "%i %l")) }
	check(t, os.WriteFile(c.hold, nil, 0o644))
	cmd := c.command("apply")
	done := make(chan outcome, 1)
	go func() { done <- c.finish(cmd) }()
	c.jobIs("RUNNING")
	first, limit, _ := strings.Cut(limits(), " ")
	if limit != "25:00" {
		t.Errorf("the limit of the first job is %s", limit)
	}
	c.EndNow(first)
	until(t, "another job runs", func() bool {
		got := limits()
		return got != "" && !strings.HasPrefix(got, first+" ")
	})
	if got := limits(); strings.HasSuffix(got, " 25:00") {
		t.Errorf("the limit of the second job: %s", got)
	}
	check(t, os.Remove(c.hold))
	o := <-done
	o.exits(t, 0)
	o.says(t, "is submitted, with a time limit of 25m", "reached the time limit of 25m that benchgraph derived",
		"the next job asks for none", "win")
	c.forget(t)
	c.Command("scontrol", "update", "partitionname=gpu", "MaxTime=10")
	c.must(0, "apply").says(t, "the cluster does not take the derived time limit; the next jobs ask for none")
}

// An apply that is interrupted cancels its jobs, and says so: a second interrupt would leave them.
func TestAnInterruptCancelsJobs(t *testing.T) {
	t.Parallel()
	c := newClustered(t, measuredFile)
	check(t, os.WriteFile(c.hold, nil, 0o644))
	cmd := c.command("apply")
	var said strings.Builder
	cmd.Stderr = &said
	check(t, cmd.Start())
	c.jobIs("RUNNING")
	check(t, cmd.Process.Signal(syscall.SIGINT))
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(said.String(), "is being cancelled") {
		t.Errorf("exit code %d, %s", code, said.String())
	}
	if all := c.jobs(); len(all) != 1 || all[0] != "CANCELLED" {
		t.Errorf("jobs %v", all)
	}
	check(t, os.Remove(c.hold))
	c.must(0, "apply").says(t, "win")
}

// A node that fails loses its job, and another job measures the block.
func TestANodeFails(t *testing.T) {
	t.Parallel()
	c := newClustered(t, measuredFile)
	check(t, os.WriteFile(c.hold, nil, 0o644))
	cmd := c.command("apply")
	done := make(chan outcome, 1)
	go func() { done <- c.finish(cmd) }()
	c.jobIs("RUNNING")
	node := strings.TrimSpace(c.Command("squeue", "-h", "-o", "%N"))
	c.Kill(node)
	check(t, os.Remove(c.hold))
	c.Fail(node)
	o := <-done
	o.exits(t, 0)
	o.says(t, "ended as NODE_FAIL on "+node, "attempt 2", "win")
}

// A candidate that fails on a node is the candidate's failure, and is not tried again.
func TestACandidateFailsOnANode(t *testing.T) {
	t.Parallel()
	c := newClustered(t, strings.Replace(measuredFile, "sample $(",
		"! grep -q fast in || { echo no such kernel; exit 3; }; sample $(", 1))
	c.must(3, "apply").says(t, "= 1 failed", "no such kernel")
	before := len(c.jobs())
	c.must(3, "apply")
	if now := len(c.jobs()); now != before {
		t.Errorf("%d more jobs for a known failure", now-before)
	}
}

// A job whose setup fails measures nothing.
func TestAFailingSetup(t *testing.T) {
	t.Parallel()
	c := newClustered(t, strings.Replace(measuredFile, "max_jobs = 4",
		"max_jobs = 4\n  setup = \"no-such-module load cuda\\necho loaded\"", 1))
	o := c.must(3, "apply")
	o.says(t, "a line of setup ended with exit status 127", "no-such-module", "correct setup in the executor block gpu")
	o.saysNot(t, "loaded")
	c.must(0, "plan").says(t, "4 of these nodes run as jobs") // the block works on a cluster that has the module
}

// A plan is refused before any build if its jobs ask for more than a node has, or if their directory or the shared
// store cannot be used.
func TestJobsThatCannotBe(t *testing.T) {
	t.Parallel()
	c := newClustered(t, strings.NewReplacer("cpus     = 1", "cpus     = 4000", `work_dir = "WORK"`,
		`work_dir = "/proc/nope"`).Replace(measuredFile))
	c.must(0, "plan").says(t, "jobs of executor gpu ask for 4000 cores, and a node has ")
	c.must(1, "apply").says(t, "executor gpu: work_dir: mkdir /proc/nope", "Name a directory in which")
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(t, err, os.Mkdir(c.work, 0o700), os.Chmod(c.work, 0o777))
	c.write("benchmarks.hcl", strings.Replace(string(text), "/proc/nope", c.work, 1))
	c.must(1, "apply").says(t, "others can write to "+c.work+" (mode 0777)", "or group (chmod go-w, or +t)")
	check(t, os.Chmod(c.work, 0o775))
	c.must(1, "apply").says(t, "its group can write to "+c.work+" (mode 0775)", "(chmod go-w, or +t)")
	check(t, os.Chmod(c.work, 0o700))
	c.write("benchmarks.hcl", strings.NewReplacer("/proc/nope", c.work, "file://", "file:///proc/nope").
		Replace(string(text)))
	c.must(1, "apply").says(t, "executor gpu: its jobs need the shared store file:///proc/nope", "Correct url")
	if n := len(c.attempts()); n != 0 {
		t.Errorf("%d nodes ran", n)
	}
}

// A node of another class than the described one measures nothing.
func TestANodeOfAnotherClass(t *testing.T) {
	t.Parallel()
	c := newClustered(t, measuredFile)
	text, err := os.ReadFile(c.path("machines", "h200.json"))
	check(t, err)
	c.write("machines/h200.json", strings.ReplaceAll(string(text), "NVIDIA H200", "NVIDIA H100"))
	c.must(3, "apply").says(t, "this machine is no h200", "Describe the nodes of the cluster anew")
	if n := len(c.jobs()); n != 1 {
		t.Errorf("%d jobs were submitted", n)
	}
}

// commit makes the repo app of the project, with one file.
func (c *clustered) commit(name, text string) {
	c.t.Helper()
	c.write("app/"+name, text)
	c.git("init", "-q", "-b", "main")
	c.git("add", ".")
	c.git("commit", "-qm", "first")
}

// patch returns the patch that changes a file of the repo app to another text.
func (c *clustered) patch(name, text string) string {
	c.t.Helper()
	c.write("app/"+name, text)
	patch := c.git("diff")
	c.git("checkout", "-q", ".")
	return patch
}

// git runs git in the directory app of the project.
func (c *clustered) git(args ...string) string {
	c.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", c.path("app")}, args...)...)
	cmd.Env = c.world.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// The worker gets the tree that a block needs, from a repo that no node sees. A command in the sandbox sees neither the
// project, nor the requests of jobs, nor a store. The command gets its secret, which neither Slurm nor the store has.
func TestASandboxOnANode(t *testing.T) {
	t.Parallel()
	if err := executor.CheckSandbox(); err != nil {
		t.Skip(err)
	}
	c := newClustered(t, strings.NewReplacer(`sandbox = "none"`, "", `commit "c" {}`, "").Replace(clusterFile)+`
repo "app" { path = "app" }
commit "main" { repo = repo.app }
variant "base" { baseline = true }
variant "same" {}
benchmark "speed" {
  for_each = candidates
  client   = "main"
  executor = executor.slurm.gpu
  secrets  = ["TOKEN"]
  command  = <<-EOT
    cat client
    test "$(printf %s "$TOKEN" | rev)" = eueuq-eht-morf-neddih
    for hidden in HIDDEN; do ! ls $hidden || { echo "$hidden is there" >&2; exit 1; }; done
    echo "work done: 1$(date +%N) items/s"
  EOT
  RATE
  design { samples = 2 }
}
compare "speed" { of = [benchmark.speed] }
`)
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(t, err)
	hidden := c.path("machines") + " " + c.work + "/* " + filepath.Dir(c.hold) + "/store/*"
	c.write("benchmarks.hcl", strings.ReplaceAll(string(text), "HIDDEN", hidden))
	c.commit("client", "the client\n")
	c.world.env = append(c.world.env, "TOKEN=hidden-from-the-queue")
	c.must(0, "apply")
	c.must(0, "logs", `trial.speed["main#2"]`).says(t, "the client")
	c.must(0, "plan").says(t, "Plan: 0 to run")
	found := exec.Command("grep", "-r", "-l", "hidden-from-the-queue", filepath.Join(filepath.Dir(c.hold), "store"))
	if out, _ := found.CombinedOutput(); found.ProcessState.ExitCode() != 1 {
		t.Errorf("the shared store has the secret: %s", out)
	}
}

// BenchmarkNodeOnSlurm measures one block on a cluster, and for comparison a job that does nothing: it is submitted,
// and looked for in the queue every 20 ms until it has ended.
func BenchmarkNodeOnSlurm(b *testing.B) {
	n := max(b.N, 4)
	fewer := strings.NewReplacer("max_jobs = 4", "max_jobs = 1", "samples = 4", fmt.Sprint("samples = ", n))
	c := newClustered(b, fewer.Replace(measuredFile))
	c.patience = time.Hour
	per := func(begun time.Time) float64 { return float64(time.Since(begun).Milliseconds()) / float64(n) }
	begun := time.Now()
	c.must(0, "apply")
	b.ReportMetric(per(begun), "ms/node")
	begun = time.Now()
	for range n {
		id := strings.TrimSpace(c.Command("sbatch", "--parsable", "--output=/dev/null", "--gpus=2", "--wrap=true"))
		for c.Command("squeue", "-h", "-t", "PENDING,RUNNING,COMPLETING", "-j", id) != "" {
			time.Sleep(20 * time.Millisecond)
		}
	}
	b.ReportMetric(per(begun), "ms/job")
	b.ReportMetric(0, "ns/op")
}
