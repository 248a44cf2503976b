//go:build linux && faults

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/benchgraph/benchgraph/executor/slurm/slurmtest"
)

// broken is a campaign of 202 nodes; 100 of them are blocks. RAN gets a line with the number of each sample, so that a
// number in a report identifies its run. The last commit runs until nothing breaks any more.
const broken = `
benchgraph {
  sandbox = "none"
  STORE
}
EXECUTOR
COMMITS
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
    key=$(cat in)
    PAUSE
    head -c 200000 /dev/urandom | base64 -w 0; echo
    case $key in LAST) HOLD ;; esac
    rate=$(case $key in *fast) echo 200;; *) echo 100;; esac).$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
    echo "$key $rate" >>RAN
    echo "work done: $rate"
  EOT
  GPUS
  RATE
  design { looks = [4] }
}
compare "speed" { of = [benchmark.speed] }
report "speed" {
  of      = [compare.speed]
  formats = ["json"]
}
`

// brokenCommits returns the blocks of the commits, and a pattern of sh for the candidates of the last ones.
func brokenCommits() (blocks, last string) {
	for i := range 25 {
		blocks += fmt.Sprintf("commit \"c%02d\" {}\n", i+1)
	}
	return blocks, "c2[2-5]/*"
}

// outlet is the way to a server. It can be broken in the middle of a transfer.
type outlet struct {
	net.Listener
	to    string // address of the server
	armed atomic.Bool
	away  atomic.Bool

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// newOutlet returns a way to an address, from another one.
func newOutlet(t *testing.T, at, to string) *outlet {
	t.Helper()
	l, err := net.Listen("tcp", at)
	check(t, err)
	o := &outlet{Listener: l, to: to, conns: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = l.Close(); o.close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go o.serve(conn)
		}
	}()
	return o
}

// enough is a number of bytes in the middle of an upload.
const enough = 100_000

func (o *outlet) serve(conn net.Conn) {
	defer conn.Close()
	if o.away.Load() {
		return
	}
	server, err := net.Dial("tcp", o.to)
	if err != nil {
		return
	}
	defer server.Close()
	o.mu.Lock()
	o.conns[conn] = true
	o.mu.Unlock()
	go func() {
		_, _ = io.Copy(conn, server)
		conn.Close()
	}()
	buf, sent := make([]byte, 32<<10), 0
	for {
		n, err := conn.Read(buf)
		if !o.armed.Load() {
			sent = 0
		}
		if sent += n; sent > enough && o.armed.CompareAndSwap(true, false) {
			o.away.Store(true)
			o.close()
			return
		}
		if _, failed := server.Write(buf[:n]); err != nil || failed != nil {
			break
		}
	}
	o.mu.Lock()
	delete(o.conns, conn)
	o.mu.Unlock()
}

// close breaks all connections.
func (o *outlet) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for conn := range o.conns {
		conn.Close()
	}
	clear(o.conns)
}

// breaking is a project on a cluster in which things break.
type breaking struct {
	*clustered
	random *rand.Rand
	store  *outlet
	bucket *s3mem.Backend
	worlds []*world // checkouts of the project
	at     int      // the one that applies
	apply  *exec.Cmd
	ended  chan error
	said   *lockedBuffer // by the apply
	tally  map[string]int
}

// TestFaultCluster measures a campaign on a cluster where everything breaks that can: nodes, their network, the
// controller, jobs, the store, and the apply itself. Nothing is lost, each sample counts once and only if it was taken,
// and nothing is left behind.
func TestFaultCluster(t *testing.T) {
	t.Parallel()
	first := cmp.Or(*seed, uint64(time.Now().UnixNano()))
	t.Logf("go test -tags faults -run TestFaultCluster ./cmd/benchgraph -seed %d", first)
	b := newBreaking(t, rand.New(rand.NewPCG(first, 2)))
	want := b.undisturbed()
	check(t, os.WriteFile(b.hold, nil, 0o644))
	b.start()
	faults := b.faults()
	for range 2 {
		for _, i := range b.random.Perm(len(faults)) {
			b.pause(3 * time.Second)
			t.Logf("%s: %s", time.Now().Format(time.TimeOnly), faults[i].name)
			faults[i].happens()
			// Slurm 22.05 counts devices of a node that was lost, or whose controller was killed, as used for ever.
			b.Command("scontrol", "reconfigure")
			b.goesOn()
		}
	}
	check(t, os.Remove(b.hold))
	b.ends()
	b.at = 0
	here := b.holds(want)
	b.at = 1
	if there := b.holds(want); fmt.Sprint(there) != fmt.Sprint(here) {
		t.Errorf("two checkouts report %v\nand %v", here, there)
	}
	b.nothingIsLeft()
	t.Logf("%v", b.tally)
}

