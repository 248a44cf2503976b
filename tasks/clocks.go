package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
)

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
func (t *trialTask) lockClocks(ctx context.Context, env *engine.Env) (devices []device.Device, reset func(),
	err error) {
	mhz := t.clock()
	if mhz == 0 {
		return env.Lease.GPUs, func() {}, nil
	}
	if t.p.Clocks == nil {
		return nil, nil, clocksNotLocked(mhz, errors.New("this process locks no clocks"))
	}
	locked, err := t.p.Clocks.Lock(ctx, env.Lease, mhz)
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
	return &engine.Failure{Err: err, Retry: &engine.Retry{Attempts: 1}, Failure: cache.Failure{
		Class: cache.Infra, Rule: "clocks_not_locked", Stage: "start", Evidence: err.Error(),
		Message: fmt.Sprintf("not measured: the SM clocks could not be locked at %d MHz", mhz), Remedy: clockRemedy,
	}}
}

// observed is watched, where the devices must also have kept to the clocks that they were locked at.
func (t *trialTask) observed(ctx context.Context, env *engine.Env, live func(context.Context) error) ([]device.Summary,
	error) {
	sums, err := t.watched(ctx, env, live)
	mhz := t.clock()
	if mhz == 0 || ctx.Err() != nil {
		return sums, err
	}
	if odd := device.OffClock(sums, mhz); odd != "" {
		return sums, voided("contaminated", "run", "the sample does not count", odd)
	}
	return sums, err
}

// lockable lets a block wait for a machine that can lock the clocks of its devices, where it asks for that.
func (b *builder) lockable(n *engine.Node, t *trialTask) {
	mhz := t.clock()
	if mhz == 0 || b.Clocks == nil {
		return
	}
	alsoLacks(n, b.cannotLock(n.Resources.GPUs, mhz))
}

// cannotLock says why the clocks of no device that meets the conditions can be locked. The driver is asked once for all
// blocks.
func (b *builder) cannotLock(of device.GPUs, mhz int) func() string {
	ask := clockRequest{of, mhz}
	if b.clocks[ask] == nil {
		b.clocks[ask] = sync.OnceValue(func() string {
			var suitable []device.Device
			for _, d := range b.Clocks.Driver.Devices() {
				if of.Suits(d) {
					suitable = append(suitable, d)
				}
			}
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
