// Package machine describes a machine: what matters for a measurement, and what a plan needs to know.
package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/device/cgroup"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// Class is the hardware, as usable by this process. Only measurements of the same Class are compared.
type Class struct {
	Arch   string     `json:"arch"`                // GOARCH
	CPU    string     `json:"cpu"`                 // model
	Cores  int        `json:"cores"`               // usable cores
	Quota  float64    `json:"cpu_quota,omitempty"` // limit in cores' worth of time, if it is not a whole number
	Memory int        `json:"memory_gib"`          // usable memory, rounded, since kernels differ; 0: not known
	GPUs   []ClassGPU `json:"gpus,omitempty"`
}

// ClassGPU is one kind of GPU in a Class.
type ClassGPU struct {
	Name       string  `json:"name"`
	Memory     int64   `json:"memory_bytes"`
	PowerLimit float64 `json:"power_limit_w,omitempty"` // 0: not known
	Driver     string  `json:"driver,omitempty"`        // branch: first number of the version; empty: not known
	Locked     int     `json:"locked_sm_clock_mhz,omitempty"`
	Count      int     `json:"count"`
}

// ClassOf returns the kind of one GPU, with a count of one.
func ClassOf(d gpu.Device) ClassGPU {
	branch, _, _ := strings.Cut(d.Driver, ".")
	return ClassGPU{Name: d.Name, Memory: d.Memory, PowerLimit: d.PowerLimit, Driver: branch, Locked: d.Locked,
		Count: 1}
}

// KindOf returns the kind of a device in words. Numbers from devices of different kinds are never mixed.
func KindOf(d gpu.Device) string { return ClassOf(d).String() }

// String returns the kind in words, without the count.
func (g ClassGPU) String() string {
	text := g.Name + " " + printable.Bytes(g.Memory)
	if g.PowerLimit > 0 {
		text += fmt.Sprintf(" %.0f W", g.PowerLimit)
	}
	if g.Driver != "" {
		text += " driver " + g.Driver
	}
	if g.Locked > 0 {
		text += fmt.Sprintf(" locked at %d MHz", g.Locked)
	}
	return text
}

// String returns the class in one line, the same for equal classes.
func (c Class) String() string {
	cores := strconv.Itoa(c.Cores)
	if c.Quota > 0 {
		cores = strconv.FormatFloat(c.Quota, 'f', -1, 64) + " of " + cores
	}
	text := fmt.Sprintf("%s, %s cores, %d GiB, %s", c.CPU, cores, c.Memory, c.Arch)
	for _, g := range c.GPUs {
		text = WithGPUs(text, g.Count, g.String())
	}
	return text
}

// WithGPUs adds count GPUs of a kind to the text of a class.
func WithGPUs(class string, count int, kind string) string {
	return fmt.Sprintf("%s, %d × %s", class, count, kind)
}

// Instance is what may differ between two measurements of one Class and explain a difference.
type Instance struct {
	Host        string   `json:"host"`                    // first 12 digits of the SHA-256 of the host's name
	Kernel      string   `json:"kernel"`                  // release
	Governor    string   `json:"governor,omitempty"`      // of the first core's frequency; empty: not known
	Load        *float64 `json:"load,omitempty"`          // current load over the last minute; nil: not known
	Temperature *float64 `json:"temperature_c,omitempty"` // current, of the hottest thermal zone; nil: not known
	UUIDs       []string `json:"gpu_uuids,omitempty"`     // of the GPUs
	Settings
}

// Inventory describes this machine with the GPUs of a measurement.
func Inventory(gpus []gpu.Device) (Class, Instance, error) {
	host, err := ThisHost()
	kernel, kernelErr := kernelRelease()
	c, m := host.Class(), machine{os.DirFS("/")}
	i := Instance{Kernel: kernel, Governor: m.governor(), Load: m.load(), Temperature: m.temperature(),
		Settings: m.settings(gpus)}
	name, nameErr := os.Hostname()
	if nameErr == nil {
		sum := sha256.Sum256([]byte(name))
		i.Host = hex.EncodeToString(sum[:6])
	}
	for _, d := range gpus {
		i.UUIDs = append(i.UUIDs, d.UUID)
		same := func(g ClassGPU) bool { g.Count = 1; return g == ClassOf(d) }
		if at := slices.IndexFunc(c.GPUs, same); at >= 0 {
			c.GPUs[at].Count++
		} else {
			c.GPUs = append(c.GPUs, ClassOf(d))
		}
	}
	slices.SortFunc(c.GPUs, func(a, b ClassGPU) int {
		return strings.Compare(a.String(), b.String())
	})
	return c, i, errors.Join(err, kernelErr, nameErr)
}

