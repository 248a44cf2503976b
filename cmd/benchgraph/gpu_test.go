//go:build linux && gpu

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/device/machine"
)

// The checks on real GPUs (docs/gpu.md). They are built into bin/gpu, which is carried to a machine with GPUs, and use
// only the command line of benchgraph. On a machine without a GPU they are skipped, or rehearsed: then two libraries
// and a script play the driver, so that the run tests the checks and no GPU.
var (
	gpuTools = flag.String("gpu.tools", "",
		"the directory with benchgraph and load; empty: this program is benchgraph, and load is compiled")
	gpuReport = flag.String("gpu.report", "",
		"the directory to which gpu.md and gpu.json are written; empty: nowhere")
	gpuRehearse = flag.String("gpu.rehearse", "",
		"stand in for GPUs that tell of processes by the numbers that they have here (self), by others (other), or "+
			"not at all (none)")
)

// gpuChecks are all the checks, in the order of docs/gpu.md.
var gpuChecks = []struct {
	name  string
	what  string
	about time.Duration // that it takes; what would not end in time is left out
	run   func(*gpuCheck)
}{
	{"inventory", "what benchgraph tells of the devices is what nvidia-smi tells", 20 * time.Second, checkInventory},
	{"masks", "CUDA_VISIBLE_DEVICES hides devices, by index, UUID and empty", 10 * time.Second, checkMasks},
	{"foreign", "a process of somebody else on a device is seen", 20 * time.Second, checkForeign},
	{"gate", "no lease is granted while it is there, and one is afterwards", 30 * time.Second, checkGate},
	{"measured", "two identical variants are measured on a lease of one device, watched, and neither wins",
		120 * time.Second, checkMeasured},
	{"intruder", "a process that appears during a sample voids the block, which is run again", 40 * time.Second,
		checkIntruder},
	{"left", "memory that is not free after a sample is told", 60 * time.Second, checkLeft},
	{"ledger", "three benchgraphs at once never give one device twice", 90 * time.Second, checkLedger},
	{"look", "what looking at the devices once a second costs", 30 * time.Second, checkLook},
	{"pytorch", "the same with matrices of PyTorch", 180 * time.Second, checkPyTorch},
}

// outcomes of a check.
const (
	gpuPassed  = "passed"
	gpuFailed  = "failed"
	gpuSkipped = "skipped"
)

// gpuCheck is a running check. Its messages are in the report, too.
type gpuCheck struct {
	*testing.T `json:"-"`
	*gpuSuite  `json:"-"`
	Name       string             `json:"name"`
	What       string             `json:"what"`
	Outcome    string             `json:"outcome"`
	Seconds    float64            `json:"seconds"`
	Said       []string           `json:"said"`
	Figures    map[string]float64 `json:"figures,omitempty"`
}

func (c *gpuCheck) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.Said = append(c.Said, text)
	c.T.Log(text)
}

// Errorf, Fatalf and Skipf are those of the test, and add to the report.
func (c *gpuCheck) Errorf(format string, args ...any) { c.T.Helper(); c.say(format, args...); c.Fail() }
func (c *gpuCheck) Fatalf(format string, args ...any) {
	c.T.Helper()
	c.say(format, args...)
	c.FailNow()
}
func (c *gpuCheck) Skipf(format string, args ...any) {
	c.T.Helper()
	c.say(format, args...)
	c.SkipNow()
}

// figure notes a number, with its unit in its name.
func (c *gpuCheck) figure(name string, value float64) {
	if c.Figures == nil {
		c.Figures = map[string]float64{}
	}
	c.Figures[name] = value
	c.say("%s: %.4g", name, value)
}

