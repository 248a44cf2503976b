// Package watch checks whether devices are free for a measurement, and observes them while a program runs on them.
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/xid"
	"github.com/benchgraph/benchgraph/device/process"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// A sample on a GPU counts only if the device was idle before, nobody else used it meanwhile, nothing slowed it down,
// and its memory was free afterwards. Idle checks before, Watch observes during the run, and Idle checks again
// afterwards.

// Limits define an idle device. The zero value means the defaults.
type Limits struct {
	Used        int64 // bytes of memory that a driver may use itself; 0: the larger of 1 GiB and 2 %
	Utilization int   // percent; 0: 5
	Temperature int   // °C up to which a device is cool enough to begin; 0: 70
}

func (l Limits) of(d gpu.Device) Limits {
	if l.Used == 0 {
		l.Used = max(1<<30, d.Memory/50)
	}
	l.Utilization, l.Temperature = cmp.Or(l.Utilization, 5), cmp.Or(l.Temperature, 70)
	return l
}

// Idle returns why a device is not ready for a measurement; empty: it is ready. It returns an error if the device
// does not answer or is lost: waiting is useless then.
func Idle(d *gpu.Driver, of gpu.Device, l Limits) (why string, err error) {
	r, err := d.Read(of)
	if err != nil {
		return "", err
	}
	if lost := d.Lost(of); lost != "" { // perhaps because of this reading, whose errors are reported only once
		return "", errors.New(lost)
	}
	l = l.of(of)
	var all []string
	for _, p := range r.Processes {
		all = append(all, "used by "+p.String())
	}
	if len(r.Processes) == 0 && r.Used > l.Used {
		all = append(all, fmt.Sprintf("%s of its memory in use by nobody who can be seen", printable.Bytes(r.Used)))
	}
	if r.Utilization != nil && *r.Utilization > l.Utilization {
		all = append(all, fmt.Sprintf("%d %% busy", *r.Utilization))
	}
	if r.Temperature != nil && *r.Temperature > l.Temperature {
		all = append(all, fmt.Sprintf("%d °C, more than %d", *r.Temperature, l.Temperature))
	}
	return strings.Join(all, ", "), nil
}

// Ready returns a function that returns why a device must not be granted now. It serves as Options.Ready of a pool.
func Ready(d *gpu.Driver) func(of gpu.Device) string {
	return func(of gpu.Device) string {
		why, err := Idle(d, of, Limits{})
		if err != nil {
			return err.Error()
		}
		return why
	}
}

// Busy is the error for a device that did not get ready in time.
type Busy struct {
	Device gpu.Device
	Why    string
	Gone   bool // it does not answer or is lost: waiting is useless
}

func (b *Busy) Error() string {
	return fmt.Sprintf("device %d (%s): %s", b.Device.Index, b.Device.UUID, b.Why)
}

// AwaitIdle waits until all devices are ready; it checks once a second. After patience it returns a *Busy.
func AwaitIdle(
	ctx context.Context, d *gpu.Driver, devices []gpu.Device, l Limits, patience time.Duration,
) error {
	end := time.Now().Add(patience)
	for {
		looked := make(chan *Busy, 1)
		go func() { looked <- firstBusy(d, devices, l) }()
		var busy *Busy
		select {
		case <-ctx.Done(): // the driver may hang
			return context.Cause(ctx)
		case busy = <-looked:
		}
		if busy == nil {
			return nil
		}
		if busy.Gone || !time.Now().Before(end) {
			return busy
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(every):
		}
	}
}

// firstBusy checks all devices in parallel, as a driver may be slow. It prefers a device that is gone to devices that
// may get ready.
func firstBusy(d *gpu.Driver, devices []gpu.Device, l Limits) *Busy {
	found := make([]*Busy, len(devices))
	var all sync.WaitGroup
	for i, dev := range devices {
		all.Go(func() {
			if why, err := Idle(d, dev, l); err != nil {
				found[i] = &Busy{Device: dev, Why: err.Error(), Gone: true}
			} else if why != "" {
				found[i] = &Busy{Device: dev, Why: why}
			}
		})
	}
	all.Wait()
	if gone := slices.IndexFunc(found, func(b *Busy) bool { return b != nil && b.Gone }); gone >= 0 {
		return found[gone]
	}
	return cmp.Or(found...)
}

