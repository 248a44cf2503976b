package device_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
)

const gib = 1 << 30

func newPool(t testing.TB, o device.Options) *device.LocalPool {
	t.Helper()
	p, err := device.NewPool(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func must(t testing.TB, p device.Pool, r device.Request) *device.Lease {
	t.Helper()
	l, waits := p.TryAcquire(r)
	if l == nil {
		t.Fatalf("%+v waits for %+v", r, waits)
	}
	return l
}

func mustNot(t testing.TB, p device.Pool, r device.Request, why string) {
	t.Helper()
	l, waits := p.TryAcquire(r)
	if l != nil {
		t.Fatalf("%+v was granted: %+v", r, l)
	}
	if !strings.Contains(waits.WaitsFor, why) {
		t.Errorf("%+v waits for %q, want it to say %q", r, waits.WaitsFor, why)
	}
}

func TestFitsSaysWhatIsMissing(t *testing.T) {
	gpus := append(gputest.Devices(1, "NVIDIA A10", 22.5*gib),
		gpu.Device{Index: 1, UUID: "GPU-big", Name: "NVIDIA H100 80GB HBM3", Memory: 81559 << 20})
	for _, test := range []struct {
		name string
		want device.Request
		err  string // empty: it fits
	}{
		{"nothing", device.Request{}, ""},
		{"more cores than there are", device.Request{CPUs: 64}, ""},
		{"more disk than there is", device.Request{Disk: 3 * gib},
			"needs 3 GiB of disk; the file system of /work has 2 GiB"},
		{"more memory than there is", device.Request{Memory: 64 * gib},
			"needs 64 GiB of memory; this machine has 16 GiB"},
		{"negative", device.Request{Ports: -1}, "negative amount"},
		{"an H100 has nominally 80 GiB", device.Request{GPUs: device.GPUs{Count: 1, Memory: 80 * gib}}, ""},
		{"an A10 has nominally 24 GiB", device.Request{GPUs: device.GPUs{Count: 1, Memory: 24 * gib,
			Model: regexp.MustCompile("A10")}}, ""},
		{"two kinds", device.Request{GPUs: device.GPUs{Count: 2, Memory: 24 * gib}},
			"needs 2 devices with 24 GiB; this machine has 1 of one kind (1 × NVIDIA A10 22.5 GiB, 1 × NVIDIA H100 " +
				"80GB HBM3 79.65 GiB)"},
		{"that kind", device.Request{GPUs: device.GPUs{Count: 1, Kind: "NVIDIA A10 22.5 GiB"}}, ""},
		{"another kind", device.Request{GPUs: device.GPUs{Count: 1, Kind: "NVIDIA A10 22.5 GiB 150 W"}},
			"needs 1 device of the kind NVIDIA A10 22.5 GiB 150 W; this machine has none"},
		{"too many", device.Request{GPUs: device.GPUs{Count: 2, Memory: 80 * gib}},
			"needs 2 devices with 80 GiB; this machine has 1"},
		{"too large", device.Request{GPUs: device.GPUs{Count: 1, Memory: 141 * gib}},
			"needs 1 device with 141 GiB; this machine has none (nearest: NVIDIA H100 80GB HBM3 79.65 GiB, but it " +
				"has 61.35 GiB too little)"},
		{"another model", device.Request{GPUs: device.GPUs{Count: 1, Model: regexp.MustCompile("H200|B200")}},
			"nearest: NVIDIA H100 80GB HBM3 79.65 GiB, but it is of another model"},
		{"that model", device.Request{GPUs: device.GPUs{Count: 1, Model: regexp.MustCompile("H100|H200")}}, ""},
		{"two mistakes at once", device.Request{Memory: 64 * gib, GPUs: device.GPUs{Count: 9}},
			"needs 9 devices; this machine has 1 of one kind"},
	} {
		t.Run(test.name, func(t *testing.T) {
			disk := func() device.Disk { return device.Disk{Dir: "/work", Size: 2 * gib, Free: gib} }
			p := newPool(t, device.Options{CPUs: 2, Memory: 16 * gib, Disk: disk, GPUs: gpu.These(gpus)})
			err := p.Fits(test.want)
			if test.err == "" && err != nil || test.err != "" &&
				(err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("Fits: %v, want %q", err, test.err)
			}
			if l, waits := p.TryAcquire(test.want); (l != nil) != (test.err == "") {
				t.Errorf("TryAcquire: %+v, %+v", l, waits)
			} else {
				l.Release()
			}
		})
	}
	t.Run("no device at all", func(t *testing.T) {
		err := newPool(t, device.Options{CPUs: 1}).Fits(device.Request{GPUs: device.GPUs{Count: 1, Memory: 80 * gib}})
		if err == nil || err.Error() != "needs 1 device with 80 GiB; this machine has none" {
			t.Error(err)
		}
	})
	for left, want := range map[int]string{
		0: "needs 2 devices, and this machine shows none: device 7: it hangs",
		1: "needs 2 devices; this machine has 1; it leaves out device 7: it hangs",
	} {
		p := newPool(t, device.Options{CPUs: 1, GPUs: gpu.These(gputest.Devices(left, "NVIDIA A10", gib)),
			Amiss: func() string { return "device 7: it hangs" }})
		if err := p.Fits(device.Request{GPUs: device.GPUs{Count: 2}}); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Instances of one device, or of several, are leased one at a time: no program uses two.
func TestInstancesAreLeasedAlone(t *testing.T) {
	gpus := gputest.Devices(2, "NVIDIA A100 MIG 3g.40gb", 40*gib)
	for i := range gpus {
		gpus[i].Parent = "GPU-whole"
	}
	p := newPool(t, device.Options{CPUs: 2, GPUs: gpu.These(gpus)})
	two := device.Request{GPUs: device.GPUs{Count: 2}}
	mustNot(t, p, two, "needs 2 devices; this machine has none (nearest: NVIDIA A100 MIG 3g.40gb 40 GiB, but it is a "+
		"MIG instance, which serves count = 1 alone)")
	for range 2 {
		defer must(t, p, device.Request{GPUs: device.GPUs{Count: 1}}).Release()
	}
}

// Half of the devices of each kind are leased: a request for more than the rest of either kind gets nothing, not some
// of both.
func TestALeaseIsOfOneKind(t *testing.T) {
	gpus := gputest.Devices(8, "NVIDIA A100", 80*gib)
	for i := range gpus[4:] {
		gpus[4+i].Name = "NVIDIA H100"
	}
	p := newPool(t, device.Options{CPUs: 8, GPUs: gpu.These(gpus)})
	want := func(n int) device.Request { return device.Request{GPUs: device.GPUs{Count: n}} }
	if err := p.Fits(want(6)); err == nil {
		t.Error("six devices were found among four of each kind")
	}
	h100 := want(2)
	h100.GPUs.Kind = "NVIDIA H100 80 GiB"
	leases := []*device.Lease{must(t, p, want(2)), must(t, p, h100)}
	if free := p.Free(want(1)); free.GPUs != 2 {
		t.Errorf("%d are free for one request, want 2", free.GPUs)
	}
	mustNot(t, p, want(3), "3 devices (2 of them free)")
	for range 2 {
		leases = append(leases, must(t, p, want(2)))
	}
	mustNot(t, p, want(1), "1 device (0 of them free)")
	for _, l := range leases {
		if a, b := l.GPUs[0], l.GPUs[1]; a.Name != b.Name {
			t.Errorf("a lease of %s and %s", a.Name, b.Name)
		}
		l.Release()
	}
	if l := leases[1]; l.GPUs[0].Name != "NVIDIA H100" {
		t.Errorf("got %s", l.GPUs[0].Name)
	}
}

func TestNewPoolRefusesNonsense(t *testing.T) {
	for _, o := range []device.Options{{}, {CPUs: 1, Memory: -1}} {
		if _, err := device.NewPool(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	if _, err := device.NewPool(device.Options{CPUs: 1, HostLock: "/dev/null/lock"}); err == nil {
		t.Error("a lock that cannot be was accepted")
	}
}

func TestAmountsRunShortAndComeBack(t *testing.T) {
	p := newPool(t, device.Options{CPUs: 4, Memory: 8 * gib,
		GPUs: gpu.These(gputest.Devices(2, "NVIDIA L4", 24*gib))})
	three := must(t, p, device.Request{CPUs: 3, Memory: 6 * gib, GPUs: device.GPUs{Count: 1}})
	if three.GPUs[0].Index != 0 {
		t.Errorf("got device %d, want the lowest", three.GPUs[0].Index)
	}
	mustNot(t, p, device.Request{CPUs: 2}, "2 cores (1 of 4 are free)")
	mustNot(t, p, device.Request{Memory: 3 * gib}, "3 GiB of memory (2 GiB of 8 GiB are free)")
	mustNot(t, p, device.Request{GPUs: device.GPUs{Count: 2}}, "2 devices (1 of them free)")
	mustNot(t, p, device.Request{Quiet: true}, "quiet")
	one := must(t, p, device.Request{GPUs: device.GPUs{Count: 1}})
	if one.CPUs != 1 || one.GPUs[0].Index != 1 {
		t.Errorf("%+v, want one core and device 1", one)
	}
	three.Release()
	three.Release()
	all := must(t, p, device.Request{CPUs: 3, Memory: 8 * gib})
	all.Release()
	one.Release()
	quiet := must(t, p, device.Request{CPUs: 99, Quiet: true})
	if quiet.CPUs != 4 || !quiet.Quiet {
		t.Errorf("%+v, want all cores", quiet)
	}
	mustNot(t, p, device.Request{}, "quiet")
	quiet.Release()
	(*device.Lease)(nil).Release()
	(&device.Lease{}).Release()
}

// Downloads wait for others, and keep no core from those that compute; a quiet node still waits for them.
func TestDownloadsHoldNoCore(t *testing.T) {
	p := newPool(t, device.Options{CPUs: 2})
	download := device.Request{CPUs: device.NoCore}
	all := []*device.Lease{must(t, p, device.Request{CPUs: 2})}
	for range 16 {
		all = append(all, must(t, p, download))
	}
	mustNot(t, p, download, "the end of one of 16 downloads")
	mustNot(t, p, device.Request{}, "1 cores (0 of 2 are free)")
	all[0].Release()
	all[0] = must(t, p, device.Request{})
	mustNot(t, p, device.Request{Quiet: true}, "quiet: the end of 17 others")
	all[1].Release()
	all[1] = must(t, p, download)
	for _, l := range all {
		l.Release()
	}
	must(t, p, device.Request{Quiet: true}).Release()
}

func TestPortsAreFreeAndNotGivenAgainSoon(t *testing.T) {
	p := newPool(t, device.Options{CPUs: 100})
	seen := map[int]bool{}
	for range 50 {
		l := must(t, p, device.Request{Ports: 4})
		for _, port := range l.Ports {
			if seen[port] {
				t.Errorf("port %d was granted twice", port)
			}
			seen[port] = true
			s, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				t.Error(err)
				continue
			}
			s.Close()
		}
		l.Release()
	}
}

// TestNothingIsGrantedTwice draws long stories of asking and giving back, and checks after each step what all leases
// together hold.
func TestNothingIsGrantedTwice(t *testing.T) {
	const cpus, memory, gpus = 6, 10, 3
	rapid.Check(t, func(t *rapid.T) {
		numbers := []int{1, 2, 5, 6, 7, 8, 11}
		p, err := device.NewPool(device.Options{CPUs: cpus, Cores: func() []int {
			return numbers
		}, Memory: memory, GPUs: gpu.These(gputest.Devices(gpus, "NVIDIA L4", 24*gib))})
		if err != nil {
			t.Fatal(err)
		}
		var held []*device.Lease
		release := func(i int) {
			held[i].Release()
			held = slices.Delete(held, i, i+1)
		}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				r := device.Request{
					CPUs:   rapid.IntRange(0, cpus+2).Draw(t, "cpus"),
					Cores:  rapid.Bool().Draw(t, "cores"),
					Memory: rapid.Int64Range(0, memory+1).Draw(t, "memory"),
					Ports:  rapid.IntRange(0, 2).Draw(t, "ports"),
					GPUs:   device.GPUs{Count: rapid.IntRange(0, gpus+1).Draw(t, "gpus")},
					Quiet:  rapid.IntRange(0, 3).Draw(t, "quiet") == 0,
				}
				l, waits := p.TryAcquire(r)
				switch {
				case l == nil && (waits == nil || waits.WaitsFor == ""):
					t.Fatal("neither a lease nor a reason")
				case l == nil && len(held) == 0 && p.Fits(r) == nil:
					t.Fatalf("%+v fits and nothing is held, but it waits for %s", r, waits.WaitsFor)
				case l != nil && p.Fits(r) != nil:
					t.Fatalf("%+v does not fit and was granted", r)
				case l != nil && (l.CPUs != min(max(r.CPUs, 1), cpus) || l.Memory != r.Memory ||
					len(l.Ports) != r.Ports || len(l.GPUs) != r.GPUs.Count || l.Quiet != r.Quiet):
					t.Fatalf("%+v was granted for %+v", l, r)
				case l != nil && (r.Cores && len(l.Cores) != l.CPUs || !r.Cores && l.Cores != nil ||
					!slices.IsSorted(l.Cores)):
					t.Fatalf("%d cores are granted, and these are named: %v", l.CPUs, l.Cores)
				case l != nil:
					held = append(held, l)
				}
			},
			"yield": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("nothing is held")
				}
				l := held[rapid.IntRange(0, len(held)-1).Draw(t, "which")]
				l.Yield()
				l.CPUs, l.Memory, l.Cores = 0, 0, nil // it holds no more of them
			},
			"release": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("nothing is held")
				}
				release(rapid.IntRange(0, len(held)-1).Draw(t, "which"))
			},
			"": func(t *rapid.T) { checkSums(t, held, cpus, memory) },
		})
		for len(held) > 0 {
			release(0)
		}
		if l, waits := p.TryAcquire(device.Request{CPUs: cpus, Memory: memory, GPUs: device.GPUs{Count: gpus},
			Quiet: true}); l == nil {
			t.Fatalf("all was given back, but all cannot be had: waits for %s", waits.WaitsFor)
		}
	})
}