func newBreaking(t *testing.T, random *rand.Rand) *breaking {
	t.Helper()
	commits, last := brokenCommits()
	file := strings.NewReplacer("COMMITS", commits, "LAST", last, "PAUSE", "sleep 0.4").Replace(broken)
	executor := strings.Replace(served, "max_jobs = 4", "max_jobs = 8", 1)
	b := newServed(t, 4, strings.Replace(file, "EXECUTOR", executor, 1))
	b.random = random
	other := newWorld(t, "")
	other.env, other.patience = b.world.env, b.world.patience
	for _, name := range []string{"benchmarks.hcl", "machines/h200.json"} {
		text, err := os.ReadFile(b.path(name))
		check(t, err)
		other.write(name, string(text))
	}
	b.worlds = append(b.worlds, other)
	return b
}

// served has the blocks of the executor and its machine, with a store on a server.
var served = strings.Replace(clusterFile[strings.Index(clusterFile, "machine "):strings.Index(clusterFile, "commit ")],
	"max_jobs = 4", "max_jobs = 4\n  setup    = \"export AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret\"", 1)

// newServed is a project on a cluster of some nodes, with a store on a server that can go away.
func newServed(t *testing.T, nodes int, file string) *breaking {
	t.Helper()
	b := &breaking{clustered: newClusteredOf(t, slurmtest.Nodes{Count: nodes}, file), tally: map[string]int{}}
	b.world.patience, b.worlds = 10*time.Minute, []*world{b.world}
	b.bucket = s3mem.New()
	check(t, b.bucket.CreateBucket("team"))
	server := httptest.NewUnstartedServer(gofakes3.New(b.bucket, gofakes3.WithTimeSkewLimit(0)).Server())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	b.store = newOutlet(t, b.Gateway()+":0", server.Listener.Addr().String())
	b.world.env = append(b.world.env, "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret")
	text, err := os.ReadFile(b.path("benchmarks.hcl"))
	check(t, err)
	b.write("benchmarks.hcl", strings.NewReplacer("RAN", b.beside("ran"), "GPUS", "gpus { count = 2 }", "STORE",
		"store {\n    url = \"s3://team/results\"\n    endpoint = \"http://"+b.store.Addr().String()+"\"\n  }").
		Replace(string(text)))
	return b
}

// If a store goes away in the middle of an upload, for longer than a request is repeated, only time is lost. The worker
// puts its result there when the store is back, and the apply waits for the store before it judges a job or submits
// one.
func TestFaultStoreIsAway(t *testing.T) {
	t.Parallel()
	// No block ends before both have their inputs: a node cannot get them from a store that is away.
	both := "echo >>RAN.begun; until [ $(wc -l <RAN.begun) -ge 2 ]; do sleep 0.02; done"
	file := strings.NewReplacer("COMMITS", "commit \"a\" {}\ncommit \"b\" {}\n", "LAST", "none", "PAUSE", both,
		"EXECUTOR", served).Replace(broken)
	b := newServed(t, 2, file)
	b.store.armed.Store(true)
	b.start()
	until(t, "an upload", b.store.away.Load)
	until(t, "two blocks are measured", func() bool { return b.taken() >= 4 })
	jobs := strings.Fields(b.Command("squeue", "-h", "-S", "i", "-o", "%i"))
	b.Command("scancel", jobs[len(jobs)-1])
	until(t, "the apply waits", func() bool {
		return strings.Contains(b.said.String(), "the shared store cannot be used now; benchgraph asks again and again")
	})
	time.Sleep(20 * time.Second)
	b.store.away.Store(false)
	<-b.ended
	b.judge()
	if said := b.said.String(); !strings.Contains(said, "Apply: 18 done") || strings.Contains(said, "failed") {
		t.Errorf("it says:\n%s", said)
	}
	if n := b.taken(); n != 16 && n != 18 { // the node may have what the cancelled job measured
		t.Errorf("%d samples were taken of 8 blocks", n)
	}
	if r := b.world.told(); len(r.Samples) != 16 {
		t.Errorf("%d samples count", len(r.Samples))
	}
}

// taken returns how many samples were taken.
func (b *breaking) taken() int {
	text, _ := os.ReadFile(b.beside("ran"))
	return strings.Count(string(text), "\n")
}

// beside returns the path of a file that this machine and the nodes see.
func (b *breaking) beside(name string) string { return filepath.Join(filepath.Dir(b.hold), name) }

// row is the part of a candidate's row in a report that does not depend on noise.
type row struct {
	Candidate, Against, Metric, Outcome string
	Blocks                              int
}

// told is a report.
type told struct {
	Totals      map[string]int
	Comparisons []row
	Samples     []struct {
		Candidate string
		Block     int
		Value     float64
	}
}

