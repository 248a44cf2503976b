// Package standstill detects that this process stood still during a measurement: it was stopped (SIGSTOP, Ctrl-Z) or
// frozen, or its machine was paused or suspended.
//
// In most cases the measured program stood still, too, while the clocks went on. Standing still differs from waiting
// for a core: on a busy machine a tick comes late as well, but a thread of the process ran or was ready to run
// meanwhile, which the kernel counts. So a late tick alone is no evidence.
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
	// A shorter standstill cannot be distinguished from a tick that is late for another reason, such as a disk.
	least = time.Second
	// A merely busy machine does not delay a tick this long. It is the criterion on systems that do not report how
	// long threads wait for cores.
	surely = 10 * time.Second
)

// look is a reading of this process's clocks.
type look struct {
	at    time.Time     // before the other readings
	took  time.Duration // duration of the other readings: a thread may have to wait for a core meanwhile
	slept time.Duration // total time of suspension, which the clock of at does not count
	// by thread: how long it has run or was ready to run; nil: not reported
	ready map[int]time.Duration
}

func see() look {
	l := look{at: time.Now(), slept: slept(), ready: ready()}
	l.took = time.Since(l.at)
	return l
}

// slept returns how long the machine has been suspended since its start: the difference of two clocks. It reads them
// again if something delayed the readings.
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

// stood returns how long the process stood still between two readings; the second was due after a while.
func stood(before, now look, after time.Duration) time.Duration {
	// The time between the end of one reading and the beginning of the next is covered by the counters of ready.
	slept, late := max(0, now.slept-before.slept), max(0, now.at.Sub(before.at)-before.took-after)
	if before.ready == nil || now.ready == nil {
		if late < surely {
			late = 0
		}
		return slept + late
	}
	// The thread that was ready for longest counts, not the sum: many threads before a stop would outweigh it.
	longest := time.Duration(0)
	for thread, ready := range now.ready {
		longest = max(longest, ready-before.ready[thread])
	}
	return slept + max(0, late-longest)
}

// Watch reads the clocks until it is stopped.
type Watch struct {
	last look
	why  string
	stop chan struct{}
	done sync.WaitGroup
}

// Begin starts a watch. alarm is called at most once, if this process stood still.
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

// Stop ends the watch. It returns how long this process stood still, in words; empty: it did not.
func (w *Watch) Stop() string {
	close(w.stop)
	w.done.Wait()
	return w.why
}

// During calls do with a context that ends with cause as soon as this process is known to have stood still. It
// returns how long that was, in words; empty: it did not.
func During(ctx context.Context, cause error, do func(context.Context) error) (stood string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := Begin(func() { cancel(cause) })
	err = do(ctx)
	return w.Stop(), err
}

// Timeout returns a context that ends with cause after a time in which this process did not stand still. The awaited
// program may have stood still or ended meanwhile: after each standstill, it gets a moment to report.
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
			// A machine on which every slice is late still reaches the end.
			if late = !late && took > slice+least; late {
				took = slice
			}
			left -= took
		}
		cancel(cause)
	}()
	return ctx, func() { cancel(context.Canceled) }
}