// every is the interval between readings of devices.
const every = time.Second

// Summary describes a device while a program ran on it.
type Summary struct {
	UUID        string   `json:"uuid"`
	Looks       int      `json:"looks"`
	Utilization *Range   `json:"utilization_percent,omitempty"`
	Power       *Range   `json:"power_w,omitempty"`
	Temperature *Range   `json:"temperature_c,omitempty"`
	SMClock     *Range   `json:"sm_clock_mhz,omitempty"`
	Used        *Range   `json:"used_bytes,omitempty"`
	Flags       []string `json:"flags,omitempty"`    // remarkable states, such as the power cap
	Problems    []string `json:"problems,omitempty"` // each makes the sample void
	LeftOut     string   `json:"left_out,omitempty"` // why the device was not granted afterwards

	uncorrected *uint64  // memory errors at the first reading
	foreign     []string // processes that are not known to be ours
}

// NotToldApart is the flag of a sample in a PID namespace where no process on the device was recognized: the
// processes may belong to the sample or to others. It is then only known that the device was free before and after.
const NotToldApart = "processes_not_told_apart"

// NotAllTold is the flag of a sample with only nvidia-smi, which reports neither critical errors nor reasons for low
// clocks: the sample may be void without notice.
const NotAllTold = "errors_and_slowdowns_not_told"

// Range summarizes a quantity over time.
type Range struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
	n    int
}

func (r *Range) add(v float64) *Range {
	if r == nil {
		r = &Range{Min: math.Inf(1), Max: math.Inf(-1)}
	}
	r.n++
	r.Min, r.Max = min(r.Min, v), max(r.Max, v)
	r.Mean += (v - r.Mean) / float64(r.n)
	return r
}

// voids are the slowdowns that make a sample void; other slowdowns are flags.
var voids = []string{gpu.SlowHardware, gpu.SlowThermal, gpu.SlowPowerBrake, gpu.SlowSWThermal}

// Watch observes devices while a program runs on them.
type Watch struct {
	driver  *gpu.Driver
	devices []gpu.Device
	own     func(pid int) bool
	alarm   func()
	stays   sync.Map // by PID: processes that are not visible here and that the driver reports repeatedly
	apart   bool     // the driver's process numbers are valid here, so that others are foreign

	mu    sync.Mutex
	state []Summary
	stop  chan struct{}
	done  chan struct{}
}

// Begin starts to read devices once a second. own reports whether a process belongs to the measurement; alarm is
// called once, at the first problem.
func Begin(d *gpu.Driver, devices []gpu.Device, own func(pid int) bool, alarm func()) *Watch {
	w := &Watch{driver: d, devices: devices, own: own, apart: !d.Elsewhere, alarm: sync.OnceFunc(alarm),
		state: make([]Summary, len(devices)), stop: make(chan struct{}), done: make(chan struct{})}
	for i, dev := range devices {
		w.state[i].UUID = dev.UUID
	}
	w.look()
	go func() {
		defer close(w.done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
				select {
				case <-w.stop: // when readings take longer than a second, there is always a tick
					return
				default:
				}
				w.look()
			}
		}
	}()
	return w
}

// Stop reads the devices once more and returns the summaries.
func (w *Watch) Stop() []Summary {
	close(w.stop)
	<-w.done
	w.look()
	for i := range w.state {
		s := &w.state[i]
		if len(s.foreign) > 0 && !w.apart {
			s.Flags = append(s.Flags, NotToldApart)
		}
		if w.driver.Provider == gpu.ProviderNvidiaSMI {
			s.Flags = append(s.Flags, NotAllTold)
		}
	}
	return w.state
}

