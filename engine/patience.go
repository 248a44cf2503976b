package engine

import (
	"cmp"
	"fmt"
	"time"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/failure"
)

// patience measures how long the pool has refused requests only because of devices or disk space that other processes
// use. The time of a request starts again when the request is granted, or refused for another reason.
type patience struct {
	limit time.Duration // 0: without end
	waits map[device.Request]*wait

	announced string    // the last wait that was reported while nothing ran; "": none since a node started
	at        time.Time // of that report
}

type wait struct {
	long time.Duration
	last time.Time // when the last answer came
	told bool
}

// toldEvery is the shortest time between two reports that nodes wait for something else, such as another temperature.
// While something runs, it is also the time before a use by other processes is reported: most are shorter.
const toldEvery = time.Minute

// hear notes the answer to a request, and reports whether the request has waited too long. While the pool looks at
// devices, there is no answer.
func (r *run) hear(q device.Request, refused *device.Refusal) (vain bool) {
	if refused != nil && refused.Looking {
		return false
	}
	vain = r.patience.ends(q, refused)
	// run.wait reports it if nothing runs.
	if w := r.patience.waits[q]; w != nil && w.long >= toldEvery && !w.told && !vain && r.busy() > 0 {
		w.told = true
		r.emit(Event{Type: Note, Reason: Waiting + r.patience.text(refused)})
	}
	return vain
}

// ends notes the answer to a request, and reports whether the request has waited too long. Time without a question or
// an answer does not count: the request waited for something else.
func (p *patience) ends(q device.Request, refused *device.Refusal) bool {
	if refused != nil && refused.Lost {
		return true
	}
	if refused == nil || !refused.Outside {
		delete(p.waits, q)
		return false
	}
	if p.waits == nil {
		p.waits = map[device.Request]*wait{}
	}
	now := time.Now()
	w := p.waits[q]
	if w == nil {
		w = &wait{last: now}
		p.waits[q] = w
	}
	w.long += min(now.Sub(w.last), 2*pollEvery)
	w.last = now
	return p.limit > 0 && w.long >= p.limit
}

// announces reports whether a wait is to be reported while nothing runs.
func (p *patience) announces(what string) bool {
	if what == p.announced || p.announced != "" && time.Since(p.at) < toldEvery {
		return false
	}
	p.announced, p.at = what, time.Now()
	return true
}

// text returns what a refused request waits for, and when it is given up.
func (p *patience) text(refused *device.Refusal) string {
	if !refused.Outside || refused.Lost || p.limit == 0 {
		return refused.WaitsFor
	}
	return fmt.Sprintf("%s; it is given up after %s", refused.WaitsFor, p.limit)
}

// Rules of failures for want of devices or room.
const (
	DeviceBusy = "device_busy" // other processes use the devices
	DeviceLost = "device_lost" // too few working devices are left
	DiskFull   = "disk_full"   // there is no room on the disk

	DiskExceeded = "disk_exceeded" // the node wrote or printed more than it may
)

// giveUp fails all ready steps with a request that has waited too long.
func (r *run) giveUp(q device.Request, why *device.Refusal) {
	f := failure.Failure{Class: failure.Infra, Stage: "start", Evidence: why.WaitsFor}
	waitLonger := r.Terms.DeviceWait + " waits longer"
	switch {
	case why.Disk:
		f.Rule, f.Message = DiskFull, fmt.Sprintf("the disk had no room for it for %s", r.patience.limit)
		f.Remedy = fmt.Sprintf("free some space (%s), and apply again; %s", r.Terms.FreeSpace, waitLonger)
	case why.Lost:
		f.Rule, f.Message = DeviceLost, "too few of the devices that it needs are left"
		f.Remedy = r.Terms.LostDevice
	default:
		f.Rule = DeviceBusy
		f.Message = fmt.Sprintf("the devices that it needs could not be used for %s", r.patience.limit)
		f.Remedy = "end what keeps them from being used, and apply again; " + waitLonger
	}
	delete(r.patience.waits, q)
	for _, s := range r.ready.Take(q) {
		a := r.newAttempt(s)
		a.err = r.note(a, &Failure{Retry: &Retry{Attempts: 1}, Failure: f})
		r.conclude(s, a)
	}
}

// note writes the log of an attempt that was never launched, and returns why.
func (r *run) note(a *attempt, why error) error {
	log, err := r.openLog(a.ID)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer log.Close()
	_, err = fmt.Fprintf(log, "%s: %v\n", a.Address, why)
	return cmp.Or(err, log.File().Sync(), why)
}
