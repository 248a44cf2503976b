// Package standstill notices that this process stood still while something was measured: it was stopped (SIGSTOP,
// Ctrl-Z), frozen, or its machine was paused or suspended.
//
// What is measured stood still with it, most often, and its clocks went on. A process that stands is not one that waits
// for a core: on a busy machine a tick comes late, too, but then some thread of the process ran or was ready to run all
// the while, which the kernel counts. So a late tick alone is no evidence.
package standstill

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	every = time.Second / 2
	// Standing for less than this is not told from a tick that is late for another reason, such as a disk.
	least = time.Second
	// So late does a tick not come on a machine that is only busy. It is what is left to judge by on a system that
	// does not tell how long threads wait for cores.
	surely = 10 * time.Second
)

// look is what the clocks of this process say at one time.
type look struct {
	at    time.Time     // before the rest was read
	took  time.Duration // for the rest: a thread may have to wait for a core in the middle of it
	slept time.Duration // how long the machine was suspended so far, which the clock of at does not count
	// by thread: how long it has run or was ready to; nil: this system does not tell
	ready map[int]time.Duration
}

func see() look {
	l := look{at: time.Now(), slept: slept(), ready: ready()}
	l.took = time.Since(l.at)
	return l
}

// slept is how long the machine was suspended since it was started. It is the difference of two clocks, which are read
// again where something came between them.
func slept() time.Duration {
	var before, with, after unix.Timespec
	for range 10 {
		err := errors.Join(unix.ClockGettime(running, &before), unix.ClockGettime(always, &with),
			unix.ClockGettime(running, &after))
		if err != nil {
			return 0
		}
		if after.Nano()-before.Nano() < int64(time.Millisecond) {
			break
		}
	}
	return time.Duration(with.Nano() - after.Nano())
}

// stood is how long the process stood still between two looks of which the second was to come after a while.
func stood(before, now look, after time.Duration) time.Duration {
	// All that threads waited from the end of one look to the beginning of the next was counted between the two.
	slept, late := max(0, now.slept-before.slept), max(0, now.at.Sub(before.at)-before.took-after)
	if before.ready == nil || now.ready == nil {
		if late < surely {
			late = 0
		}
		return slept + late
	}
	// The one thread that was ready the longest tells, not the sum: what many did before a stop would outweigh it.
	longest := time.Duration(0)
	for thread, ready := range now.ready {
		longest = max(longest, ready-before.ready[thread])
	}
	return slept + max(0, late-longest)
}

// Watch looks at the clocks until it is stopped.
type Watch struct {
	last look
	why  string
	stop chan struct{}
	done sync.WaitGroup
}

// Begin begins to watch. alarm is called at most once, when this process stood still.
func Begin(alarm func()) *Watch {
	w := &Watch{last: see(), stop: make(chan struct{})}
	w.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for w.why == "" {
			select {
			case <-w.stop:
				w.look()
				return
			case <-tick.C:
				if w.look(); w.why != "" {
					alarm()
				}
			}
		}
	})
	return w
}

func (w *Watch) look() {
	now := see()
	if d := stood(w.last, now, every); d >= least {
		w.why = fmt.Sprintf("benchgraph and the machine's other processes, or benchgraph alone, stood still for %s",
			d.Round(time.Second/10))
	}
	w.last = now
}

// Stop ends the watch. It says how long this process stood still; empty: it did not.
func (w *Watch) Stop() string {
	close(w.stop)
	w.done.Wait()
	return w.why
}

// During calls do, whose context ends with a cause as soon as this process is known to have stood still. It says how
// long that was; empty: it did not.
func During(ctx context.Context, cause error, do func(context.Context) error) (stood string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := Begin(func() { cancel(cause) })
	err = do(ctx)
	return w.Stop(), err
}

// Timeout returns a context that ends with a cause after a while in which this process did not stand still. What it
// waits for may have ended meanwhile, or have stood still, too: after each standstill it gets a moment to tell.
func Timeout(ctx context.Context, after time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for left, late := after, false; left > 0 || late; {
			slice := every
			if left > 0 {
				slice = min(left, every)
			}
			begun := time.Now()
			select {
			case <-ctx.Done():
				return
			case <-time.After(slice):
			}
			took := time.Since(begun)
			// A machine that makes each slice late still comes to the end of them.
			if late = !late && took > slice+least; late {
				took = slice
			}
			left -= took
		}
		cancel(cause)
	}()
	return ctx, func() { cancel(context.Canceled) }
}