// gpuSuite has the data that the checks share, and becomes the report.
type gpuSuite struct {
	When      time.Time   `json:"when"`
	Rehearsed bool        `json:"rehearsed"` // with stand-ins: nothing here was seen on a GPU
	Version   string      `json:"version"`
	Machine   string      `json:"machine"`
	Driver    devicesDoc  `json:"driver"`
	Told      string      `json:"processes_told,omitempty"` // how the driver tells of processes
	Checks    []*gpuCheck `json:"checks"`
	env       []string    // of every process
	load      []string    // the words of a program that takes SECONDS and MIB; nil: none runs here
	loadless  string      // why our own does not
	startup   int         // seconds until it uses the device, at most
	rates     []float64   // GFLOP/s of load when nobody watched
	dir       string      // for files that projects share
	standIn   *gpuStandIn // in a rehearsal
	deadline  time.Time   // when there is no time for more
}

// devicesDoc is the output of devices -json.
type devicesDoc struct {
	Provider string      `json:"provider"`
	Reason   string      `json:"reason,omitempty"`
	Version  string      `json:"driver_version,omitempty"`
	CUDA     string      `json:"cuda_version,omitempty"`
	Hidden   int         `json:"hidden,omitempty"`
	Devices  []deviceDoc `json:"devices"`
}

// The ways in which a driver reports processes.
const (
	toldBySelf  = "by the numbers that they have here"
	toldByOther = "by numbers of another PID namespace"
	toldByNone  = "not at all"
)

func TestGPU(t *testing.T) {
	s := &gpuSuite{When: time.Now(), Rehearsed: *gpuRehearse != "", dir: t.TempDir()}
	if s.Rehearsed {
		s.standIn = newGPUStandIn(t)
		s.env = s.standIn.env
	}
	for _, name := range []string{"BENCHGRAPH_NVML", "LD_LIBRARY_PATH", "PYTHONPATH", "CUDA_VISIBLE_DEVICES",
		"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "NVIDIA_VISIBLE_DEVICES"} {
		if value, ok := os.LookupEnv(name); ok && !s.has(name) {
			s.env = append(s.env, name+"="+value)
		}
	}
	s.Driver = s.look(t)
	if len(s.Driver.Devices) == 0 {
		t.Skipf("no GPU: %s", s.Driver.Reason)
	}
	if d, ok := t.Deadline(); ok {
		s.deadline = d
	}
	s.Machine = machineText()
	s.Version = strings.TrimSpace(s.world(t, "").must(0, "version").stdout)
	s.findLoad(t)
	for _, check := range gpuChecks {
		t.Run(check.name, func(t *testing.T) {
			c := &gpuCheck{T: t, gpuSuite: s, Name: check.name, What: check.what, Said: []string{}}
			start := time.Now()
			t.Cleanup(func() {
				c.Outcome = gpuPassed
				if t.Skipped() {
					c.Outcome = gpuSkipped
				}
				if t.Failed() {
					c.Outcome = gpuFailed
				}
				c.Seconds = time.Since(start).Round(10 * time.Millisecond).Seconds()
				s.Checks = append(s.Checks, c)
				if err := s.write(); err != nil {
					t.Error(err)
				}
			})
			if left := time.Until(s.deadline); !s.deadline.IsZero() && left < check.about {
				c.Skipf("it takes about %v, and %v are left", check.about, left.Round(time.Second))
			}
			check.run(c)
		})
	}
}

