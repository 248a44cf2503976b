package tasks

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
)

// A sample from a GPU counts only when its devices were idle before, were used by nobody else and slowed down by
// nothing while it was taken, and were left free. What is not like that voids the block, and is nobody's fault.

const (
	idlePatience = 2 * time.Minute  // for devices to get idle before a sample, such as to cool down
	freePatience = 20 * time.Second // for their memory to be freed after it
)

// errContaminated is the cause with which a lifecycle ends early: what it would measure does not count.
var errContaminated = errors.New("something happened on the devices")

// devices are those of the machine that is planned for; nil where no benchmark needs any: then nobody asks the driver,
// which may hang.
func (p *Facts) Devices() []device.Device {
	if !slices.ContainsFunc(p.Spec.Benchmarks, func(b hclspec.Benchmark) bool { return b.GPUs != nil }) {
		return nil
	}
	if all := p.AllDevices(); all != nil {
		return all
	}
	return []device.Device{}
}

func (c Config) AllDevices() []device.Device {
	switch {
	case c.Elsewhere != nil:
		return c.Elsewhere.Devices
	case c.GPUs != nil:
		return c.GPUs.Devices()
	}
	return nil
}

// severalKinds says whether the devices of the machine are of more than one kind.
func (p *Facts) severalKinds() bool {
	return len(slices.Compact(device.Kinds(p.Devices()))) > 1
}

// watched runs one lifecycle on the devices of a lease and tells how they were meanwhile. Without devices it only runs
// it.
func (t *trialTask) watched(ctx context.Context, env *engine.Env, live func(context.Context) error) ([]device.Summary,
	error) {
	devices := env.Lease.GPUs
	if len(devices) == 0 || t.p.GPUs == nil {
		return nil, live(ctx)
	}
	if err := t.p.GPUs.AwaitIdle(ctx, devices, device.Limits{}, idlePatience); err != nil {
		if busy, ok := errors.AsType[*device.Busy](err); ok {
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
	w := t.p.GPUs.Watch(devices, t.p.own, func() { cancel(errContaminated) })
	err := live(ctx)
	sums := w.Stop()
	if problems := w.Problems(); len(problems) > 0 {
		return sums, voided("contaminated", "run", "the sample does not count", strings.Join(problems, "; "))
	}
	left := t.leftFree(ctx, devices, sums)
	return sums, cmp.Or(err, left)
}

// own says whether a process belongs to what this project runs.
func (p *Services) own(pid int) bool {
	if c, ok := p.Containers.(interface{ Own(pid int) bool }); ok {
		return c.Own(pid)
	}
	return executor.Own(pid)
}

// leftFree waits until the devices are free again. One that is not is left out, which is told and noted: what was
// measured was measured on free devices, and what comes next shall be, too.
func (t *trialTask) leftFree(ctx context.Context, devices []device.Device, sums []device.Summary) error {
	// it was just used: only what is left in its memory counts
	hot := device.Limits{Temperature: 1000, Utilization: 100}
	err := t.p.GPUs.AwaitIdle(ctx, devices, hot, freePatience)
	if _, busy := errors.AsType[*device.Busy](err); !busy {
		return err
	}
	for i, d := range devices {
		why, err := t.p.GPUs.Idle(d, hot)
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
	return &engine.Failure{Failure: cache.Failure{Class: cache.Infra, Rule: rule, Stage: stage, Message: message,
		Evidence: evidence, Remedy: remedy}}
}