func kernelRelease() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("kernel release: %w", err)
	}
	return unix.ByteSliceToString(u.Release[:]), nil
}

// machine reads /proc and /sys.
type machine struct {
	root fs.FS
}

func (m machine) groups() cgroup.Groups { return cgroup.Groups{Root: m.root, Line: m.line} }

// cpus returns the number of cores for this process: those of its affinity mask, which the runtime has read, limited
// by its control groups. A fraction of a core counts as one.
func (m machine) cpus() int {
	n := runtime.NumCPU()
	if quota := m.groups().CPUs(); quota > 0 {
		n = min(n, int(math.Ceil(quota)))
	}
	return n
}

// partial returns the limit of the control groups, rounded to a thousandth, if it is below the number of cores and
// not a whole number; otherwise 0.
func (m machine) partial(cores int) float64 {
	quota := math.Round(m.groups().CPUs()*1000) / 1000
	if quota >= float64(cores) || quota == math.Trunc(quota) {
		return 0
	}
	return quota
}

// memory returns the smaller of the installed memory and the limit of the control groups.
func (m machine) memory() (int64, error) {
	total, err := m.builtInMemory()
	if limit := m.groups().Memory(); limit > 0 && (limit < total || total == 0) {
		return limit, nil
	}
	return total, err
}

// builtInMemory returns MemTotal.
func (m machine) builtInMemory() (int64, error) {
	text, err := fs.ReadFile(m.root, "proc/meminfo")
	if err != nil {
		if n := memoryOfSystem(); n > 0 {
			return n, nil
		}
		return 0, fmt.Errorf("memory of this machine: %w", err)
	}
	value, ok := field(text, "MemTotal")
	kib, err := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	if !ok || err != nil || kib <= 0 || kib > 1<<50 {
		return 0, errors.New("memory of this machine: /proc/meminfo has no MemTotal in kB")
	}
	return kib << 10, nil
}

// cpuModel returns the name of the processor, from the field that this architecture has.
func (m machine) cpuModel() string {
	text, err := fs.ReadFile(m.root, "proc/cpuinfo")
	if err == nil {
		for _, name := range []string{"model name", "cpu model", "cpu", "uarch"} { // x86, MIPS, POWER, RISC-V
			if value, ok := field(text, name); ok && value != "" {
				return strings.Join(strings.Fields(value), " ")
			}
		}
		implementer, ok := field(text, "CPU implementer")
		part, ok2 := field(text, "CPU part")
		if ok && ok2 { // ARM reports only numbers
			return fmt.Sprintf("%s implementer %s part %s", runtime.GOARCH, implementer, part)
		}
	}
	if name := cpuOfSystem(); name != "" {
		return name
	}
	return runtime.GOARCH
}

// field returns the value of the first line "name : value".
func field(text []byte, name string) (string, bool) {
	for line := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

func (m machine) governor() string {
	return m.line("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
}

func (m machine) load() *float64 {
	first, _, _ := strings.Cut(m.line("proc/loadavg"), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return nil
	}
	return &load
}

func (m machine) temperature() *float64 {
	zones, err := fs.Glob(m.root, "sys/class/thermal/thermal_zone*/temp")
	if err != nil {
		return nil
	}
	var hottest *float64
	for _, zone := range zones {
		milli, err := strconv.Atoi(m.line(zone))
		if c := float64(milli) / 1000; err == nil && (hottest == nil || c > *hottest) {
			hottest = &c
		}
	}
	return hottest
}

// mostHead limits reading a file of which only the beginning matters.
const mostHead = 64 << 10

// head returns the beginning of a file: /proc/cpuinfo grows with the number of cores.
func (m machine) head(name string) ([]byte, error) {
	f, err := m.root.Open(path.Clean(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mostHead))
}

// line returns the first line of a file; empty if there is none.
func (m machine) line(name string) string {
	text, err := m.head(name)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(first)
}
