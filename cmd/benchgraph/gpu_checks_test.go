//go:build linux && gpu

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/watch"
	"github.com/benchgraph/benchgraph/device/process"
)

// smi asks the nvidia-smi of the environment.
func (c *gpuCheck) smi(args ...string) string {
	c.T.Helper()
	name := "nvidia-smi"
	if c.standIn != nil {
		name = c.standIn.smi
	}
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		c.Skipf("nvidia-smi does not answer: %v", err)
	}
	return string(out)
}

// table asks nvidia-smi for fields of every device.
func (c *gpuCheck) table(fields ...string) []map[string]string {
	c.T.Helper()
	var rows []map[string]string
	for line := range strings.Lines(c.smi("--query-gpu="+strings.Join(fields, ","), "--format=csv,noheader,nounits")) {
		values := strings.Split(strings.TrimSpace(line), ", ")
		if len(values) != len(fields) {
			c.Fatalf("nvidia-smi has %d values for %d fields: %s", len(values), len(fields), line)
		}
		row := map[string]string{}
		for i, field := range fields {
			row[field] = values[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func checkInventory(c *gpuCheck) {
	rows := c.table("index", "uuid", "name", "memory.total", "enforced.power.limit", "driver_version",
		"mig.mode.current", "clocks.max.sm",
		"pci.bus_id", "temperature.gpu", "ecc.errors.uncorrected.volatile.total", "memory.used")
	seen := 0
	for _, row := range rows {
		if row["mig.mode.current"] == "Enabled" {
			c.say("device %s is partitioned: its instances are not compared", row["index"])
			continue
		}
		d := c.Driver.of(row["uuid"])
		if d.UUID == "" {
			c.say("device %s (%s) is not told; hidden: %d", row["index"], row["uuid"], c.Driver.Hidden)
			continue
		}
		seen++
		for _, field := range []struct{ name, ours string }{
			{"index", fmt.Sprint(d.Index)},
			{"name", d.Name},
			{"memory.total", fmt.Sprint(d.Memory >> 20)},
			{"enforced.power.limit", fmt.Sprintf("%.2f", d.Device.PowerLimit)},
			{"driver_version", c.Driver.Version},
			{"clocks.max.sm", numberText(d.MaxSMClock)},
			{"pci.bus_id", d.PCI},
			{"ecc.errors.uncorrected.volatile.total", numberText(d.Uncorrected)},
		} {
			theirs := row[field.name]
			told := !strings.HasPrefix(theirs, "[")
			switch {
			case told && !strings.EqualFold(theirs, field.ours) && !alike(theirs, field.ours):
				c.Errorf("device %d: %s is %q, nvidia-smi says %q", d.Index, field.name, field.ours, theirs)
			case told:
				c.say("device %d: %s = %s", d.Index, field.name, theirs)
			default:
				c.say("device %d: nvidia-smi has no %s; ours is %q", d.Index, field.name, field.ours)
			}
		}
		if t, err := strconv.Atoi(row["temperature.gpu"]); err == nil &&
			(d.Temperature == nil || abs(*d.Temperature-t) > 10) {
			c.Errorf("device %d: temperature.gpu is %s, nvidia-smi says %d", d.Index, numberText(d.Temperature), t)
		}
		if mib, err := strconv.ParseInt(row["memory.used"], 10, 64); err == nil {
			c.figure(fmt.Sprintf("memory_used_ours_minus_smi_mib_device%d", d.Index), float64(d.Device.Used>>20-mib))
		}
	}
	if partitioned := slices.ContainsFunc(c.Driver.Devices, func(d deviceDoc) bool {
		return d.Parent != ""
	}); seen+c.Driver.Hidden < len(rows) && !partitioned {
		c.Errorf("nvidia-smi has %d devices; %d are told, %d hidden", len(rows), seen, c.Driver.Hidden)
	}
	_, after, _ := strings.Cut(c.smi(), "CUDA Version: ")
	if cuda, _, told := strings.Cut(after, " "); told && cuda != c.Driver.CUDA {
		c.Errorf("CUDA is up to %q, nvidia-smi says %q", c.Driver.CUDA, cuda)
	}
	if c.Driver.Provider != gpu.ProviderNVML {
		c.say("what is told comes from %s: %s", c.Driver.Provider, c.Driver.Reason)
	}
	if len(c.Driver.Devices) > 1 {
		c.topology(c.smi("topo", "-m"))
	}
	c.withoutNVML()
}

// topology compares the links with the matrix of nvidia-smi topo -m: a row GPU0 X NV18 ….
func (c *gpuCheck) topology(matrix string) {
	byIndex := map[int]deviceDoc{}
	for _, d := range c.Driver.Devices {
		byIndex[d.Index] = d
	}
	for line := range strings.Lines(matrix) {
		cells := strings.Fields(line)
		if len(cells) < 2 || !strings.HasPrefix(cells[0], "GPU") || !slices.Contains(cells, "X") {
			continue // the head, or what is no GPU
		}
		from, err := strconv.Atoi(cells[0][3:])
		if err != nil {
			continue
		}
		for to, theirs := range cells[1:] {
			a, b := byIndex[from], byIndex[to]
			if from == to || a.UUID == "" || b.UUID == "" || a.Parent != "" || b.Parent != "" ||
				strings.HasPrefix(theirs, "GPU") {
				continue
			}
			if ours := a.Links[b.UUID]; ours != theirs {
				c.Errorf("link %d-%d is %s, nvidia-smi says %s", from, to, ours, theirs)
			} else {
				c.say("link %d-%d: %s", from, to, theirs)
			}
		}
	}
}

// withoutNVML checks the devices as a build without cgo sees them: through nvidia-smi.
func (c *gpuCheck) withoutNVML() {
	doc := c.look(c.T, "BENCHGRAPH_NVML=/nowhere/libnvidia-ml.so.1", "PATH="+c.smiPath()+os.Getenv("PATH"))
	if doc.Provider != gpu.ProviderNvidiaSMI {
		c.Errorf("without NVML the devices come from %s: %s", doc.Provider, doc.Reason)
		return
	}
	for _, d := range c.Driver.Devices {
		if d.Parent != "" {
			continue
		}
		if o := doc.of(d.UUID); o.Name != d.Name || o.Memory != d.Memory && abs(int(o.Memory-d.Memory)) > 1<<20 {
			c.Errorf("without NVML device %d is %+v", d.Index, o.Device)
		}
	}
	c.say("without NVML, %s tells the same %d devices", doc.Provider, len(doc.Devices))
}

func (c *gpuCheck) smiPath() string {
	if c.standIn == nil {
		return ""
	}
	return filepath.Dir(c.standIn.smi) + ":"
}

func numberText[N int | uint64](n *N) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

// alike reports whether two texts have nearly the same number.
func alike(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, other := strconv.ParseFloat(b, 64)
	return err == nil && other == nil && math.Abs(x-y) <= 0.01*math.Max(math.Abs(x), 1)
}

func abs(n int) int { return max(n, -n) }

func checkMasks(c *gpuCheck) {
	d := c.first()
	if given, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
		c.say("CUDA_VISIBLE_DEVICES is %q here already", given)
	}
	for _, test := range []struct {
		mask string
		want []string
	}{
		{fmt.Sprint(d.Index), []string{d.UUID}},
		{d.UUID, []string{d.UUID}},
		{d.UUID[:12], []string{d.UUID}},
		{"", nil},
		{"-1", nil},
	} {
		if d.Parent != "" && test.mask == fmt.Sprint(d.Index) {
			continue // an index names the whole device
		}
		var got []string
		for _, d := range c.look(c.T, "CUDA_VISIBLE_DEVICES="+test.mask).Devices {
			got = append(got, d.UUID)
		}
		if !slices.Equal(got, test.want) {
			c.Errorf("CUDA_VISIBLE_DEVICES=%q leaves %q, want %q", test.mask, got, test.want)
			continue
		}
		c.say("CUDA_VISIBLE_DEVICES=%q leaves %d devices", test.mask, len(got))
	}
	w := c.project("echo 'work done: 1 GFLOP/s'", 1)
	w.env = append(w.env, "CUDA_VISIBLE_DEVICES=")
	w.must(7, "apply", "-target=benchmark.load*")
	c.say("what needs a device is infeasible where all are hidden")
}

// project measures a command that uses devices, in two equal variants.
func (c *gpuCheck) project(command string, samples int) *gpuWorld {
	c.T.Helper()
	text := fmt.Sprintf(`
benchgraph { sandbox = "none" }
commit "gpu" { title = "this machine" }
variant "one" { baseline = true }
variant "two" { params = { name = "two" } }

# What the variants differ in has no effect.
wheel "name" {
  for_each = candidates
  build {
    command = "echo ${each.key} > $OUT/name"
  }
}

benchmark "load" {
  for_each = candidates
  data     = { "name" = wheel.name[each.key] }
  command  = %[1]s
  env      = { LD_LIBRARY_PATH = %[2]q, PYTHONPATH = %[3]q, STAND_IN = %[4]q }
  gpus { count = 1 }
  timeout = "3m"
  design {
    samples = %[5]d
    max     = %[5]d
  }
  metrics {
    primary = "rate"
    metric "rate" {
      match  = "work done: ([0-9.]+) GFLOP/s"
      unit   = "GFLOP/s"
      better = "higher"
    }
  }
}

compare "same" { of = [benchmark.load] }

report "gpu" { of = [compare.same] }
`, quoted(command), c.value("LD_LIBRARY_PATH"), c.value("PYTHONPATH"), c.value("STAND_IN"), samples)
	return c.world(c.T, text)
}

// quoted returns a text as HCL writes it.
func quoted(text string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strconv.Quote(text))
}

// words returns a program and its arguments for a shell.
func words(program []string, more ...any) string {
	var b strings.Builder
	for _, w := range program {
		fmt.Fprintf(&b, "'%s' ", w)
	}
	return b.String() + strings.TrimSpace(fmt.Sprintln(more...))
}

// needsLoad skips a check that needs a program which uses a device, if there is none.
func (c *gpuCheck) needsLoad() {
	c.T.Helper()
	if c.load == nil {
		c.Skipf("nothing here can use a device: neither load nor PyTorch runs (%s)", c.loadless)
	}
}

// checkForeign finds out how the driver reports processes, which later checks must know.
func checkForeign(c *gpuCheck) {
	idle := c.look(c.T).of(c.first().UUID)
	if len(idle.Processes) > 0 {
		c.say("the device is not ours alone: %+v", idle.Processes)
	}
	r, busy := c.foreign(20)
	c.Told = toldByNone
	for _, p := range busy.Processes {
		switch {
		case p.PID == r.cmd.Process.Pid:
			c.Told = toldBySelf
			c.say("told: %v", p)
			if ns, _ := os.Readlink("/proc/self/ns/pid"); ns != "pid:[4026531836]" {
				c.say("this is a PID namespace of its own (%s): programs and users are not told", ns)
			} else if p.Name == "" || p.User == "" {
				c.Errorf("its program is %q and its user %q", p.Name, p.User)
			}
			if p.Used > 0 && p.Used < c.foreignMiB()<<20 {
				c.Errorf("it has %d bytes, and took %d MiB", p.Used, c.foreignMiB())
			}
		case c.Told == toldByNone && !slices.ContainsFunc(idle.Processes, func(q process.Process) bool {
			return q.PID == p.PID
		}):
			c.Told = toldByOther
			c.say("told of process %d instead: %v", r.cmd.Process.Pid, p)
		}
	}
	c.say("processes are told %s", c.Told)
	c.figure("memory_more_mib", float64((busy.Device.Used-idle.Device.Used)>>20))
	time.Sleep(1500 * time.Millisecond) // the driver's sampling period
	busy = c.look(c.T).of(c.first().UUID)
	if busy.Utilization != nil {
		c.figure("utilization_percent", float64(*busy.Utilization))
	}
	if busy.Power != nil {
		c.figure("power_w", *busy.Power)
	}
	r.end()
	if !within(30*time.Second, func() bool {
		now := c.look(c.T).of(c.first().UUID)
		return now.Device.Used < idle.Device.Used+512<<20 && len(now.Processes) <= len(idle.Processes)
	}) {
		c.Errorf("30 s after it ended, the device is not as before: %+v", c.look(c.T).of(c.first().UUID))
	}
}

// checkGate runs an apply beside a foreign process.
func checkGate(c *gpuCheck) {
	r, _ := c.foreign(120)
	w := c.project("echo 'work done: 1 GFLOP/s'", 1)
	cmd := w.command("apply", "-devices="+c.first().UUID, "-target=benchmark.load*")
	stderr := &lockedBuffer{}
	cmd.Stderr = stderr
	done := make(chan outcome, 1)
	go func() { done <- w.finish(cmd) }()
	if !within(30*time.Second, func() bool { return strings.Contains(stderr.String(), "waiting: ") }) {
		c.Fatalf("nobody waits while process %d uses the device:\n%s", r.cmd.Process.Pid, stderr.String())
	}
	for line := range strings.Lines(stderr.String()) {
		if strings.Contains(line, "waiting: ") {
			c.say("%s", strings.TrimSpace(line))
			if by := fmt.Sprintf("process %d", r.cmd.Process.Pid); c.Told == toldBySelf && !strings.Contains(line, by) {
				c.Errorf("it does not say %q", by)
			}
		}
	}
	time.Sleep(2 * time.Second)
	if text := stderr.String(); strings.Contains(text, "trial.load") && strings.Contains(text, "start    trial") {
		c.Errorf("it was measured beside a foreign process:\n%s", text)
	}
	r.end()
	if o := <-done; o.code != 0 {
		c.Errorf("exit code %d after it had ended:\n%s", o.code, stderr.String())
	} else {
		c.say("it ended, and the lease was granted")
	}
}

func checkMeasured(c *gpuCheck) {
	c.needsLoad()
	const seconds, mib = 2.5, 2048
	for range 3 {
		out, err := c.start(c.T, c.first().UUID, c.load, seconds, mib).wait()
		if err != nil {
			c.Fatalf("%v: %s", err, out)
		}
		c.rates = append(c.rates, rateOf(out))
	}
	c.measure(c.load, seconds, mib)
}

func checkPyTorch(c *gpuCheck) {
	python := c.python()
	if python == nil {
		c.Skipf("there is no python3 with a PyTorch that sees a device")
	}
	c.measure(python, 3, 512)
}

// rateOf reads the output of load.
func rateOf(out string) float64 {
	_, after, _ := strings.Cut(out, "work done: ")
	text, _, _ := strings.Cut(after, " ")
	rate, _ := strconv.ParseFloat(text, 64)
	return rate
}

// measure measures two equal variants, and checks all records about them.
func (c *gpuCheck) measure(load []string, seconds float64, mib int64) {
	const samples = 7
	w := c.project(words(load, seconds, mib), samples)
	o := w.must(0, "apply")
	if strings.Contains(o.stderr, "invalid ") {
		c.say("blocks were void and run again:\n%s", grep(o.stderr, "invalid "))
	}
	var doc struct {
		Comparisons []struct {
			Outcome                              string
			Effect, Low, High, Value             float64
			Blocks                               int
			AgainstValue                         float64 `json:"against_value"`
			Unit, Candidate, Against, Commit, Id string
		}
		Hardware []string
		Samples  []struct{ Value float64 }
	}
	text, err := os.ReadFile(w.path("report", "report.json"))
	if err != nil {
		c.Fatalf("%v", err)
	}
	if err := json.Unmarshal(text, &doc); err != nil || len(doc.Comparisons) != 1 {
		c.Fatalf("report.json: %v\n%s", err, text)
	}
	verdict := doc.Comparisons[0]
	c.say("%s against %s: %s, %+.2f %% [%+.2f, %+.2f] from %d blocks, %.0f %s", verdict.Candidate, verdict.Against,
		verdict.Outcome,
		100*verdict.Effect, 100*verdict.Low, 100*verdict.High, verdict.Blocks, verdict.Value, verdict.Unit)
	if verdict.Outcome != "tie" && verdict.Outcome != "inconclusive" {
		// The rate of a stand-in is that of a machine with much other work.
		fail := c.Errorf
		if c.standIn != nil {
			fail = c.say
		}
		fail("of two variants that are the same, one is a %s (1 in 20 may be)", verdict.Outcome)
	}
	c.say("hardware class: %s", strings.Join(doc.Hardware, "; "))
	var values []float64
	for _, s := range doc.Samples {
		values = append(values, s.Value)
	}
	c.figure("rate_watched_gflops", median(values))
	c.figure("spread_percent", 100*(slices.Max(values)-slices.Min(values))/median(values))
	if rates := c.rates; len(rates) > 0 && slices.Equal(load, c.load) {
		c.figure("rate_alone_gflops", median(rates))
		c.figure("rate_watched_to_alone", median(values)/median(rates))
	}
	for n := 1; n <= samples; n++ {
		c.watched(w, fmt.Sprintf(`trial.load["gpu#%d"]`, n), mib)
	}
}

// blockRecord is the record of a block.
type blockRecord struct {
	Members map[string]struct {
		Devices []string
		Watched []watch.Summary
	}
}

func (c *gpuCheck) record(w *gpuWorld, address string) (r blockRecord) {
	c.T.Helper()
	var show struct{ Result struct{ Dir string } }
	w.read(&show, "show", "-json", address)
	text, err := os.ReadFile(filepath.Join(show.Result.Dir, "record.json"))
	if err != nil {
		c.Fatalf("%s: %v", address, err)
	}
	if err := json.Unmarshal(text, &r); err != nil || len(r.Members) != 2 {
		c.Fatalf("%s: %v\n%s", address, err, text)
	}
	return r
}

// watched checks the record of a block.
func (c *gpuCheck) watched(w *gpuWorld, address string, mib int64) {
	c.T.Helper()
	record := c.record(w, address)
	log := w.must(0, "logs", address).stdout
	for name, m := range record.Members {
		if len(m.Watched) != 1 || len(m.Devices) != 1 || m.Watched[0].UUID != m.Devices[0] {
			c.Errorf("%s of %s: devices %q, watched %+v", name, address, m.Devices, m.Watched)
			continue
		}
		s := m.Watched[0]
		if seen := fmt.Sprintf("device %s (1 seen)", s.UUID); strings.Contains(log, "device GPU-") &&
			!strings.Contains(log, seen) {
			c.Errorf("%s: what ran did not see %s:\n%s", address, seen, grep(log, "device "))
		}
		c.say("%s of %s: %d looks; utilisation %s %%, power %s W, SM clock %s MHz, %s °C, memory %s MiB; %s", name,
			address, s.Looks,
			rangeText(s.Utilization, 1), rangeText(s.Power, 1), rangeText(s.SMClock, 1), rangeText(s.Temperature, 1),
			rangeText(s.Used, 1<<20), strings.Join(s.Flags, ", "))
		idle := c.first()
		for what, ok := range map[string]bool{
			"looks":  s.Looks >= 3,
			"memory": s.Used != nil && s.Used.Max >= float64(mib<<20),
			"utilisation": s.Utilization != nil && s.Utilization.Max >= 50 || s.Utilization == nil &&
				idle.Utilization == nil,
			"power": s.Power != nil && s.Power.Max > s.Power.Min || s.Power == nil && idle.Power == nil,
			"clock": s.SMClock != nil && s.SMClock.Max > 0 || s.SMClock == nil && idle.SMClock == nil,
			"temperature": s.Temperature != nil && s.Temperature.Max > 0 || s.Temperature == nil &&
				idle.Temperature == nil,
			"no problems": len(s.Problems) == 0,
		} {
			if !ok {
				c.Errorf("%s of %s: %s is not as it must be: %+v", name, address, what, s)
			}
		}
	}
}

func rangeText(r *watch.Range, unit float64) string {
	if r == nil {
		return "?"
	}
	return fmt.Sprintf("%.0f–%.0f–%.0f", r.Min/unit, r.Mean/unit, r.Max/unit)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// grep returns the lines with a text.
func grep(text, with string) string {
	var found []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, with) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return strings.Join(found, "\n")
}

// during runs an apply of one block, whose first sample makes the file started, and calls f when the file exists. The
// words of another program, if any, start benchgraph.
func (c *gpuCheck) during(by []string, command string, f func(stderr *lockedBuffer)) (*gpuWorld, outcome) {
	c.T.Helper()
	started := filepath.Join(c.T.TempDir(), "started")
	w := c.project(fmt.Sprintf(command, started), 1)
	cmd := w.command("apply", "-devices="+c.first().UUID, "-target=benchmark.load*")
	if len(by) > 0 {
		args := slices.Concat(by, []string{cmd.Path}, cmd.Args[1:])
		path, err := exec.LookPath(by[0])
		cmd.Path, cmd.Args, cmd.Err = path, args, err
	}
	stderr, done := &lockedBuffer{}, make(chan outcome, 1)
	cmd.Stderr = stderr
	go func() { done <- w.finish(cmd) }()
	for range 1200 {
		if exists(started) {
			f(stderr)
			o := <-done
			o.stderr = stderr.String()
			return w, o
		}
		select {
		case o := <-done:
			c.Fatalf("it ended before it was disturbed: exit code %d\n%s", o.code, stderr.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
	c.Fatalf("nothing was measured for a minute")
	return nil, outcome{}
}

func checkIntruder(c *gpuCheck) {
	c.needsLoad()
	var intruder *running
	// Only the first sample takes long enough for another process to come. It uses the device, too: by its own process,
	// benchgraph learns the meaning of the driver's numbers.
	command := fmt.Sprintf("if test ! -e '%%[1]s'; then touch '%%[1]s'; %s; fi; echo 'work done: 1 GFLOP/s'",
		words(c.load, c.startup+10, 512))
	w, o := c.during(nil, command, func(*lockedBuffer) {
		intruder = c.start(c.T, c.first().UUID, c.load, 5, c.foreignMiB())
	})
	if out, err := intruder.wait(); err != nil {
		c.Fatalf("the intruder: %v: %s", err, out)
	}
	void := grep(o.stderr, "the sample does not count")
	c.say("exit code %d; %s", o.code, cmp.Or(void, "no block was void"))
	if o.code != 0 {
		c.Errorf("it was not run again to a good end:\n%s", o.stderr)
	}
	switch by := fmt.Sprintf("foreign process %d", intruder.cmd.Process.Pid); {
	case c.Told == toldBySelf && !strings.Contains(void, by):
		c.Errorf("no block is void because of %q:\n%s", by, o.stderr)
	case void != "" && !strings.Contains(o.stderr, "attempt 2"):
		c.Errorf("the block was not run again:\n%s", o.stderr)
	case void == "":
		c.say("processes are told %s: whose they are is not known, and no sample is void for them", c.Told)
		flagged := false
		for _, m := range c.record(w, `trial.load["gpu#1"]`).Members {
			flagged = flagged || len(m.Watched) > 0 && slices.Contains(m.Watched[0].Flags, watch.NotToldApart)
		}
		if c.Told == toldByOther && !flagged {
			c.Errorf("its record does not say %s", watch.NotToldApart)
		}
	}
}

// checkLeft has a sample end while memory of the device is still in use. A process that benchgraph sees would void the
// sample, so benchgraph runs in a PID namespace of its own, where it does not see that process.
func checkLeft(c *gpuCheck) {
	c.needsLoad()
	var elsewhere []string
	switch {
	case c.standIn != nil:
		defer c.standIn.silent.Store(c.standIn.silent.Swap(true))
	case c.Told == toldBySelf:
		elsewhere = []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
		if out, err := exec.Command(elsewhere[0], append(elsewhere[1:], "true")...).CombinedOutput(); err != nil {
			c.Skipf("it takes a PID namespace in which the process is not seen: %v %s", err, out)
		}
	}
	command := fmt.Sprintf("if test ! -e '%%[1]s'; then touch '%%[1]s'; sleep %d; fi; echo 'work done: 1 GFLOP/s'",
		c.startup)
	_, o := c.during(elsewhere, command, func(stderr *lockedBuffer) {
		left := c.start(c.T, c.first().UUID, c.load, 60, c.foreignMiB())
		within(60*time.Second, func() bool { return strings.Contains(stderr.String(), "left out") })
		left.end()
	})
	told := grep(o.stderr, "left out")
	if told == "" || o.code != 0 {
		c.Errorf("exit code %d; memory that was not free after a sample is not told:\n%s", o.code, o.stderr)
	}
	c.say("%s", told)
}

func checkLedger(c *gpuCheck) {
	const processes, nodes = 3, 8
	shared := c.T.TempDir()
	taken := filepath.Join(shared, "taken")
	if err := os.Mkdir(taken, 0o755); err != nil {
		c.Fatalf("%v", err)
	}
	widths := []string{}
	for n := 1; n <= len(c.Driver.Devices); n *= 2 {
		widths = append(widths, fmt.Sprint(n))
	}
	text := ledger(taken, nodes, widths, "0.1")
	var all sync.WaitGroup
	start := time.Now()
	for i := range processes {
		w := c.world(c.T, text)
		w.env = append(w.env, "BENCHGRAPH_HOST_LOCK="+filepath.Join(shared, "host.lock"))
		all.Go(func() {
			o := w.finish(w.command("apply", fmt.Sprintf("-var=of=%d", i)))
			if o.code != 0 || strings.Contains(o.stderr, "is taken") {
				c.T.Errorf("process %d: exit %d\n%s", i, o.code, o.stderr[max(0, len(o.stderr)-2000):])
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(taken); err != nil || len(left) > 0 {
		c.Errorf("left: %v, %v", left, err)
	}
	if c.T.Failed() {
		c.say("the log says what failed")
		return
	}
	c.say("%d processes leased %d times each, %s of %d devices at a time", processes, nodes,
		strings.Join(widths, " or "), len(c.Driver.Devices))
	c.figure("leases_per_s", processes*nodes/time.Since(start).Seconds())
}

// checkLook measures the time to inspect every device, idle and in use.
func checkLook(c *gpuCheck) {
	for _, v := range c.env {
		name, value, _ := strings.Cut(v, "=")
		c.T.Setenv(name, value)
	}
	d := gpu.OpenDriver(c.T.Context(), gpu.Options{Library: c.value("BENCHGRAPH_NVML")})
	defer d.Close()
	look := func() float64 {
		var times []float64
		for range 200 {
			start := time.Now()
			for _, dev := range d.Devices() {
				if _, err := d.Read(dev); err != nil {
					c.Fatalf("%v", err)
				}
			}
			times = append(times, time.Since(start).Seconds()*1e3)
			if time.Since(start) > 50*time.Millisecond && len(times) >= 20 {
				break
			}
		}
		return median(times)
	}
	c.figure("look_idle_ms", look())
	if c.load == nil {
		return
	}
	r, _ := c.foreign(60)
	defer r.end()
	c.figure("look_busy_ms", look())
	c.say("%s looks at %d devices; the watch does so once a second", d.Provider, len(d.Devices()))
}