func (w *world) told() (r told) {
	w.t.Helper()
	text, err := os.ReadFile(w.path("report", "report.json"))
	check(w.t, err, json.Unmarshal(text, &r))
	slices.SortFunc(r.Comparisons, func(a, b row) int { return strings.Compare(a.Candidate, b.Candidate) })
	return r
}

// undisturbed returns the report of the same campaign, measured on this machine, where nothing breaks.
func (b *breaking) undisturbed() told {
	b.t.Helper()
	commits, last := brokenCommits()
	w := newWorld(b.t, strings.NewReplacer("COMMITS", commits, "LAST", last, "HOLD", "true", "RATE", rate, "STORE", "",
		"EXECUTOR", "", "GPUS", "", "PAUSE", "", "RAN", "/dev/null").Replace(broken))
	w.patience = b.world.patience
	w.must(0, "apply")
	return w.told()
}

// start starts an apply.
func (b *breaking) start() {
	b.t.Helper()
	b.said = &lockedBuffer{}
	b.apply = b.worlds[b.at].command("apply")
	b.apply.Stdout, b.apply.Stderr = b.said, b.said
	check(b.t, b.apply.Start())
	b.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(b.apply, b.ended)
}

// goesOn starts another apply if the last one has ended. An apply ends only because of a fault.
func (b *breaking) goesOn() {
	b.t.Helper()
	select {
	case <-b.ended:
		b.judge()
		b.start()
	default:
	}
}

// judge checks the end of an apply that nobody killed.
func (b *breaking) judge() {
	b.t.Helper()
	code := b.apply.ProcessState.ExitCode()
	b.tally[fmt.Sprintf("exit code %d", code)]++
	b.t.Logf("exit code %d:\n%s", code, b.said.String())
	if code != 3 && code != 0 {
		b.t.Errorf("exit code %d", code)
	}
}

// ends waits for the apply, and lets the next one do the rest.
func (b *breaking) ends() {
	b.t.Helper()
	<-b.ended
	b.judge()
	for _, w := range b.worlds {
		w.must(0, "apply")
	}
}

// holds makes sure that a checkout has the same results as the campaign where nothing breaks.
func (b *breaking) holds(want told) told {
	b.t.Helper()
	w := b.worlds[b.at]
	w.must(0, "apply").says(b.t, "Apply: 0 done")
	got := w.told()
	if fmt.Sprint(got.Totals) != fmt.Sprint(want.Totals) || !slices.Equal(got.Comparisons, want.Comparisons) {
		b.t.Errorf("%v %v\nwhere nothing breaks: %v %v", got.Totals, got.Comparisons, want.Totals, want.Comparisons)
	}
	ran, err := os.ReadFile(b.beside("ran"))
	check(b.t, err)
	taken, counted := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(ran)) {
		candidate, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		number, err := strconv.ParseFloat(value, 64)
		check(b.t, err)
		taken[fmt.Sprint(candidate, " ", number)] = true
	}
	b.tally["samples"], b.tally["samples taken"] = len(got.Samples), len(taken)
	for _, s := range got.Samples {
		if of := fmt.Sprint(s.Candidate, " ", s.Value); !taken[of] {
			b.t.Errorf("%s counts, and was not taken, or counts twice", of)
		} else {
			delete(taken, of)
		}
		counted[fmt.Sprint(s.Candidate, " ", s.Block)] = true
	}
	if len(got.Samples) != len(want.Samples) || len(counted) != len(want.Samples) {
		b.t.Errorf("%d samples of %d members of blocks; where nothing breaks: %d", len(got.Samples), len(counted),
			len(want.Samples))
	}
	w.verify()
	return got
}

// nothingIsLeft makes sure that jobs are over, and have left nothing.
func (b *breaking) nothingIsLeft() {
	b.t.Helper()
	until(b.t, "no job is left", func() bool {
		out, err := b.try("squeue", "-h", "-o", "%i")
		return err == nil && out == ""
	})
	for _, w := range b.worlds {
		w.must(0, "apply").says(b.t, "Apply: 0 done")
	}
	for _, dir := range []string{b.work, b.worlds[0].path(".benchgraph", "again"),
		b.worlds[1].path(".benchgraph", "again")} {
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			b.t.Errorf("%s is left of a job", left[0])
		}
	}
	list, err := b.bucket.ListBucket("team", &gofakes3.Prefix{HasPrefix: true, Prefix: "results/jobs/"},
		gofakes3.ListBucketPage{})
	check(b.t, err)
	for _, o := range list.Contents {
		b.t.Errorf("%s is left in the store", o.Key)
	}
	if left := b.processes(); len(left) > 0 {
		b.t.Errorf("still running: %q", left)
	}
	for i := range 4 {
		w := *b.world
		w.env = append(slices.Clone(w.env), "BENCHGRAPH_CACHE_DIR="+b.beside(nodeOf(i)+".store"))
		w.verify()
	}
}

