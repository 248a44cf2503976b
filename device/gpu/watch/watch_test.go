package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
	"github.com/benchgraph/benchgraph/device/process"
)

// play returns a driver of two devices that are as a function of the time says.
func play(at func(d gpu.Device, second int) (gpu.Reading, error)) (*gpu.Driver, []gpu.Device) {
	devices, begun := gputest.Devices(2, "NVIDIA H100", 80<<30), time.Now()
	return gpu.DriverOf(devices, func(d gpu.Device) (gpu.Reading, error) {
		return at(d, int(time.Since(begun)/time.Second))
	}), devices
}

func ptr[T any](v T) *T { return &v }

func TestIdleSaysWhyNot(t *testing.T) {
	for _, test := range []struct {
		name string
		r    gpu.Reading
		want string
	}{
		{"idle", gpu.Reading{Used: 600 << 20, Utilization: ptr(0), Temperature: ptr(41)}, ""},
		{"nothing told", gpu.Reading{}, ""},
		{"somebody", gpu.Reading{Used: 40 << 30, Processes: []process.Process{{PID: 2147483647, Used: 40 << 30}}},
			"process 2147483647 with 40 GiB"},
		{"memory that nobody owns", gpu.Reading{Used: 40 << 30}, "40 GiB of its memory in use by nobody"},
		{"busy and hot", gpu.Reading{Utilization: ptr(30), Temperature: ptr(84)}, "30 % busy, 84 °C, more than 70"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, devices := play(func(gpu.Device, int) (gpu.Reading, error) { return test.r, nil })
			why, err := Idle(d, devices[0], Limits{})
			if err != nil || (why == "") != (test.want == "") || !strings.Contains(why, test.want) {
				t.Errorf("%q, %v", why, err)
			}
		})
	}
}

// An interrupted apply does not wait for a hanging driver.
func TestAwaitIdleEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, devices := play(func(gpu.Device, int) (gpu.Reading, error) {
			time.Sleep(time.Minute)
			return gpu.Reading{}, nil
		})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, errors.New("interrupted"))
		defer cancel()
		begun := time.Now()
		if err := AwaitIdle(ctx, d, devices, Limits{}, time.Hour); err == nil || err.Error() != "interrupted" ||
			time.Since(begun) != 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		time.Sleep(time.Minute)
	})
}

// Beside a device that is gone, no other one is waited for.
func TestAwaitIdleFailsForAGoneDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, devices := play(func(dev gpu.Device, _ int) (gpu.Reading, error) {
			if dev.Index == 1 {
				return gpu.Reading{}, gpu.ErrGone
			}
			return gpu.Reading{Temperature: ptr(80)}, nil
		})
		begun := time.Now()
		busy, ok := errors.AsType[*Busy](AwaitIdle(t.Context(), d, devices, Limits{}, time.Hour))
		if !ok || !busy.Gone || busy.Device.Index != 1 || time.Since(begun) != 0 {
			t.Errorf("%v after %s", busy, time.Since(begun))
		}
	})
}

func TestAwaitIdleWaitsForTheOthersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, devices := play(func(dev gpu.Device, second int) (gpu.Reading, error) {
			if dev.Index == 1 && second < 30 {
				return gpu.Reading{Processes: []process.Process{{PID: 2147483647}}}, nil
			}
			return gpu.Reading{}, nil
		})
		begun := time.Now()
		var busy *Busy
		if err := AwaitIdle(t.Context(), d, devices, Limits{}, 10*time.Second); !errors.As(err, &busy) ||
			busy.Device.Index != 1 || busy.Gone || time.Since(begun) != 10*time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		if err := AwaitIdle(t.Context(), d, devices, Limits{}, time.Minute); err != nil ||
			time.Since(begun) != 30*time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		d, devices := play(func(gpu.Device, int) (gpu.Reading, error) {
			return gpu.Reading{}, fmt.Errorf("%w: fell off the bus", gpu.ErrGone)
		})
		begun := time.Now()
		var busy *Busy
		if err := AwaitIdle(t.Context(), d, devices, Limits{}, time.Minute); !errors.As(err, &busy) || !busy.Gone ||
			time.Since(begun) > 0 {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
	// A critical error is told once: who waits reads it, and the device is lost from then on.
	synctest.Test(t, func(t *testing.T) {
		told := false
		d, devices := play(func(dev gpu.Device, _ int) (gpu.Reading, error) {
			if dev.Index == 1 && !told {
				told = true
				return gpu.Reading{Xids: []uint64{79}}, nil
			}
			return gpu.Reading{}, nil
		})
		for range 2 {
			var busy *Busy
			if err := AwaitIdle(t.Context(), d, devices, Limits{}, time.Minute); !errors.As(err, &busy) || !busy.Gone ||
				busy.Device.Index != 1 || busy.Why != "Xid 79 (fallen off the bus)" {
				t.Errorf("%v", err)
			}
		}
	})
}

