package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu/link"
	"github.com/benchgraph/benchgraph/device/gpu/mps"
	"github.com/benchgraph/benchgraph/device/process"
)

// Names of the sources of information about GPUs.
const (
	ProviderNVML      = "nvml"
	ProviderNvidiaSMI = "nvidia-smi"
	ProviderNone      = "none"
)

// Reading is the state of a GPU at one moment. Values that the driver does not report are nil or empty.
type Reading struct {
	Used        int64             `json:"-"`                             // bytes; see Device
	Utilization *int              `json:"utilization_percent,omitempty"` // over the driver's last sampling period
	Power       *float64          `json:"power_w,omitempty"`
	PowerLimit  *float64          `json:"-"` // enforced limit in W; see Device
	Temperature *int              `json:"temperature_c,omitempty"`
	SMClock     *int              `json:"sm_clock_mhz,omitempty"`
	MaxSMClock  *int              `json:"max_sm_clock_mhz,omitempty"`
	MemoryClock *int              `json:"memory_clock_mhz,omitempty"`
	Slowdowns   []string          `json:"slowdowns,omitempty"`       // reasons for low clocks: the names below
	Uncorrected *uint64           `json:"ecc_uncorrected,omitempty"` // memory errors since the driver was loaded
	Xids        []uint64          `json:"xids,omitempty"`            // critical errors since the previous reading
	Processes   []process.Process `json:"processes"`
}

// Reasons for the low clocks of a GPU.
const (
	SlowHardware   = "hw_slowdown"
	SlowThermal    = "hw_thermal_slowdown"
	SlowPowerBrake = "hw_power_brake"
	SlowSWThermal  = "sw_thermal_slowdown"
	SlowPowerCap   = "sw_power_cap"
	SlowSettings   = "application_clocks"
	SlowSyncBoost  = "sync_boost"
	SlowDisplay    = "display_clocks"
)

// Driver reads the GPUs of this machine. It is safe for concurrent use.
type Driver struct {
	answer
	open func() // sets answer, once; nil: answer is set

	Elsewhere bool // the driver's process numbers may not be valid in this PID namespace

	mu     sync.Mutex
	asked  []*question           // questions that the source has not answered
	closed bool                  // no more questions
	left   map[string]Quarantine // by UUID
	tell   func(Quarantine)
	doubts map[string]int // by UUID: number of successive blocks that were void because of its speed
}

// answer is the result of opening a driver.
type answer struct {
	Provider string
	Reason   string // with ProviderNone: why there are no devices; otherwise the contents of Odd and errors of the mask
	// devices that are left out, each with the reason and the remedy, and a driver that does not answer
	Odd     []string
	Version string // of the kernel driver; empty: not known
	CUDA    string // newest version that the driver supports; empty: not known
	Hidden  int    // number of devices that the mask hides
	Hangs   bool   // a call has timed out and may never return; Reason names the device

	devices []Device // by index
	source  source
}

// source is a way to query a driver.
type source interface {
	read(Device) (Reading, error)
	link(a, b Device) link.Link
	close(busy bool) // busy: a call is running and may never return
}

// Options say how to find the driver and which devices to use.
type Options struct {
	Library  string // path or name of NVML; empty: the driver's installation
	Mask     Mask
	MPS      string        // directory with the pipes of the MPS control daemon; empty: do not look for a daemon
	Patience time.Duration // time limit of each call during opening; 0: silence
}

// NewDriver returns a Driver that is opened by the first call about devices: a command that needs no device never
// waits for the driver.
func NewDriver(ctx context.Context, o Options) *Driver {
	d := &Driver{}
	d.open = sync.OnceFunc(func() { d.answer, d.Elsewhere = find(ctx, o), process.Elsewhere() })
	return d
}

// OpenDriver reads the GPUs of this machine through NVML, or else nvidia-smi. If neither works, there are no GPUs and
// Reason says why.
func OpenDriver(ctx context.Context, o Options) *Driver {
	d := NewDriver(ctx, o)
	d.open()
	return d
}

// Devices returns the usable GPUs, by index.
func (d *Driver) Devices() []Device {
	if d.open != nil {
		d.open()
	}
	return d.devices
}

// opened returns the source; nil: none.
func (d *Driver) opened() source {
	d.Devices()
	return d.source
}

// Keep hides all devices except some.
func (d *Driver) Keep(some []Device) {
	d.Devices()
	d.devices = some
}

