package machine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Profile is a machine as "benchgraph devices -json" describes it. It contains everything that is needed to plan for
// the machine on another one.
type Profile struct {
	Host    Host
	Devices []gpu.Device
	Lacks   []string // facts that the document lacks, in words; this machine's are used instead
}

// Host is a machine without its devices.
type Host struct {
	OS     string  `json:"os"`   // GOOS
	Arch   string  `json:"arch"` // GOARCH
	CPU    string  `json:"cpu"`  // model
	Cores  int     `json:"cores"`
	Memory int64   `json:"memory_bytes"`        // 0: not known
	Quota  float64 `json:"cpu_quota,omitempty"` // limit in cores' worth of time, if it is not a whole number

	Sandbox  string `json:"sandbox,omitempty"`        // confinement of commands, as in keys; "": not known
	Enforces bool   `json:"enforces_cores,omitempty"` // commands in a sandbox are bound to their cores
}

// ThisHost describes this machine as usable by this process. An error names what could not be read; the rest is
// valid.
func ThisHost() (Host, error) {
	m := machine{os.DirFS("/")}
	memory, err := m.memory()
	return Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: m.cpuModel(), Cores: m.cpus(), Memory: memory,
		Quota: m.partial(runtime.NumCPU())}, err
}

// Class returns the class of the machine without its devices.
func (h Host) Class() Class {
	return Class{Arch: h.Arch, CPU: h.CPU, Cores: h.Cores, Quota: h.Quota, Memory: int((h.Memory + 1<<29) >> 30)}
}

// Limits of a document.
const (
	MaxProfile        = 2 << 20 // bytes
	maxProfileDevices = 1024
	maxProfileText    = 512 // bytes of a name
	maxProfileMemory  = 1 << 50
	maxProfileCores   = 1 << 16
)

var goName = lazyregexp.New(`^[a-z0-9]+$`)

// ParseProfile parses the output of "benchgraph devices -json". Facts that an older benchgraph did not print are
// taken from this machine and named in Lacks.
func ParseProfile(document []byte) (*Profile, error) {
	if len(document) > MaxProfile {
		return nil, fmt.Errorf("the file is larger than %d MiB", MaxProfile>>20)
	}
	var doc struct {
		Format  *string       `json:"format"`
		Machine *Host         `json:"machine"`
		Driver  string        `json:"driver_version"`
		CUDA    string        `json:"cuda_version"`
		Devices *[]gpu.Device `json:"devices"`
	}
	if err := json.Unmarshal(document, &doc); err != nil || doc.Format == nil || doc.Devices == nil {
		return nil, errors.New("this is not what \"benchgraph devices -json\" prints")
	}
	if major, _, _ := strings.Cut(*doc.Format, "."); major != "1" {
		return nil,
			fmt.Errorf("its format is %q, and this benchgraph reads 1.x: print it anew with the same version of "+
				"benchgraph", *doc.Format)
	}
	p := &Profile{Devices: *doc.Devices}
	if len(p.Devices) > maxProfileDevices {
		return nil, fmt.Errorf("it has %d devices; no machine has more than %d", len(p.Devices), maxProfileDevices)
	}
	seen := map[string]bool{}
	for i := range p.Devices {
		d := &p.Devices[i]
		if d.UUID == "" || seen[d.UUID] || d.Name == "" || d.Memory <= 0 || d.Memory > maxProfileMemory ||
			max(len(d.UUID), len(d.Name)) > maxProfileText {
			return nil, fmt.Errorf("device %d has no name, no memory or no UUID of its own", i)
		}
		seen[d.UUID] = true
		d.Driver, d.CUDA = cmp.Or(d.Driver, doc.Driver), cmp.Or(d.CUDA, doc.CUDA)
		if d.Driver == "" && !slices.Contains(p.Lacks, "the driver") {
			p.Lacks = append(p.Lacks, "the driver")
		}
	}
	if doc.Machine == nil {
		p.Lacks = append(p.Lacks, "processor, memory and architecture")
		var err error
		p.Host, err = ThisHost()
		return p, err
	}
	p.Host = *doc.Machine
	h := p.Host
	if !goName().MatchString(h.OS) || !goName().MatchString(h.Arch) || h.Cores < 1 || h.Cores > maxProfileCores ||
		h.Memory < 0 || h.Memory > maxProfileMemory || h.Quota < 0 || h.Quota >= maxProfileCores ||
		max(len(h.CPU), len(h.Arch), len(h.OS)) > maxProfileText {
		return nil, errors.New("its \"machine\" makes no sense: it needs os, arch, cpu, cores and memory_bytes")
	}
	return p, nil
}

// Is reports whether the profile describes a machine of a class with these devices.
func (p *Profile) Is(host Class, devices []gpu.Device) bool {
	return p.Host.Class().String() == host.String() && slices.Equal(Kinds(p.Devices), Kinds(devices))
}

// Kinds returns the kinds of devices, sorted, one for each device.
func Kinds(devices []gpu.Device) []string {
	if devices == nil {
		return nil
	}
	kinds := make([]string, len(devices))
	for i, d := range devices {
		kinds[i] = KindOf(d)
	}
	slices.Sort(kinds)
	return kinds
}

// ByKind groups devices by kind, in the order of the first device of each kind.
func ByKind(devices []gpu.Device) [][]gpu.Device {
	var groups [][]gpu.Device
	at := map[string]int{}
	var last ClassGPU // String is the most expensive call here
	i := -1
	for _, d := range devices {
		if class := ClassOf(d); i < 0 || class != last {
			last = class
			seen := false
			if i, seen = at[class.String()]; !seen {
				i, at[class.String()] = len(groups), len(groups)
				groups = append(groups, nil)
			}
		}
		groups[i] = append(groups[i], d)
	}
	return groups
}

// CountKinds returns the number of devices of each kind, in words.
func CountKinds(devices []gpu.Device) []string {
	var parts []string
	for _, kind := range ByKind(devices) {
		parts = append(parts, fmt.Sprintf("%d × %s", len(kind), KindOf(kind[0])))
	}
	return parts
}

// String describes the machine in one line: its devices, then the rest.
func (p *Profile) String() string {
	return strings.Join(append(CountKinds(p.Devices), p.Host.Class().String()), "; ")
}