// processes returns the processes of jobs: the nodes give each a variable with the name of the shared directory.
func (b *breaking) processes() (all []string) {
	files, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range files {
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		argv, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if bytes.Contains(append(environ, argv...), []byte(filepath.Dir(b.hold))) {
			all = append(all, strings.ReplaceAll(string(argv), "\x00", " "))
		}
	}
	return all
}

func nodeOf(i int) string { return fmt.Sprintf("n%d", i+1) }

// fault is a fault that mends itself.
type fault struct {
	name    string
	happens func()
}

func (b *breaking) faults() []fault {
	return []fault{
		{"a node dies", b.kill},
		{"a node is cut off", b.cutOff},
		{"a node is drained", func() {
			node := b.node()
			b.Drain(node)
			b.pause(3 * time.Second)
			b.resume(node)
		}},
		{"the controller dies after a submission", func() {
			before := strings.Count(b.said.String(), " is submitted")
			b.within(3*time.Second, func() bool { return strings.Count(b.said.String(), " is submitted") > before })
			b.KillController()
			b.pause(3 * time.Second)
			b.StartController()
		}},
		{"the controller is away", func() {
			b.StopController()
			b.pause(10 * time.Second)
			b.StartController()
		}},
		{"a job is cancelled", func() {
			if id := b.job("PENDING,RUNNING"); id != "" {
				_, _ = b.try("scancel", id) // it may be over by now
			}
		}},
		{"the time of a job is over", func() {
			if id := b.job("RUNNING"); id != "" {
				_, _ = b.try("scontrol", "update", "jobid="+id, "EndTime=now+1")
			}
		}},
		{"the store is away in the middle of an upload", b.breakUpload},
		{"the apply dies", func() { b.killApply(b.at) }},
		{"the apply dies, and goes on elsewhere", func() { b.killApply(1 - b.at) }},
	}
}

// pause waits for up to a time.
func (b *breaking) pause(most time.Duration) { time.Sleep(time.Duration(b.random.Int64N(int64(most)))) }

// within waits for an event, and reports whether it came.
func (b *breaking) within(d time.Duration, is func() bool) bool {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return false
}

// node returns a node on which a job runs, or any node if no job runs.
func (b *breaking) node() string {
	out, _ := b.try("squeue", "-h", "-t", "RUNNING", "-o", "%N")
	if nodes := strings.Fields(out); len(nodes) > 0 {
		return nodes[b.random.IntN(len(nodes))]
	}
	return nodeOf(b.random.IntN(4))
}

// try runs a command of Slurm that may fail.
func (b *breaking) try(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = b.Environ()
	out, err := cmd.Output()
	return string(out), err
}

// job returns a job in one of some states; "" if there is none.
func (b *breaking) job(states string) string {
	out, _ := b.try("squeue", "-h", "-t", states, "-o", "%i")
	all := strings.Fields(out)
	if len(all) == 0 {
		b.tally["no job to break"]++
		return ""
	}
	slices.SortFunc(all, func(a, b string) int { return number(a) - number(b) })
	return all[b.random.IntN(min(len(all), 4))] // others are too short to be broken
}

func (b *breaking) kill() {
	node := b.node()
	b.Kill(node)
	if b.random.IntN(2) == 0 {
		b.Fail(node)
	}
	b.pause(4 * time.Second)
	b.Up(node)
}

func (b *breaking) cutOff() {
	node, fails := b.node(), b.random.IntN(2) == 0
	b.Cut(node)
	if fails {
		b.Fail(node)
	}
	b.pause(4 * time.Second)
	b.Join(node)
	if fails {
		b.resume(node)
	}
}

// resume brings a node back into use. A killed controller may have forgotten that the node is not in use.
func (b *breaking) resume(node string) {
	until(b.t, node+" is in use", func() bool {
		state, err := b.try("sinfo", "-h", "-n", node, "-o", "%T")
		if err == nil && !strings.ContainsAny(state, "*") && !strings.HasPrefix(state, "d") {
			return true
		}
		_, _ = b.try("scontrol", "update", "nodename="+node, "state=resume")
		return false
	})
}

func (b *breaking) breakUpload() {
	b.store.armed.Store(true)
	if !b.within(5*time.Second, b.store.away.Load) {
		b.store.armed.Store(false)
		b.tally["no upload to break"]++
		return
	}
	b.pause(15 * time.Second)
	b.store.away.Store(false)
}

// killApply kills the apply, and lets another checkout go on.
func (b *breaking) killApply(next int) {
	check(b.t, b.apply.Process.Kill())
	<-b.ended
	b.t.Logf("killed:\n%s", b.said)
	b.at = next
	b.start()
}