// has reports whether the environment of every process sets a variable already.
func (s *gpuSuite) has(name string) bool {
	return slices.ContainsFunc(s.env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
}

// value returns the value of a variable of every process.
func (s *gpuSuite) value(name string) string {
	for _, v := range s.env {
		if text, ok := strings.CutPrefix(v, name+"="); ok {
			return text
		}
	}
	return ""
}

// world returns a project whose commands see the devices.
func (s *gpuSuite) world(t *testing.T, benchmarks string) *gpuWorld {
	w := newWorld(t, benchmarks)
	w.env = append(w.env, s.env...)
	w.patience = 5 * time.Minute
	if !s.deadline.IsZero() {
		w.patience = min(w.patience, time.Until(s.deadline)-5*time.Second) // so that what hangs is told
	}
	return &gpuWorld{w}
}

// gpuWorld is a world that runs the benchgraph that was carried here.
type gpuWorld struct{ *world }

func (w *gpuWorld) command(args ...string) *exec.Cmd {
	cmd := w.world.command(args...)
	if *gpuTools != "" {
		cmd.Path, cmd.Err = filepath.Join(*gpuTools, "benchgraph"), nil
	}
	return cmd
}

func (w *gpuWorld) must(code int, args ...string) outcome {
	w.t.Helper()
	o := w.finish(w.command(args...))
	o.exits(w.t, code)
	return o
}

func (w *gpuWorld) read(into any, args ...string) {
	w.t.Helper()
	if o := w.must(0, args...); json.Unmarshal([]byte(o.stdout), into) != nil {
		w.t.Fatalf("%v: %s", args, o.stdout)
	}
}

// look returns the output of devices -json, with more variables in the environment.
func (s *gpuSuite) look(t *testing.T, env ...string) (doc devicesDoc) {
	t.Helper()
	w := s.world(t, "")
	w.env = append(w.env, env...)
	w.read(&doc, "devices", "-json")
	return doc
}

// first is the device for checks that need only one.
func (s *gpuSuite) first() deviceDoc { return s.Driver.Devices[0] }

// foreignMiB is the memory that a foreign process takes: enough to be seen if the driver does not report processes.
func (s *gpuSuite) foreignMiB() int64 { return min(8<<10, s.first().Memory>>20/2) }

// findLoad finds a program that can use a device: our own, which needs only the driver, or else PyTorch.
func (s *gpuSuite) findLoad(t *testing.T) {
	t.Helper()
	own := filepath.Join(*gpuTools, "load")
	if *gpuTools == "" {
		own = filepath.Join(s.dir, "load")
		if out, err := exec.Command("cc", "-O2", "-o", own, "testdata/gpu/load.c",
			"-ldl").CombinedOutput(); err != nil {
			s.loadless = fmt.Sprintf("it is not compiled: %v: %s", err, out)
		}
	}
	out, err := s.start(t, s.first().UUID, []string{own}, 0.2, 64).wait()
	s.load, s.startup = []string{own}, 6
	if err != nil {
		s.loadless = cmp.Or(s.loadless, fmt.Sprintf("%v: %s", err, out))
		t.Logf("load does not run here: %s", s.loadless)
		s.load, s.startup = s.python(), 25
	}
}

// python returns PyTorch's load; nil if there is none.
func (s *gpuSuite) python() []string {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil
	}
	try := exec.Command(python, "-c", "import torch; assert torch.cuda.is_available()")
	try.Env = append(os.Environ(), s.env...)
	if try.Run() != nil {
		return nil
	}
	script := filepath.Join(s.dir, "load.py")
	if err := os.WriteFile(script, gpuLoadPy, 0o644); err != nil {
		return nil
	}
	return []string{python, script}
}

// running is a program that uses a device and was not started by benchgraph.
type running struct {
	cmd  *exec.Cmd
	out  *bytes.Buffer
	done chan error
}