func checkSums(t *rapid.T, held []*device.Lease, maxCPUs int, maxMemory int64) {
	cpus, memory, ports, gpus := 0, int64(0), map[int]bool{}, map[string]bool{}
	cores := map[int]bool{}
	for _, l := range held {
		for _, core := range l.Cores {
			if cores[core] {
				t.Fatalf("core %d is held twice", core)
			}
			cores[core] = true
		}
		cpus += l.CPUs
		memory += l.Memory
		for _, port := range l.Ports {
			if ports[port] {
				t.Fatalf("port %d is held twice", port)
			}
			ports[port] = true
		}
		for _, d := range l.GPUs {
			if gpus[d.UUID] {
				t.Fatalf("device %s is held twice", d.UUID)
			}
			gpus[d.UUID] = true
		}
		if l.Quiet && len(held) > 1 {
			t.Fatal("a quiet lease is held beside others")
		}
	}
	if cpus > maxCPUs || memory > maxMemory {
		t.Fatalf("%d cores and %d bytes are held", cpus, memory)
	}
}

func TestPoolsOfOneHostRespectEachOther(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "sub", "host.lock")
	o := device.Options{CPUs: 4, GPUs: gpu.These(gputest.Devices(2, "NVIDIA L4", 24*gib)), HostLock: lock}
	a, b := newPool(t, o), newPool(t, o)

	one := must(t, a, device.Request{GPUs: device.GPUs{Count: 1}})
	two := must(t, b, device.Request{GPUs: device.GPUs{Count: 1}})
	if one.GPUs[0].UUID == two.GPUs[0].UUID {
		t.Error("both hold the same device")
	}
	mustNot(t, a, device.Request{GPUs: device.GPUs{Count: 1}}, "0 of them free")
	two.Release()
	mustNot(t, b, device.Request{Quiet: true}, "quiet: the end of what device.test "+strconv.Itoa(os.Getpid()))
	// a pool that waits for quiet comes before nodes that have not started
	mustNot(t, a, device.Request{}, "its turn: device.test")
	one.Release()

	quiet := must(t, b, device.Request{Quiet: true})
	mustNot(t, a, device.Request{}, "the end of a quiet one of device.test")
	quiet.Release()
	// and a pool that waited for a quiet node comes before further quiet nodes
	mustNot(t, b, device.Request{Quiet: true}, "its turn: device.test")
	must(t, a, device.Request{}).Release()

	if err := os.Remove(lock); err != nil { // somebody tidies up
		t.Fatal(err)
	}
	quiet = must(t, a, device.Request{Quiet: true})
	mustNot(t, b, device.Request{}, "the end of a quiet one of device.test")
	quiet.Release()
	must(t, b, device.Request{}).Release()
}

