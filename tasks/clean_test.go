//go:build linux && cgo

package tasks

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/nvmltest"
	"github.com/benchgraph/benchgraph/device/gpu/watch"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/failure"
)

// watchedWorld returns a trial on the devices of a scenario, and a function that plays another scenario.
func watchedWorld(t *testing.T, text string) (trial *trialTask, env *engine.Env, play func(string)) {
	t.Helper()
	library, play := nvmltest.World(t, false)
	play(text)
	driver := gpu.OpenDriver(t.Context(), gpu.Options{Library: library})
	t.Cleanup(driver.Close)
	trial = &trialTask{p: &Drawing{Facts: &Facts{Services: &Services{Config: Config{GPUs: driver}}}}}
	return trial, &engine.Env{Lease: &device.Lease{GPUs: driver.Devices()}, Log: io.Discard,
		Emit: func(engine.Event) {}}, play
}

// Memory that stays in use after a sample does not void the sample. The sample records it, and the device is not
// granted until the memory is free.
func TestDeviceWithMemoryLeftInUseIsLeftOut(t *testing.T) {
	const both = "gpu uuid=GPU-a name=H100 mib=81559 used=4 temp=31\ngpu uuid=GPU-b name=H100 mib=81559 used=4 " +
		"temp=83\n"
	dirty := strings.Replace(both, "used=4", "used=60000", 1)
	trial, env, play := watchedWorld(t, strings.Replace(both, "83", "40", 1))
	synctest.Test(t, func(t *testing.T) {
		driver := trial.p.GPUs
		var told []string
		driver.Tell(func(q gpu.Quarantine) { told = append(told, q.String()) })
		begun := time.Now()
		crashed := errors.New("it crashed")
		sums, err := trial.watched(t.Context(), env, func(context.Context) error { play(dirty); return crashed })
		if err != crashed || len(sums) != 2 {
			t.Fatalf("%+v, %v", sums, err)
		}
		const why = "58.59 GiB of its memory in use by nobody who can be seen"
		if sums[0].LeftOut != why || sums[1].LeftOut != "" {
			t.Errorf("%+v", sums)
		}
		if took := time.Since(begun); took != freePatience {
			t.Errorf("it took %s", took)
		}
		if len(told) != 1 || told[0] != "device 0 (GPU-a) is left out until it is free: "+why {
			t.Errorf("told %q", told)
		}
		if got := watch.Ready(driver)(driver.Devices()[0]); got != why {
			t.Errorf("it is kept back by %q", got)
		}
		play(both)
		if got := watch.Ready(driver)(driver.Devices()[0]); got != "" {
			t.Errorf("once free, it is kept back by %q", got)
		}
		if got := driver.Lost(driver.Devices()[0]); got != "" {
			t.Errorf("once free, it is lost: %q", got)
		}
	})
}

// The driver reports a critical error once. Whether the check before or the one after a sample reads it, nothing more
// is measured on the device, and the failure does not blame others.
func TestNothingIsMeasuredOnALostDevice(t *testing.T) {
	const idle = "gpu uuid=GPU-a name=H100 mib=81559 used=4 temp=31\n"
	const xid = "Xid 79 (fallen off the bus)"
	refuses := func(t *testing.T, trial *trialTask, env *engine.Env) {
		t.Helper()
		_, err := trial.watched(t.Context(), env, func(context.Context) error { t.Error("it ran"); return nil })
		f, _ := errors.AsType[*engine.Failure](err)
		if f == nil || f.Class != failure.Infra || f.Rule != engine.DeviceLost || f.Remedy != LostDeviceRemedy ||
			!strings.Contains(f.Evidence, xid) {
			t.Errorf("%+v", err)
		}
	}
	t.Run("gate", func(t *testing.T) {
		trial, env, play := watchedWorld(t, idle)
		synctest.Test(t, func(t *testing.T) {
			play(idle + "xid on=GPU-a code=79\n")
			refuses(t, trial, env)
			refuses(t, trial, env)
		})
	})
	t.Run("aftermath", func(t *testing.T) {
		trial, env, play := watchedWorld(t, idle)
		synctest.Test(t, func(t *testing.T) {
			dirty := strings.Replace(idle, "used=4", "used=60000", 1)
			sums, err := trial.watched(t.Context(), env, func(context.Context) error {
				play(dirty)
				time.AfterFunc(freePatience/2, func() { play(idle + "xid on=GPU-a code=79\n") })
				return nil
			})
			if err != nil || len(sums) != 1 || sums[0].LeftOut != xid {
				t.Errorf("%+v, %v", sums, err)
			}
			refuses(t, trial, env)
		})
	})
}

// inBoxes is an executor of containers with one process, of that number.
type inBoxes struct {
	executor.Executor
	pid int
}

func (b inBoxes) Own(pid int) bool { return pid == b.pid }

// A process in one of our containers is our own.
func TestProcessInOwnContainerIsOurs(t *testing.T) {
	const idle = "gpu uuid=GPU-a name=H100 mib=81559 used=4 temp=31\n"
	trial, env, play := watchedWorld(t, idle)
	synctest.Test(t, func(t *testing.T) {
		for pid, want := range map[int]string{4242: "", 4243: "foreign process 4242"} {
			trial.p.Containers = inBoxes{pid: pid}
			sums, _ := trial.watched(t.Context(), env, func(context.Context) error {
				play(idle + "process on=GPU-a pid=4242 mib=7\n")
				time.Sleep(3 * time.Second)
				play(idle)
				return nil
			})
			if got := strings.Join(sums[0].Problems, ", "); !strings.HasPrefix(got, want) ||
				(got == "") != (want == "") {
				t.Errorf("%q, want %q", got, want)
			}
		}
	})
}