func find(ctx context.Context, o Options) answer {
	a, err := openNVML(ctx, o.Library, cmp.Or(o.Patience, silence))
	if err != nil {
		var smi error
		if a, smi = openSMI(ctx); smi != nil {
			a = answer{Provider: ProviderNone, Reason: fmt.Sprintf("%v; %v", err, smi),
				Hangs: errors.Is(err, errSilent) || errors.Is(smi, errSilent)}
			if a.Hangs || !errors.Is(err, errNoLibrary) || !errors.Is(smi, errNoProgram) {
				a.Odd = []string{"the driver does not answer: " + a.Reason}
			}
			return a
		}
	}
	seen := map[string]bool{}
	a.devices = slices.DeleteFunc(a.devices, func(d Device) bool {
		odd := d.UUID == "" || seen[d.UUID]
		if seen[d.UUID] = true; odd {
			a.Odd = append(a.Odd, fmt.Sprintf("device %d has no UUID of its own", d.Index))
		}
		return odd
	})
	a.Reason = strings.Join(a.Odd, "; ")
	for i := range a.devices {
		a.devices[i].Driver, a.devices[i].CUDA = a.Version, a.CUDA
	}
	slices.SortStableFunc(a.devices, func(a, b Device) int { return cmp.Compare(a.Index, b.Index) })
	all := len(a.devices)
	a.devices, err = o.Mask.apply(a.devices)
	a.Hidden = all - len(a.devices)
	if err != nil && a.Reason != "" {
		err = fmt.Errorf("%s; %w", a.Reason, err)
	}
	if err != nil {
		a.Reason = err.Error()
	}
	if warning := mps.Warning(o.MPS); o.MPS != "" && warning != "" {
		for i := range a.devices {
			a.devices[i].Warnings = append(a.devices[i].Warnings, warning)
		}
	}
	return a
}

// ErrGone is wrapped by errors about a device that has vanished: it fell off the bus or was removed.
var ErrGone = errors.New("the device is gone")

// Read returns the state of a device, or an error if the driver does not answer in time.
func (d *Driver) Read(of Device) (Reading, error) {
	if d.opened() == nil {
		return Reading{}, fmt.Errorf("%s: no driver", of.UUID)
	}
	r, err := d.ask(of)
	if err != nil {
		return r, fmt.Errorf("%s (%s): %w", of.UUID, of.Name, err)
	}
	for i := range r.Processes {
		if !d.Elsewhere {
			r.Processes[i].Identify()
		}
	}
	slices.SortFunc(r.Processes, func(a, b process.Process) int { return cmp.Compare(a.PID, b.PID) })
	return r, nil
}

// silence is how long a driver may take to answer before it counts as hanging. Seconds are usual if the driver is not
// kept loaded.
const silence = 20 * time.Second

var (
	errSilent = fmt.Errorf("the driver has not answered for %s", silence)
	errClosed = errors.New("the driver is closed")
)

// question is a running reading of a device.
type question struct {
	of    string // UUID
	since time.Time
}

// ask reads a device. A hanging call cannot be ended: ask abandons it, and the device is not read again until the
// call returns.
func (d *Driver) ask(of Device) (Reading, error) {
	q, err := d.begin(of)
	if err != nil {
		return Reading{}, err
	}
	type reply struct {
		Reading
		error
	}
	r, err := within(context.Background(), silence, func() reply {
		r, err := d.source.read(of)
		d.judge(of, r, err)
		d.mu.Lock()
		d.asked = slices.DeleteFunc(d.asked, func(other *question) bool { return other == q })
		d.mu.Unlock()
		return reply{r, err}
	})
	if err != nil {
		d.LeaveOut(of, err.Error())
	}
	return r.Reading, cmp.Or(err, r.error)
}

// within returns the result of f, or an error after patience or at the end of ctx. A hanging f cannot be ended: its
// goroutine stays.
func within[T any](ctx context.Context, patience time.Duration, f func() T) (t T, err error) {
	answers := make(chan T, 1)
	go func() { answers <- f() }()
	select {
	case t = <-answers:
		return t, nil
	case <-ctx.Done():
		return t, context.Cause(ctx)
	case <-time.After(patience):
		return t, errSilent
	}
}

// begin records a question about a device. It fails if an older question hangs. Several questions may run at once:
// the pool's check, and the reading of a process that was granted the device meanwhile.
func (d *Driver) begin(of Device) (*question, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errClosed
	}
	q := &question{of.UUID, time.Now()}
	if slices.ContainsFunc(d.asked, func(other *question) bool {
		return other.of == q.of && q.since.Sub(other.since) >= silence
	}) {
		return nil, errSilent
	}
	d.asked = append(d.asked, q)
	return q, nil
}

// Link returns how two devices are connected.
func (d *Driver) Link(a, b Device) link.Link {
	if d.opened() == nil {
		return link.Link{}
	}
	return d.source.link(a, b)
}

// Close closes the driver. A running check of a pool may outlast the driver, and then fails.
func (d *Driver) Close() {
	if d.source == nil {
		return
	}
	d.mu.Lock()
	d.closed = true
	busy := len(d.asked) > 0 || d.Hangs
	d.mu.Unlock()
	d.source.close(busy)
}