// A pool that cannot start its quiet node for another reason keeps nobody waiting.
func TestQuietThatWaitsForDiskKeepsNobodyWaiting(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "host.lock")
	o := device.Options{CPUs: 1, HostLock: lock}
	full := o
	full.Disk = func() device.Disk { return device.Disk{Size: 1 << 40, Free: 1} }
	a, b := newPool(t, full), newPool(t, o)
	one := must(t, b, device.Request{})
	mustNot(t, a, device.Request{Quiet: true}, "quiet: the end of what")
	one.Release()
	mustNot(t, a, device.Request{Quiet: true, Disk: 1 << 30}, "")
	must(t, b, device.Request{}).Release()
}

// Of two processes, each with more than enough to do, one with quiet nodes and one without, both get on.
func TestQuietAndOthersTakeTurns(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "host.lock")
	a, b := newContender(t, lock), newContender(t, lock)
	got := map[string]int{}
	for range 60 { // each asks as soon as it has released
		got[a.tell(t, "some")]++
		got[b.tell(t, "quiet")]++
		a.tell(t, "release")
		got[b.tell(t, "quiet")]++
		got[a.tell(t, "some")]++
		b.tell(t, "release")
	}
	if got["quiet"] < 40 || got["some"] < 40 {
		t.Errorf("%v", got)
	}
}