// Events on a device during a sample: some make the sample void, others only add a flag.
func TestWatch(t *testing.T) {
	quiet := gpu.Reading{Used: 30 << 30, Utilization: ptr(90), Power: ptr(600.0), Temperature: ptr(60),
		SMClock:     ptr(1980),
		Uncorrected: ptr(uint64(3)), Processes: []process.Process{{PID: 1000}}}
	with := func(change func(*gpu.Reading)) gpu.Reading {
		r := quiet
		change(&r)
		return r
	}
	for _, test := range []struct {
		name     string
		odd      gpu.Reading // in the fifth second
		err      error
		problems []string
		flags    []string
	}{
		{name: "nothing", odd: quiet},
		{name: "the power cap", odd: with(func(r *gpu.Reading) {
			r.Slowdowns = []string{gpu.SlowPowerCap}
		}), flags: []string{gpu.SlowPowerCap}},
		{name: "heat", odd: with(func(r *gpu.Reading) {
			r.Slowdowns = []string{gpu.SlowThermal, gpu.SlowSWThermal}
		}), problems: []string{gpu.SlowThermal, gpu.SlowSWThermal}},
		{name: "the power brake", odd: with(func(r *gpu.Reading) {
			r.Slowdowns = []string{gpu.SlowPowerBrake}
		}), problems: []string{gpu.SlowPowerBrake}},
		{name: "somebody else", odd: with(func(r *gpu.Reading) {
			r.Processes = append(slices.Clone(r.Processes), process.Process{PID: 2147483647, Used: 5})
		}), problems: []string{"foreign process 2147483647"}},
		{name: "broken memory", odd: with(func(r *gpu.Reading) {
			r.Uncorrected = ptr(uint64(4))
		}), problems: []string{"uncorrected memory errors"}},
		{name: "a broken device", odd: with(func(r *gpu.Reading) {
			r.Xids = []uint64{79}
		}), problems: []string{"Xid 79 (fallen off the bus)"}},
		{name: "an error that nobody knows", odd: with(func(r *gpu.Reading) {
			r.Xids = []uint64{777, 777}
		}), problems: []string{"Xid 777"}},
		{
			name: "a faulty program", odd: with(func(r *gpu.Reading) { r.Xids = []uint64{31, 31, 13, 43, 45, 109} }),
			flags: []string{"Xid 31 (page fault)", "Xid 13 (graphics engine exception)", "Xid 43 (stopped processing)",
				"Xid 45 (preemptive cleanup)", "Xid 109 (context switch timeout)"},
		},
		{name: "a program that brings the device down", odd: with(func(r *gpu.Reading) {
			r.Xids = []uint64{31, 95}
		}), problems: []string{"Xid 95 (uncontained memory error)"}, flags: []string{"Xid 31 (page fault)"}},
		{name: "lost", err: fmt.Errorf("%w: lost", gpu.ErrGone), problems: []string{"the device is gone: lost"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, devices := play(func(dev gpu.Device, second int) (gpu.Reading, error) {
					if dev.Index == 1 && second == 5 {
						return test.odd, test.err
					}
					return quiet, nil
				})
				alarms := 0
				w := Begin(d, devices, func(pid int) bool { return pid == 1000 }, func() { alarms++ })
				time.Sleep(9500 * time.Millisecond)
				early := w.Problems()
				sums := w.Stop()
				if alarms != min(1, len(test.problems)) {
					t.Errorf("%d alarms", alarms)
				}
				if s := sums[0]; s.Looks != 11 || len(s.Problems)+len(s.Flags) != 0 || s.Power.Mean != 600 ||
					s.SMClock.Min != 1980 || s.Temperature.Max != 60 {
					t.Errorf("the other device: %+v", s)
				}
				if !slices.EqualFunc(sums[1].Problems, test.problems, strings.HasSuffix) ||
					!slices.Equal(sums[1].Flags, test.flags) || len(early) != len(test.problems) {
					t.Errorf("%q, %q, early %q", sums[1].Problems, sums[1].Flags, early)
				}
			})
		})
	}
}

// The driver goes on telling of a process for a moment after its end. Whose it was cannot be found out any more; a
// process of another PID namespace stays.
func TestAProcessThatEndsDuringALookIsNoIntruder(t *testing.T) {
	const gone, elsewhere = 2147483646, 2147483647
	for _, test := range []struct {
		name     string
		pid      int
		forgets  time.Duration
		problems []string
	}{
		{"it is forgotten at once", gone, 30 * time.Millisecond, nil},
		{"it is forgotten later", gone, 400 * time.Millisecond, nil},
		{"it stays", elsewhere, time.Hour, []string{"foreign process 2147483647"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, reads := time.Now(), 0
				d, devices := play(func(gpu.Device, int) (r gpu.Reading, _ error) {
					if reads++; reads == 4 {
						r.Xids = []uint64{31}
					}
					if since := time.Since(begun); since >= 2*time.Second && since < 2*time.Second+test.forgets {
						r.Processes = []process.Process{{PID: test.pid}}
					}
					return r, nil
				})
				w := Begin(d, devices[:1], func(int) bool { return false }, func() {})
				time.Sleep(9500 * time.Millisecond)
				s := w.Stop()[0]
				if s.Looks != 11 || !slices.Equal(s.Problems, test.problems) || len(s.Flags) != 1 || reads > 11+11 {
					t.Errorf("%+v after %d reads", s, reads)
				}
			})
		})
	}
}

