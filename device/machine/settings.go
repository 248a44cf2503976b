package machine

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// Settings are settings of a machine that may explain a difference between two measurements of one Class. Unknown
// values are empty or nil.
type Settings struct {
	Turbo     *bool    `json:"turbo,omitempty"` // cores may run faster than their nominal frequency
	SMT       *bool    `json:"smt,omitempty"`   // a core runs several threads
	NUMA      string   `json:"numa_nodes,omitempty"`
	Microcode string   `json:"microcode,omitempty"`
	MaxClock  float64  `json:"cpu_max_mhz,omitempty"`         // limit of the first core's clock
	Quota     float64  `json:"cgroup_cpus,omitempty"`         // limit of the control groups, in cores' worth of time
	MemoryMax int64    `json:"cgroup_memory_bytes,omitempty"` // limit of the control groups
	Drivers   []string `json:"gpu_drivers,omitempty"`         // full versions
	GPUClocks []string `json:"gpu_clocks,omitempty"`          // locked SM clocks
}

// settings reads a dozen small files, whatever the size of the machine.
func (m machine) settings(gpus []gpu.Device) Settings {
	const cpu = "sys/devices/system/cpu/"
	s := Settings{
		SMT: onOff(m.line(cpu+"smt/active"), "1", "0"), NUMA: m.line("sys/devices/system/node/online"),
		Microcode: m.line(cpu + "cpu0/microcode/version"), Quota: m.groups().CPUs(),
	}
	// The first file is of Intel's driver, the second of all drivers that can boost.
	if s.Turbo = onOff(m.line(cpu+"intel_pstate/no_turbo"), "0", "1"); s.Turbo == nil {
		s.Turbo = onOff(m.line(cpu+"cpufreq/boost"), "1", "0")
	}
	if s.Microcode == "" {
		s.Microcode = m.microcode()
	}
	if khz, err := strconv.Atoi(m.line(cpu + "cpu0/cpufreq/scaling_max_freq")); err == nil && khz > 0 {
		s.MaxClock = float64(khz) / 1000
	}
	// version 1 writes a huge number for no limit
	if limit := m.groups().Memory(); limit > 0 && limit < 1<<60 {
		s.MemoryMax = limit
	}
	drivers, clocks := map[string]bool{}, map[string]bool{}
	for _, d := range gpus {
		if d.Driver != "" {
			drivers[d.Driver] = true
		}
		if d.Locked > 0 {
			clocks[strconv.Itoa(d.Locked)+" MHz"] = true
		}
	}
	s.Drivers, s.GPUClocks = slices.Sorted(maps.Keys(drivers)), slices.Sorted(maps.Keys(clocks))
	return s
}

func onOff(text, on, off string) *bool {
	if text != on && text != off {
		return nil
	}
	is := text == on
	return &is
}

// microcode returns the first core's version in /proc/cpuinfo, which exists inside virtual machines as well.
func (m machine) microcode() string {
	text, err := m.head("proc/cpuinfo")
	if err != nil {
		return ""
	}
	value, _ := field(text, "microcode")
	return value
}

// Names returns the properties of an instance by the names that users know. It leaves out values that change by
// themselves, such as load and temperature.
func (i Instance) Names() map[string]string {
	all := map[string]string{
		"host": i.Host, "kernel": i.Kernel, "governor": i.Governor, "turbo": word(i.Turbo), "SMT": word(i.SMT),
		"NUMA nodes": i.NUMA, "microcode": i.Microcode,
		"driver": strings.Join(i.Drivers, ", "), "GPU clock": strings.Join(i.GPUClocks, ", "),
	}
	if i.MaxClock > 0 {
		all["CPU clock limit"] = strconv.FormatFloat(i.MaxClock, 'f', -1, 64) + " MHz"
	}
	if i.Quota > 0 {
		all["CPU quota"] = strconv.FormatFloat(i.Quota, 'f', -1, 64) + " cores"
	}
	if i.MemoryMax > 0 {
		all["memory limit"] = printable.Bytes(i.MemoryMax)
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

func word(is *bool) string {
	switch {
	case is == nil:
		return ""
	case *is:
		return "on"
	}
	return "off"
}