// Another user's benchgraph, with a host lock of its own, holds a device; and a lock file that is tidied away is no
// lock.
func TestUsersOfOneHostRespectEachOthersDevices(t *testing.T) {
	locks := filepath.Join(t.TempDir(), "devices")
	o := device.Options{CPUs: 4, GPUs: gpu.These(gputest.Devices(1, "NVIDIA L4", 24*gib)), GPULocks: locks}
	o.HostLock = filepath.Join(t.TempDir(), "host.lock")
	a := newPool(t, o)
	o.HostLock = filepath.Join(t.TempDir(), "host.lock")
	b := newPool(t, o)
	one := must(t, a, device.Request{GPUs: device.GPUs{Count: 1}})
	mustNot(t, b, device.Request{GPUs: device.GPUs{Count: 1}}, "device 0: leased by another benchgraph")
	mustNot(t, b, device.Request{Quiet: true}, "quiet: the end of what")
	info, err := os.Stat(locks)
	if err != nil || info.Mode()&(os.ModeSticky|0o777) != os.ModeSticky|0o777 {
		t.Errorf("%v, %v: other users can put no lock there, or remove ours", info.Mode(), err)
	}
	one.Release()
	must(t, b, device.Request{GPUs: device.GPUs{Count: 1}}).Release()
	if err := os.Remove(filepath.Join(locks, o.GPUs()[0].UUID)); err != nil {
		t.Fatal(err)
	}
	two := must(t, b, device.Request{GPUs: device.GPUs{Count: 1}})
	mustNot(t, a, device.Request{GPUs: device.GPUs{Count: 1}}, "leased by another benchgraph")
	two.Release()
}

