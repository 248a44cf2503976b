package machine

import (
	"encoding/json"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func files(text map[string]string) machine {
	root := fstest.MapFS{}
	for name, content := range text {
		root[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return machine{root}
}

func TestControlGroupsLimit(t *testing.T) {
	const (
		v2mount = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		v1mount = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
			"33 31 0:30 %ROOT /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
			"34 31 0:31 %ROOT /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	)
	for _, test := range []struct {
		name   string
		files  map[string]string
		cpus   int
		memory int64
	}{
		{"none", nil, 0, 0},
		{"version 2, no limit", map[string]string{
			"proc/self/mountinfo": v2mount, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/cpu.max": "max 100000\n", "sys/fs/cgroup/a/memory.max": "max\n",
		}, 0, 0},
		{"version 2, the strictest of the groups above holds", map[string]string{
			"proc/self/mountinfo": v2mount, "proc/self/cgroup": "0::/a/b/c\n",
			"sys/fs/cgroup/a/b/c/cpu.max": "800000 100000\n", "sys/fs/cgroup/a/b/cpu.max": "150000 100000\n",
			"sys/fs/cgroup/a/b/c/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1073741824\n",
		}, 2, 1 << 30},
		{"version 1", map[string]string{
			"proc/self/mountinfo":                             strings.ReplaceAll(v1mount, "%ROOT", "/"),
			"proc/self/cgroup":                                "4:memory:/job\n2:cpu,cpuacct:/job\n0::/\n",
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us":  "400000\n",
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes":  "2147483648\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":      "9223372036854771712\n",
		}, 4, 2 << 30},
		{"version 1 in a container that sees only its own part", map[string]string{
			"proc/self/mountinfo":                         strings.ReplaceAll(v1mount, "%ROOT", "/docker/1a2b"),
			"proc/self/cgroup":                            "4:memory:/docker/1a2b\n2:cpu,cpuacct:/docker/1a2b\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":  "-1\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":  "2147483648\n",
		}, 0, 2 << 30},
		{"a membership that leads outside", map[string]string{
			"proc/self/mountinfo": v2mount, "proc/self/cgroup": "0::/../../a\n", "sys/fs/cgroup/memory.max": "4096\n",
		}, 0, 4096},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := files(test.files)
			cpus, memory := int(math.Ceil(m.groups().CPUs())), m.groups().Memory()
			if cpus != test.cpus || memory != test.memory {
				t.Errorf("%d cores and %d bytes, want %d and %d", cpus, memory, test.cpus, test.memory)
			}
		})
	}
}

// A part of a core makes another class; a whole number of cores, and a quota that limits nothing, do not.
func TestPartOfACoreIsAnotherClass(t *testing.T) {
	for quota, want := range map[string]string{
		"max 100000": "2 cores", "50000 100000": "0.5 of 2 cores", "100000 100000": "2 cores",
		"150000 100000": "1.5 of 2 cores", "250000 100000": "2 cores", "33333 100000": "0.333 of 2 cores",
	} {
		m := files(map[string]string{"proc/self/cgroup": "0::/a\n",
			"proc/self/mountinfo":     "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/a/cpu.max": quota + "\n"})
		c := Class{CPU: "EPYC", Cores: 2, Memory: 4, Arch: "amd64", Quota: m.partial(2)}
		if got := c.String(); got != "EPYC, "+want+", 4 GiB, amd64" {
			t.Errorf("%s: %s", quota, got)
		}
		h := Host{CPU: "EPYC", Cores: 2, Memory: 4 << 30, Arch: "amd64", Quota: c.Quota}
		if h.Class().String() != c.String() {
			t.Errorf("%s: a profile says %s", quota, h.Class())
		}
	}
}

func TestMemoryIsTheLeastThatHolds(t *testing.T) {
	m := files(map[string]string{"proc/meminfo": "MemTotal:       16316412 kB\nMemFree: 1 kB\n"})
	if n, err := m.memory(); n != 16316412<<10 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := files(map[string]string{"proc/meminfo": "MemTotal: much\n"}).memory(); err == nil {
		t.Error("nonsense was read as an amount")
	}
}

func TestCPUModel(t *testing.T) {
	for want, info := range map[string]string{
		"Intel(R) Xeon(R) Platinum 8480C": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)  Platinum " +
			"8480C\n",
		runtime.GOARCH + " implementer 0x41 part 0xd0c": "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
		"POWER9, altivec supported":                     "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n",
	} {
		if got := files(map[string]string{"proc/cpuinfo": info}).cpuModel(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestInstanceReadings(t *testing.T) {
	m := files(map[string]string{
		"proc/loadavg":                                         "0.52 0.4 0.3 1/300 4242\n",
		"sys/class/thermal/thermal_zone0/temp":                 "41000\n",
		"sys/class/thermal/thermal_zone1/temp":                 "58500\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
	})
	if load := m.load(); load == nil || *load != 0.52 {
		t.Errorf("load %v", load)
	}
	if c := m.temperature(); c == nil || *c != 58.5 {
		t.Errorf("temperature %v", c)
	}
	if g := m.governor(); g != "performance" {
		t.Errorf("governor %q", g)
	}
	if m := files(nil); m.load() != nil || m.temperature() != nil || m.governor() != "" {
		t.Error("readings without files")
	}
}

func TestSettings(t *testing.T) {
	const cpu = "sys/devices/system/cpu/"
	text := map[string]string{
		cpu + "smt/active": "1\n", cpu + "intel_pstate/no_turbo": "1\n", cpu + "cpufreq/boost": "1\n", cpu +
			"cpu0/microcode/version": "0x2b0004b1\n",
		cpu + "cpu0/cpufreq/scaling_max_freq": "3800000\n", "sys/devices/system/node/online": "0-1\n",
		"proc/self/mountinfo": "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "proc/self/cgroup": "0::/a\n",
		"sys/fs/cgroup/a/cpu.max": "150000 100000\n", "sys/fs/cgroup/a/memory.max": "1073741824\n",
	}
	i := Instance{Host: "h", Kernel: "6.1", Governor: "performance",
		Settings: files(text).settings([]gpu.Device{{Driver: "550.54.15", Locked: 1410}, {Driver: "550.54.15"}})}
	want := map[string]string{
		"host": "h", "kernel": "6.1", "governor": "performance", "turbo": "off", "SMT": "on", "NUMA nodes": "0-1",
		"microcode": "0x2b0004b1",
		"driver":    "550.54.15", "GPU clock": "1410 MHz", "CPU clock limit": "3800 MHz", "CPU quota": "1.5 cores",
		"memory limit": "1 GiB",
	}
	if diff := cmp.Diff(want, i.Names()); diff != "" {
		t.Error(diff)
	}
	delete(text, cpu+"intel_pstate/no_turbo")
	delete(text, cpu+"cpu0/microcode/version")
	text["proc/cpuinfo"] = "processor\t: 0\nmicrocode\t: 0x1\n"
	if s := files(text).settings(nil); s.Turbo == nil || !*s.Turbo || s.Microcode != "0x1" {
		t.Errorf("%+v", s)
	}
	// A setting that the system does not report is unknown, and is in no record.
	if names := (Instance{Settings: files(nil).settings(nil)}).Names(); len(names) > 0 {
		t.Errorf("%v", names)
	}
	if record, err := json.Marshal(Instance{Settings: files(map[string]string{cpu +
		"smt/active": "many"}).settings(nil)}); err != nil || string(record) != `{"host":"","kernel":""}` {
		t.Errorf("%s, %v", record, err)
	}
}

func TestThisMachine(t *testing.T) {
	host, err := ThisHost()
	if err != nil || host.Cores < 1 || host.Cores > runtime.NumCPU() || host.Memory < 1<<20 || host.CPU == "" {
		t.Errorf("%+v, %v", host, err)
	}
	class, instance, err := Inventory(append(gputest.Devices(2, "NVIDIA L4", 24<<30),
		gpu.Device{UUID: "GPU-x", Name: "NVIDIA A10", Memory: 24 << 30}))
	if err != nil || instance.Kernel == "" || class.Cores != host.Cores || len(class.GPUs) != 2 ||
		class.GPUs[1].Count != 2 || len(instance.UUIDs) != 3 || len(instance.Host) != 12 {
		t.Errorf("%+v, %+v, %v", class, instance, err)
	}
	if !strings.HasSuffix(class.String(), ", 1 × NVIDIA A10 24 GiB, 2 × NVIDIA L4 24 GiB") {
		t.Errorf("class %q", class)
	}
}

func FuzzControlGroups(f *testing.F) {
	f.Add("0::/a/b\n", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "150000 100000")
	f.Add("4:cpu:/../..\n", "33 31 0:30 /x /sys/../.. rw - cgroup cgroup rw,cpu\n", "-1")
	f.Fuzz(func(t *testing.T, member, mounts, limit string) {
		fuzzing.Frugal(t, len(member)+len(mounts)+len(limit), func() {
			m := files(map[string]string{"proc/self/cgroup": member, "proc/self/mountinfo": mounts,
				"sys/fs/cgroup/cpu.max":    limit,
				"sys/fs/cgroup/memory.max": limit, "proc/meminfo": limit, "proc/cpuinfo": limit})
			if m.groups().CPUs() < 0 || m.groups().Memory() < 0 || m.cpuModel() == "" {
				t.Error("a limit below nothing")
			}
			_, _ = m.memory()
		})
	})
}
