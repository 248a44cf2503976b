package machine

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// Settings are what else of a machine may explain a difference between two measurements of one Class. What this system
// does not tell is empty or nil.
type Settings struct {
	Turbo     *bool    `json:"turbo,omitempty"` // cores may run faster than their nominal frequency
	SMT       *bool    `json:"smt,omitempty"`   // a core runs several threads
	NUMA      string   `json:"numa_nodes,omitempty"`
	Microcode string   `json:"microcode,omitempty"`
	MaxClock  float64  `json:"cpu_max_mhz,omitempty"`         // to which the first core is limited
	Quota     float64  `json:"cgroup_cpus,omitempty"`         // cores' worth of time that control groups allow
	MemoryMax int64    `json:"cgroup_memory_bytes,omitempty"` // that they allow
	Drivers   []string `json:"gpu_drivers,omitempty"`         // whole versions
	GPUClocks []string `json:"gpu_clocks,omitempty"`          // SM clocks at which GPUs are locked
}

// settings reads a dozen small files, whatever the size of the machine.
func (m machine) settings(gpus []gpu.Device) Settings {
	const cpu = "sys/devices/system/cpu/"
	s := Settings{
		SMT: onOff(m.line(cpu+"smt/active"), "1", "0"), NUMA: m.line("sys/devices/system/node/online"),
		Microcode: m.line(cpu + "cpu0/microcode/version"), Quota: m.groups().CPUs(),
	}
	// The first is of Intel's driver, the others of all drivers that can boost.
	if s.Turbo = onOff(m.line(cpu+"intel_pstate/no_turbo"), "0", "1"); s.Turbo == nil {
		s.Turbo = onOff(m.line(cpu+"cpufreq/boost"), "1", "0")
	}
	if s.Microcode == "" {
		s.Microcode = m.microcode()
	}
	if khz, err := strconv.Atoi(m.line(cpu + "cpu0/cpufreq/scaling_max_freq")); err == nil && khz > 0 {
		s.MaxClock = float64(khz) / 1000
	}
	// without a limit, version 1 tells a number beyond any memory
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

// microcode is what /proc/cpuinfo has of the first core, as it also does inside virtual machines.
func (m machine) microcode() string {
	text, err := m.head("proc/cpuinfo")
	if err != nil {
		return ""
	}
	value, _ := field(text, "microcode")
	return value
}

// Names are what is known of an instance beside what changes by itself, as its load and temperature do: values by the
// names that people have for them.
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