// helperEnv makes the test binary hold leases instead of running tests.
const helperEnv = "DEVICE_TEST_HOST_LOCK"

func TestMain(m *testing.M) {
	for variable, run := range map[string]func(string, io.Reader, io.Writer) error{
		helperEnv: contend, userEnv: useDevices,
	} {
		if lock := os.Getenv(variable); lock != "" {
			if err := run(lock, os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// contend acquires and releases as told by the lines of in, and says after each what it holds.
func contend(lock string, in io.Reader, out io.Writer) error {
	p, err := device.NewPool(device.Options{CPUs: 4, HostLock: lock})
	if err != nil {
		return err
	}
	var l *device.Lease
	for s := bufio.NewScanner(in); s.Scan(); {
		switch want := s.Text(); {
		case want == "release":
			l.Release()
			l = nil
		case want != "report" && l == nil:
			l, _ = p.TryAcquire(device.Request{Quiet: want == "quiet"})
		}
		held := "nothing"
		if l != nil {
			held = map[bool]string{true: "quiet", false: "some"}[l.Quiet]
		}
		if _, err := fmt.Fprintln(out, held); err != nil {
			return err
		}
	}
	return nil
}

// contender is another process with a pool on the same host.
type contender struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newContender(t *testing.T, lock string) *contender {
	t.Helper()
	return startContender(t, helperEnv+"="+lock)
}

// startContender starts this program as what the variable says.
func startContender(t *testing.T, variable string) *contender {
	t.Helper()
	c := &contender{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), variable)
	c.cmd.Stderr = os.Stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.in.Close()
		_ = c.cmd.Wait() // some are killed
	})
	return c
}

// tell sends one line and returns what the process holds then.
func (c *contender) tell(t testing.TB, line string) string {
	t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		t.Fatal(err)
	}
	return c.says(t)
}

