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

// Names of the providers that tell of GPUs.
const (
	ProviderNVML      = "nvml"
	ProviderNvidiaSMI = "nvidia-smi"
	ProviderNone      = "none"
)

// Reading is how a GPU is at one moment. What the driver does not tell is nil or empty.
type Reading struct {
	Used        int64             `json:"-"`                             // bytes; as in Device
	Utilization *int              `json:"utilization_percent,omitempty"` // of the last sampling period of the driver
	Power       *float64          `json:"power_w,omitempty"`
	PowerLimit  *float64          `json:"-"` // W, as it is enforced; as in Device
	Temperature *int              `json:"temperature_c,omitempty"`
	SMClock     *int              `json:"sm_clock_mhz,omitempty"`
	MaxSMClock  *int              `json:"max_sm_clock_mhz,omitempty"`
	MemoryClock *int              `json:"memory_clock_mhz,omitempty"`
	Slowdowns   []string          `json:"slowdowns,omitempty"`       // why the clocks are not higher: the names below
	Uncorrected *uint64           `json:"ecc_uncorrected,omitempty"` // errors of memory since the driver was loaded
	Xids        []uint64          `json:"xids,omitempty"`            // critical errors since the device was last read
	Processes   []process.Process `json:"processes"`
}

// Why the clocks of a GPU are not higher than they are.
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

// Driver tells of the GPUs of this machine. It is safe for concurrent use.
type Driver struct {
	answer
	open func() // asks for the answer, once; nil: it is there

	Elsewhere bool // the numbers of processes that it tells may not be those that are seen from here

	mu     sync.Mutex
	asked  []*question           // that the source has not answered
	closed bool                  // it is asked nothing more
	left   map[string]Quarantine // by UUID
	tell   func(Quarantine)
	doubts map[string]int // by UUID: how many blocks in a row were void because of its speed
}

// answer is what a driver says when it is opened.
type answer struct {
	Provider string
	Reason   string // with ProviderNone: why; else what is odd, if anything
	// devices that are there and left out, each with the reason and the remedy, and a driver that does not answer
	Odd     []string
	Version string // of the kernel's driver; empty: not told
	CUDA    string // the newest that the driver serves; empty: not told
	Hidden  int    // devices that the caller was told to leave alone
	Hangs   bool   // a call was not answered in time, and may never be; Reason says about which device

	devices []Device // in the order of their index
	source  source
}

// source is one way to ask a driver.
type source interface {
	read(Device) (Reading, error)
	link(a, b Device) link.Link
	close(busy bool) // busy: somebody is asking it, and may be for ever
}

// Options say how the driver is found and what of it may be used.
type Options struct {
	Library  string // of NVML: path or name; empty: as the driver installs it
	Mask     Mask
	MPS      string        // directory of the pipes of MPS's control daemon; empty: it is not looked for
	Patience time.Duration // with each call while it is opened; 0: silence
}

// NewDriver returns a Driver that is opened by the first question about devices: a command that needs none never waits
// for the driver.
func NewDriver(ctx context.Context, o Options) *Driver {
	d := &Driver{}
	d.open = sync.OnceFunc(func() { d.answer, d.Elsewhere = find(ctx, o), process.Elsewhere() })
	return d
}

// OpenDriver asks NVML, or else nvidia-smi, for the GPUs of this machine. Without either there are none, and Reason
// says why.
func OpenDriver(ctx context.Context, o Options) *Driver {
	d := NewDriver(ctx, o)
	d.open()
	return d
}

// Devices are the GPUs that may be used, in the order of their index.
func (d *Driver) Devices() []Device {
	if d.open != nil {
		d.open()
	}
	return d.devices
}

// opened is whom to ask; nil: nobody.
func (d *Driver) opened() source {
	d.Devices()
	return d.source
}

// Keep leaves all devices but some alone.
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
			if a.Hangs {
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

// ErrGone is wrapped by the error for a device that has vanished: it fell off the bus, or was taken away.
var ErrGone = errors.New("the device is gone")

// Read says how a device is now, or that the driver does not say it in time.
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

// silence is how long a driver may take to answer before it counts as one that hangs. Where it is not kept loaded,
// seconds are usual.
const silence = 20 * time.Second

var (
	errSilent = fmt.Errorf("the driver has not answered for %s", silence)
	errClosed = errors.New("the driver is closed")
)

// question is one reading that the source is asked for.
type question struct {
	of    string // UUID
	since time.Time
}

// ask reads a device. Nothing can end a read that hangs: it is left alone, and that device is not read again until it
// has come back.
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
	return r.Reading, cmp.Or(err, r.error)
}

// within returns what f returns, or an error after patience or at the end of ctx. A call that hangs cannot be ended:
// its goroutine stays behind.
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

// begin notes that a device is read, unless a read of it hangs. Several may be under way: of a look of the pool, and of
// who was granted the device meanwhile.
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

// Link says how two devices are connected.
func (d *Driver) Link(a, b Device) link.Link {
	if d.opened() == nil {
		return link.Link{}
	}
	return d.source.link(a, b)
}

// Close lets go of the driver. A look of a pool may outlast it, and fails.
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
