package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/clocks"
	"github.com/benchgraph/benchgraph/device/gpu/watch"
	"github.com/benchgraph/benchgraph/device/standstill"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor/family"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell/transcript"
)

// A sample from a GPU counts only if its devices were idle before, were used by nobody else and not slowed down
// meanwhile, and were left free. Otherwise the block is void, and no member is to blame.

const (
	idlePatience = 2 * time.Minute  // for devices to become idle before a sample, such as to cool down
	freePatience = 20 * time.Second // for their memory to be freed after a sample
)

// errContaminated is the cause of cancellation for a lifecycle whose sample would not count.
var errContaminated = errors.New("something happened on the devices")

// Devices returns the devices of this machine, or of the one for which everything is planned; nil if no benchmark there
// needs any. In that case the driver, which may hang, is not asked.
func (p *Facts) Devices() []gpu.Device { return p.devicesAt(p.Elsewhere) }

// DevicesFor returns the devices of the machine on which a benchmark is measured.
func (p *Facts) DevicesFor(b *hclspec.Benchmark) []gpu.Device { return p.devicesAt(p.PlaceOf(b)) }

// devicesAt returns the devices of a machine, see Devices; nil: this one.
func (p *Facts) devicesAt(e *Elsewhere) []gpu.Device {
	if e != nil {
		return append([]gpu.Device{}, e.Devices...)
	}
	for i := range p.Spec.Benchmarks {
		if b := &p.Spec.Benchmarks[i]; b.GPUs != nil && p.PlaceOf(b) == nil {
			return append([]gpu.Device{}, p.AllDevices()...)
		}
	}
	return nil
}

// AllDevices returns the devices of this machine, or of the one for which everything is planned.
func (c Config) AllDevices() []gpu.Device {
	switch {
	case c.Elsewhere != nil:
		return c.Elsewhere.Devices
	case c.GPUs != nil:
		return c.GPUs.Devices()
	}
	return nil
}