// says returns the next line of the process.
func (c *contender) says(t testing.TB) string {
	t.Helper()
	answer, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(answer)
}

func TestQuietHoldsAcrossProcesses(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "host.lock")
	a, b := newContender(t, lock), newContender(t, lock)
	granted := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		for range rapid.IntRange(1, 20).Draw(r, "steps") {
			who := rapid.SampledFrom([]*contender{a, b}).Draw(r, "who")
			who.tell(t, rapid.SampledFrom([]string{"quiet", "some", "release"}).Draw(r, "what"))
			one, two := a.tell(t, "report"), b.tell(t, "report")
			granted[one]++
			if one == "quiet" && two != "nothing" || two == "quiet" && one != "nothing" {
				r.Fatalf("one process holds %s and the other %s", one, two)
			}
		}
	})
	if granted["quiet"] == 0 || granted["some"] == 0 {
		t.Errorf("the stories granted only %v", granted)
	}
}

func TestQuietOfADeadProcessIsFree(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "host.lock")
	a := newContender(t, lock)
	if held := a.tell(t, "quiet"); held != "quiet" {
		t.Fatal(held)
	}
	p := newPool(t, device.Options{CPUs: 1, HostLock: lock})
	mustNot(t, p, device.Request{}, "quiet")
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.cmd.Wait()
	must(t, p, device.Request{}).Release()
}

func TestLeaseCanBeReleasedByManyAtOnce(t *testing.T) {
	p := newPool(t, device.Options{CPUs: 1})
	l := must(t, p, device.Request{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(l.Release)
	}
	all.Wait()
	must(t, p, device.Request{}).Release()
}

// After Yield, a lease has no cores and no memory, but still prevents quiet.
func TestYield(t *testing.T) {
	p := newPool(t, device.Options{CPUs: 2, Memory: 4 * gib, GPUs: gpu.These(gputest.Devices(1, "A", gib))})
	all := device.Request{CPUs: 2, Memory: 4 * gib}
	waits := must(t, p, device.Request{CPUs: 2, Memory: 4 * gib, GPUs: device.GPUs{Count: 1}})
	mustNot(t, p, all, "cores")
	waits.Yield()
	waits.Yield()
	mustNot(t, p, device.Request{Quiet: true}, "quiet")
	mustNot(t, p, device.Request{GPUs: device.GPUs{Count: 1}}, "1 device")
	other := must(t, p, all)
	waits.Release()
	mustNot(t, p, device.Request{}, "cores")
	other.Release()
	quiet := must(t, p, device.Request{Quiet: true})
	quiet.Yield()
	mustNot(t, p, device.Request{}, "quiet one")
	quiet.Release()
	new(device.Lease).Yield()
}

func TestCoresOfThisMachine(t *testing.T) {
	cores := device.Cores()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux numbers the cores")
	}
	if len(cores) != runtime.NumCPU() || !slices.IsSorted(cores) ||
		len(slices.Compact(slices.Clone(cores))) != len(cores) {
		t.Errorf("the cores are %v; the runtime sees %d", cores, runtime.NumCPU())
	}
}