// In a PID namespace of its own, nobody knows whose processes the driver tells of, unless one is known as ours: then it
// counts as we do.
func TestProcessesInANamespace(t *testing.T) {
	const ours, stranger = 1000, 2147483647
	for _, test := range []struct {
		name       string
		processes  [][]int // by look: of the first device; the second one has the stranger
		second     bool
		problems   []string
		flags      []string
		alarmAfter int // seconds; 0: none
	}{
		{name: "nobody"},
		{name: "ours alone", processes: [][]int{{ours}, {ours}}},
		{name: "nobody known", processes: [][]int{{}, {stranger}, {stranger}}, flags: []string{NotToldApart}},
		{name: "ours and a stranger", processes: [][]int{{}, {ours, stranger}},
			problems: []string{"foreign process 2147483647"}, alarmAfter: 1},
		{name: "first a stranger, then ours", processes: [][]int{{stranger}, {}, {}, {ours}},
			problems: []string{"foreign process 2147483647"}, alarmAfter: 3},
		{name: "ours here, a stranger there", processes: [][]int{{}, {}, {ours}}, second: true, alarmAfter: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, devices := play(func(dev gpu.Device, second int) (r gpu.Reading, _ error) {
					if dev.Index == 0 && second < len(test.processes) {
						for _, pid := range test.processes[second] {
							r.Processes = append(r.Processes, process.Process{PID: pid})
						}
					}
					if dev.Index == 1 && test.second {
						r.Processes = []process.Process{{PID: stranger}}
					}
					return r, nil
				})
				d.Elsewhere = true
				begun, alarm := time.Now(), time.Duration(0)
				w := Begin(d, devices, func(pid int) bool { return pid == ours }, func() { alarm = time.Since(begun) })
				time.Sleep(5500 * time.Millisecond)
				sums := w.Stop()
				if !slices.Equal(sums[0].Problems, test.problems) || !slices.Equal(sums[0].Flags, test.flags) ||
					len(sums[1].Problems) > 0 != test.second {
					t.Errorf("%+v", sums)
				}
				if int(alarm/time.Second) != test.alarmAfter {
					t.Errorf("alarm after %s", alarm)
				}
			})
		})
	}
}

// A sample is flagged if errors that would make it void cannot be read.
func TestNvidiaSMIFlagsUnknownErrors(t *testing.T) {
	for provider, want := range map[string][]string{gpu.ProviderNVML: nil, gpu.ProviderNvidiaSMI: {NotAllTold}} {
		synctest.Test(t, func(t *testing.T) {
			d, devices := play(func(gpu.Device, int) (gpu.Reading, error) { return gpu.Reading{}, nil })
			d.Provider = provider
			for _, s := range Begin(d, devices, func(int) bool { return true }, func() {}).Stop() {
				if !slices.Equal(s.Flags, want) {
					t.Errorf("%s: %q", provider, s.Flags)
				}
			}
		})
	}
}

// A slow driver is asked for all devices of a sample at once.
func TestDevicesAreReadSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 3 * time.Second
		d, devices := play(func(gpu.Device, int) (gpu.Reading, error) {
			time.Sleep(slow)
			return gpu.Reading{Processes: []process.Process{{PID: 1000}}}, nil
		})
		begun := time.Now()
		var busy *Busy
		if err := AwaitIdle(t.Context(), d, devices, Limits{}, 0); !errors.As(err, &busy) || busy.Device.Index != 0 ||
			time.Since(begun) != slow {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		begun = time.Now()
		w := Begin(d, devices, func(int) bool { return true }, func() { t.Error("alarm") })
		sums := w.Stop()
		if took := time.Since(begun); took != 2*slow || sums[0].Looks != 2 || sums[1].Looks != 2 {
			t.Errorf("%+v after %s", sums, took)
		}
	})
}

// Stop waits for the look that is under way, and for the last one, however slow the driver is.
func TestAWatchOfASlowDriverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 3 * time.Second
		d, devices := play(func(gpu.Device, int) (gpu.Reading, error) {
			time.Sleep(slow)
			return gpu.Reading{}, nil
		})
		for range 20 {
			w := Begin(d, devices, func(int) bool { return true }, func() {})
			time.Sleep(3 * slow / 2) // the second look began after one second
			begun := time.Now()
			if w.Stop(); time.Since(begun) > 2*slow {
				t.Errorf("after %s", time.Since(begun))
			}
		}
	})
}

// A process that nobody sees, and that stays on two devices, is waited for once.
func TestAProcessOnTwoDevicesStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		d, devices := play(func(gpu.Device, int) (gpu.Reading, error) {
			reads.Add(1)
			return gpu.Reading{Processes: []process.Process{{PID: 2147483647}}}, nil
		})
		d.Elsewhere = true
		w := Begin(d, devices, func(int) bool { return false }, func() {})
		first := reads.Load()
		time.Sleep(9500 * time.Millisecond)
		w.Stop()
		if n := reads.Load() - first; n != 2*10 {
			t.Errorf("%d reads in ten looks at two devices", n)
		}
	})
}
