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

// A sample from a GPU counts only when its devices were idle before, were used by nobody else and slowed down by
// nothing while it was taken, and were left free. What is not like that voids the block, and is nobody's fault.

const (
	idlePatience = 2 * time.Minute  // for devices to get idle before a sample, such as to cool down
	freePatience = 20 * time.Second // for their memory to be freed after it
)

// errContaminated is the cause with which a lifecycle ends early: what it would measure does not count.
var errContaminated = errors.New("something happened on the devices")

// Devices are those of this machine, or of the one that everything is planned for; nil where no benchmark that is
// measured there needs any: then nobody asks the driver, which may hang.
func (p *Facts) Devices() []gpu.Device { return p.devicesAt(p.Elsewhere) }

// DevicesFor are those of the machine on which a benchmark is measured.
func (p *Facts) DevicesFor(b *hclspec.Benchmark) []gpu.Device { return p.devicesAt(p.PlaceOf(b)) }

// devicesAt are the devices of a machine, see Devices; nil: this one.
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

// AllDevices are those of this machine, or of the one that everything is planned for.
func (c Config) AllDevices() []gpu.Device {
	switch {
	case c.Elsewhere != nil:
		return c.Elsewhere.Devices
	case c.GPUs != nil:
		return c.GPUs.Devices()
	}
	return nil
}

// watched runs one lifecycle on the devices of a lease and tells how they were meanwhile. Without devices it only runs
// it.
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
	w := watch.Begin(t.p.GPUs, devices, t.p.own, func() { cancel(errContaminated) })
	err := live(ctx)
	sums := w.Stop()
	if problems := w.Problems(); len(problems) > 0 {
		return sums, voided("contaminated", "run", "the sample does not count", strings.Join(problems, "; "))
	}
	left := t.leftFree(ctx, devices, sums)
	return sums, cmp.Or(err, left)
}

// moving runs one lifecycle, which does not count when benchgraph stood still meanwhile: so did what is measured, most
// often, and its clock went on.
func moving(ctx context.Context, live func(context.Context) error) error {
	why, err := standstill.During(ctx, errContaminated, live)
	if why != "" {
		return infra("stood_still", "run", "the sample does not count", why,
			"apply again, and let nothing stop benchgraph, freeze it or suspend its machine meanwhile")
	}
	return err
}

// own says whether a process belongs to what this project runs.
func (p *Services) own(pid int) bool {
	if c, ok := p.Containers.(interface{ Own(pid int) bool }); ok {
		return c.Own(pid)
	}
	return family.Own(pid)
}

// leftFree waits until the devices are free again. One that is not is left out, which is told and noted: what was
// measured was measured on free devices, and what comes next shall be, too.
func (t *trialTask) leftFree(ctx context.Context, devices []gpu.Device, sums []watch.Summary) error {
	// it was just used: only what is left in its memory counts
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

// voided is the failure of a block that does not count, whoever was measured.
func voided(rule, stage, message, evidence string) error {
	return infra(rule, stage, message, evidence,
		"end what else uses the devices, or let them cool down, and apply again")
}

func infra(rule, stage, message, evidence, remedy string) error {
	return &engine.Failure{Failure: failure.Failure{Class: failure.Infra, Rule: rule, Stage: stage, Message: message,
		Evidence: evidence, Remedy: remedy}}
}

// Where the file asks for it, the SM clocks of a block's devices are locked as long as the block takes: see
// docs/adr/0030.

// clock is at how many MHz the SM clocks of the block's devices are to be locked; 0: they are not.
func (t *trialTask) clock() int {
	if g := t.trusted().Bench.GPUs; g != nil {
		return g.SMClock
	}
	return 0
}

// lockClocks locks the clocks of the lease's devices, where the file asks for it. It returns these devices, as what
// they are now.
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

// clocksNotLocked is the failure of a block that was not measured since its clocks could not be locked. It would be the
// same the next moment.
func clocksNotLocked(mhz int, err error) error {
	return &engine.Failure{Err: err, Retry: &engine.Retry{Attempts: 1}, Failure: failure.Failure{
		Class: failure.Infra, Rule: "clocks_not_locked", Stage: "start", Evidence: err.Error(),
		Message: fmt.Sprintf("not measured: the SM clocks could not be locked at %d MHz", mhz), Remedy: clockRemedy,
	}}
}

// observed is watched, where the devices must also have kept to the clocks that they were locked at.
func (t *trialTask) observed(ctx context.Context, env *engine.Env, live func(context.Context) error) ([]watch.Summary,
	error) {
	sums, err := t.watched(ctx, env, func(ctx context.Context) error { return moving(ctx, live) })
	if mhz := t.clock(); mhz != 0 && ctx.Err() == nil {
		if odd := clocks.OffClock(sums, mhz); odd != "" {
			return sums, voided("contaminated", "run", "the sample does not count", odd)
		}
	}
	return sums, err
}

// lockable lets a block wait for a machine that can lock the clocks of its devices, where it asks for that.
func (b *builder) lockable(n *engine.Node, t *trialTask) {
	if mhz := t.clock(); mhz != 0 && b.Clocks != nil {
		alsoLacks(n, b.cannotLock(n.Resources.GPUs, mhz))
	}
}

// cannotLock says why the clocks of no device that meets the conditions can be locked. The driver is asked once for all
// blocks.
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

// clockRequest is a clock for devices of some kind.
type clockRequest struct {
	of  device.GPUs
	mhz int
}