// watched runs one lifecycle on the devices of a lease, and returns the state of the devices meanwhile. Without devices
// it only runs the lifecycle.
func (t *trialTask) watched(ctx context.Context, env *engine.Env, live func(context.Context) error) ([]watch.Summary,
	error) {
	devices := env.Lease.GPUs
	if len(devices) == 0 || t.p.GPUs == nil {
		return nil, live(ctx)
	}
	if err := watch.AwaitIdle(ctx, t.p.GPUs, devices, watch.Limits{}, idlePatience); err != nil {
		if busy, ok := errors.AsType[*watch.Busy](err); ok {
			if busy.Gone {
				return nil, infra(engine.DeviceLost, "start", "a device cannot be measured on any more", busy.Error(),
					LostDeviceRemedy)
			}
			err = voided(engine.DeviceBusy, "start", "the devices are not idle", busy.Error())
		}
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := watch.Begin(t.p.GPUs, devices, t.p.ownsProcess, func() { cancel(errContaminated) })
	err := live(ctx)
	sums := w.Stop()
	if problems := w.Problems(); len(problems) > 0 {
		return sums, voided("contaminated", "run", "the sample does not count", strings.Join(problems, "; "))
	}
	left := t.awaitFree(ctx, devices, sums)
	return sums, cmp.Or(err, left)
}

// unlessStandstill runs one lifecycle. The sample does not count if benchgraph stood still meanwhile: the measured
// program probably did, too, while its clock went on.
func unlessStandstill(ctx context.Context, live func(context.Context) error) error {
	why, err := standstill.During(ctx, errContaminated, live)
	if why != "" {
		return infra("stood_still", "run", "the sample does not count", why,
			"apply again, and let nothing stop benchgraph, freeze it or suspend its machine meanwhile")
	}
	return err
}

// ownsProcess reports whether a process belongs to a command of this project.
func (p *Services) ownsProcess(pid int) bool {
	if c, ok := p.Containers.(interface{ Own(pid int) bool }); ok {
		return c.Own(pid)
	}
	return family.Own(pid)
}

// awaitFree waits until the devices are free again. A device that does not become free is left out from now on, with a
// note. The sample counts, since its devices were free before; later samples need free devices, too.
func (t *trialTask) awaitFree(ctx context.Context, devices []gpu.Device, sums []watch.Summary) error {
	// after use, only the memory counts
	hot := watch.Limits{Temperature: 1000, Utilization: 100}
	err := watch.AwaitIdle(ctx, t.p.GPUs, devices, hot, freePatience)
	if _, busy := errors.AsType[*watch.Busy](err); !busy {
		return err
	}
	for i, d := range devices {
		why, err := watch.Idle(t.p.GPUs, d, hot)
		if err != nil {
			why = err.Error()
		}
		if why = cmp.Or(t.p.GPUs.Lost(d), why); why != "" {
			t.p.GPUs.LeaveOut(d, why)
			sums[i].LeftOut = why
		}
	}
	return nil
}

// voided returns the failure of a block that does not count, whichever member was measured.
func voided(rule, stage, message, evidence string) error {
	return infra(rule, stage, message, evidence,
		"end other programs that use the devices, or let the devices cool down, and apply again")
}

func infra(rule, stage, message, evidence, remedy string) error {
	return &engine.Failure{Failure: failure.Failure{Class: failure.Infra, Rule: rule, Stage: stage, Message: message,
		Evidence: evidence, Remedy: remedy}}
}

// If the file asks for it, the SM clocks of a block's devices are locked while the block runs: see docs/adr/0030.

// clock returns the frequency in MHz for the SM clocks of the block's devices; 0: not locked.
func (t *trialTask) clock() int {
	if g := t.trusted().Bench.GPUs; g != nil {
		return g.SMClock
	}
	return 0
}

// lockClocks locks the clocks of the lease's devices, if the file asks for it. It returns these devices with their
// locked frequency, and a function that resets the clocks.
func (t *trialTask) lockClocks(ctx context.Context, env *engine.Env) (devices []gpu.Device, reset func(),
	err error) {
	mhz := t.clock()
	if mhz == 0 {
		return env.Lease.GPUs, func() {}, nil
	}
	if t.p.Clocks == nil {
		return nil, nil, clocksNotLocked(mhz, errors.New("this process locks no clocks"))
	}
	locked, err := t.p.Clocks.Lock(ctx, env.Lease.GPUs, env.Lease.Locks(), mhz)
	if err != nil && ctx.Err() != nil {
		return nil, nil, err
	} else if err != nil {
		return nil, nil, clocksNotLocked(mhz, err)
	}
	devices = slices.Clone(env.Lease.GPUs)
	for i := range devices {
		devices[i].Locked = mhz
	}
	fmt.Fprintf(env.Log, "benchgraph: SM clocks are locked at %d MHz\n", mhz)
	transcript.Of(env).Section("", fmt.Sprintf("by hand: nvidia-smi --lock-gpu-clocks=%d", mhz), false)
	return devices, func() {
		if err := locked.Reset(); err != nil {
			env.Emit(engine.Event{Type: engine.Note,
				Reason: fmt.Sprintf("clocks were not reset, which the next apply tries again: %v", err)})
			fmt.Fprintf(env.Log, "benchgraph: %v\n", err)
		}
	}, nil
}

const clockRemedy = "apply as root on a machine whose driver can lock clocks, or remove sm_clock from the gpus block"

// clocksNotLocked returns the failure of a block whose clocks could not be locked. A retry would fail as well.
func clocksNotLocked(mhz int, err error) error {
	return &engine.Failure{Err: err, Retry: &engine.Retry{Attempts: 1}, Failure: failure.Failure{
		Class: failure.Infra, Rule: "clocks_not_locked", Stage: "start", Evidence: err.Error(),
		Message: fmt.Sprintf("not measured: the SM clocks could not be locked at %d MHz", mhz), Remedy: clockRemedy,
	}}
}

// observed is watched with two more conditions: benchgraph did not stand still, and locked clocks did not change.
func (t *trialTask) observed(ctx context.Context, env *engine.Env, live func(context.Context) error) ([]watch.Summary,
	error) {
	sums, err := t.watched(ctx, env, func(ctx context.Context) error { return unlessStandstill(ctx, live) })
	if mhz := t.clock(); mhz != 0 && ctx.Err() == nil {
		if odd := clocks.OffClock(sums, mhz); odd != "" {
			return sums, voided("contaminated", "run", "the sample does not count", odd)
		}
	}
	return sums, err
}

// needClocks makes a block with locked clocks wait for a machine that can lock them.
func (b *builder) needClocks(n *engine.Node, t *trialTask) {
	if mhz := t.clock(); mhz != 0 && b.Clocks != nil {
		cannot := b.cannotLock(n.Resources.GPUs, mhz)
		alsoLacks(n, func(context.Context) string { return cannot() })
	}
}

// cannotLock returns a function that reports why no suitable device can have its clocks locked. The driver is asked
// once for all blocks.
func (b *builder) cannotLock(of device.GPUs, mhz int) func() string {
	ask := clockRequest{of, mhz}
	if b.clocks[ask] == nil {
		b.clocks[ask] = sync.OnceValue(func() string {
			suitable := slices.DeleteFunc(slices.Clone(b.Clocks.Driver.Devices()),
				func(d gpu.Device) bool { return !of.Suits(d) })
			if why := b.Clocks.Driver.CannotLock(suitable, mhz); why != "" {
				return fmt.Sprintf("needs SM clocks locked at %d MHz: %s; %s", mhz, why, clockRemedy)
			}
			return ""
		})
	}
	return b.clocks[ask]
}

// clockRequest is a frequency for devices that meet some conditions.
type clockRequest struct {
	of  device.GPUs
	mhz int
}