// start starts a program on a device.
func (s *gpuSuite) start(t *testing.T, uuid string, words []string, seconds float64, mib int64) *running {
	t.Helper()
	r := &running{out: &bytes.Buffer{}, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	r.cmd = exec.CommandContext(ctx, words[0], append(slices.Clone(words[1:]), fmt.Sprint(seconds), fmt.Sprint(mib))...)
	r.cmd.Env = append(os.Environ(), append(slices.Clone(s.env), "CUDA_VISIBLE_DEVICES="+uuid)...)
	r.cmd.Stdout, r.cmd.Stderr = r.out, r.out
	err := r.cmd.Start()
	go func() { r.done <- cmp.Or(err, r.cmd.Wait()) }()
	t.Cleanup(func() { cancel(); r.wait() })
	return r
}

func (r *running) wait() (string, error) {
	err := <-r.done
	r.done <- err
	return r.out.String(), err
}

// end ends the program, as its owner would.
func (r *running) end() { _ = r.cmd.Process.Kill(); r.wait() }

// foreign starts a program that takes memory of the first device, and waits until the driver shows it.
func (c *gpuCheck) foreign(seconds float64) (*running, deviceDoc) {
	c.T.Helper()
	c.needsLoad()
	before := c.look(c.T).of(c.first().UUID)
	r := c.start(c.T, c.first().UUID, c.load, seconds, c.foreignMiB())
	var now deviceDoc
	ok := within(60*time.Second, func() bool {
		now = c.look(c.T).of(c.first().UUID)
		return now.Device.Used-before.Device.Used > c.foreignMiB()<<20/2
	})
	if !ok {
		r.end()
		out, err := r.wait()
		c.Fatalf("a process that takes %d MiB is not seen: %d bytes are in use, before %d (%v, %s)", c.foreignMiB(),
			now.Device.Used, before.Device.Used, err, out)
	}
	return r, now
}

// of returns the reported state of one device.
func (d devicesDoc) of(uuid string) deviceDoc {
	for _, doc := range d.Devices {
		if doc.UUID == uuid {
			return doc
		}
	}
	return deviceDoc{}
}

// within waits until a condition holds, and reports whether it does.
func within(patience time.Duration, ok func() bool) bool {
	for end := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// machineText describes this machine in a line.
func machineText() string {
	host, _ := machine.ThisHost()
	_, instance, _ := machine.Inventory(nil)
	libc, _ := exec.Command("getconf", "GNU_LIBC_VERSION").Output()
	return fmt.Sprintf("%s, %d cores, %s, %s, %s, %s", host.CPU, host.Cores, view.Bytes(host.Memory), instance.Kernel,
		cmp.Or(strings.TrimSpace(string(libc)), "libc not known"), runtime.Version())
}

// write writes the report as far as it goes.
func (s *gpuSuite) write() error {
	if *gpuReport == "" {
		return nil
	}
	text, err := json.MarshalIndent(s, "", "  ")
	return errors.Join(err, os.MkdirAll(*gpuReport, 0o755),
		os.WriteFile(filepath.Join(*gpuReport, "gpu.json"), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(*gpuReport, "gpu.md"), []byte(s.markdown()), 0o644))
}

func (s *gpuSuite) markdown() string {
	var b strings.Builder
	b.WriteString("# benchgraph on GPUs\n\n")
	if s.Rehearsed {
		b.WriteString("**A rehearsal**: stand-ins played the driver. Nothing here was seen on a GPU.\n\n")
	}
	fmt.Fprintf(&b, "%s, %s.\n\n%s; %s, driver %s, CUDA up to %s; processes are told %s.\n\n", s.Version,
		s.When.UTC().Format("2006-01-02 15:04 MST"),
		s.Machine, s.Driver.Provider, s.Driver.Version, s.Driver.CUDA,
		cmp.Or(s.Told, "in a way that was not found out"))
	for _, d := range s.Driver.Devices {
		fmt.Fprintf(&b, "- device %d: %s, %s, %.0f W, %s\n", d.Index, d.Name, view.Bytes(d.Memory), d.Device.PowerLimit,
			d.UUID)
	}
	b.WriteString("\n| check | outcome | s | |\n| --- | --- | --- | --- |\n")
	for _, c := range s.Checks {
		fmt.Fprintf(&b, "| %s | %s | %.0f | %s |\n", c.Name, c.Outcome, c.Seconds, c.What)
	}
	for _, c := range s.Checks {
		fmt.Fprintf(&b, "\n## %s: %s\n\n", c.Name, c.Outcome)
		for _, text := range c.Said {
			fmt.Fprintf(&b, "- %s\n", strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  "))
		}
	}
	return b.String()
}