// Problems returns the problems so far, each of which makes the sample void. It may be called at any time.
func (w *Watch) Problems() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for i, s := range w.state {
		for _, p := range s.Problems {
			all = append(all, fmt.Sprintf("device %d: %s", w.devices[i].Index, p))
		}
	}
	return all
}

func (w *Watch) look() {
	var all sync.WaitGroup
	for i, dev := range w.devices {
		all.Go(func() {
			r, err := w.read(dev)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.state[i].take(r, err)
			w.takeProcesses(&w.state[i], r.Processes)
		})
	}
	all.Wait()
	if len(w.Problems()) > 0 {
		w.alarm()
	}
}

// takeProcesses records the other processes on a device. Once the driver has reported one of our processes, its
// process numbers are known to be valid here, so all others are foreign.
func (w *Watch) takeProcesses(s *Summary, all []process.Process) {
	for _, p := range all {
		if w.own(p.PID) {
			w.apart = true
			continue
		}
		p.Used = 0 // it changes between readings of the same process
		if text := "foreign " + p.String(); !slices.Contains(s.foreign, text) {
			s.foreign = append(s.foreign, text)
		}
	}
	if !w.apart {
		return
	}
	for i := range w.state {
		for _, text := range w.state[i].foreign {
			w.state[i].problem(text)
		}
	}
}

// forgets is how long a driver may still report a process that has ended.
const forgets = 500 * time.Millisecond

// read reads a device. The driver's report and the system's are from different moments: a process that the system
// does not know has ended in between and may have been ours, or is in another PID namespace. So read asks the driver
// again until it no longer reports the process.
func (w *Watch) read(dev gpu.Device) (gpu.Reading, error) {
	r, err := w.driver.Read(dev)
	for end := time.Now().Add(forgets); err == nil && slices.ContainsFunc(r.Processes,
		w.unknown); time.Sleep(forgets / 10) {
		if !time.Now().Before(end) {
			for _, p := range r.Processes {
				if w.unknown(p) {
					w.stays.Store(p.PID, true)
				}
			}
			break
		}
		var again gpu.Reading
		again, err = w.driver.Read(dev)
		r.Processes, r.Xids = again.Processes, append(r.Xids, again.Xids...)
	}
	return r, err
}

func (w *Watch) unknown(p process.Process) bool {
	_, stays := w.stays.Load(p.PID)
	return p.User == "" && !stays && !w.own(p.PID)
}

func (s *Summary) take(r gpu.Reading, err error) {
	s.Looks++
	if err != nil {
		s.problem(err.Error())
		return
	}
	s.Used = s.Used.add(float64(r.Used))
	if r.Utilization != nil {
		s.Utilization = s.Utilization.add(float64(*r.Utilization))
	}
	if r.Power != nil {
		s.Power = s.Power.add(*r.Power)
	}
	if r.Temperature != nil {
		s.Temperature = s.Temperature.add(float64(*r.Temperature))
	}
	if r.SMClock != nil {
		s.SMClock = s.SMClock.add(float64(*r.SMClock))
	}
	for _, slow := range r.Slowdowns {
		if slices.Contains(voids, slow) {
			s.problem(slow)
		} else if !slices.Contains(s.Flags, slow) {
			s.Flags = append(s.Flags, slow)
		}
	}
	if s.Looks == 1 {
		s.uncorrected = r.Uncorrected
	}
	if r.Uncorrected != nil && s.uncorrected != nil && *r.Uncorrected > *s.uncorrected {
		s.problem("uncorrected memory errors")
	}
	for _, code := range r.Xids {
		if text, blamed := xid.Explain(code); blamed {
			s.problem(text)
		} else if !slices.Contains(s.Flags, text) {
			s.Flags = append(s.Flags, text)
		}
	}
}

func (s *Summary) problem(text string) {
	if !slices.Contains(s.Problems, text) {
		s.Problems = append(s.Problems, text)
	}
}
