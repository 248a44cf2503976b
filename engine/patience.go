package engine

import (
	"cmp"
	"fmt"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
)

// patience measures how long requests have been refused because of nothing but what others do on devices and disk. One
// that is granted meanwhile, or refused for any other reason, begins anew.
type patience struct {
	limit time.Duration // 0: without end
	waits map[device.Request]*wait

	announced string    // that nodes wait for, when nothing ran; empty: nothing since a node started
	at        time.Time // of the announcement
}

type wait struct {
	long time.Duration
	last time.Time // when the last answer came
	told bool
}

// toldEvery is how often it is told, at most, that something else is waited for: a device gets warmer all the time. It
// is also how long others use a device before that is told while something runs: most do not for long.
const toldEvery = time.Minute

// hear takes in the answer to a request, and says whether it has waited long enough. While devices are looked at there
// is none.
func (r *run) hear(q device.Request, refused *device.Refusal) (vain bool) {
	if refused != nil && refused.Looking {
		return false
	}
	vain = r.patience.ends(q, refused)
	// If nothing runs, all nodes wait for it, and wait reports that.
	if w := r.patience.waits[q]; w != nil && w.long >= toldEvery && !w.told && !vain && r.busy() > 0 {
		w.told = true
		r.emit(Event{Type: Note, Reason: Waiting + r.patience.text(refused)})
	}
	return vain
}

// ends takes in the answer to a request, and says whether it has waited long enough. The time in which nobody asked, or
// no answer was known, does not count: there was something else to wait for.
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

// announces reports whether people are to be told that nodes wait for something, while nothing runs.
func (p *patience) announces(what string) bool {
	if what == p.announced || p.announced != "" && time.Since(p.at) < toldEvery {
		return false
	}
	p.announced, p.at = what, time.Now()
	return true
}

// text says what a refused request waits for, and for how long.
func (p *patience) text(refused *device.Refusal) string {
	if !refused.Outside || refused.Lost || p.limit == 0 {
		return refused.WaitsFor
	}
	return fmt.Sprintf("%s; it is given up after %s", refused.WaitsFor, p.limit)
}

// Rules of failures for want of devices or room.
const (
	DeviceBusy = "device_busy" // others left it no device
	DeviceLost = "device_lost" // too few devices are left that are sound
	DiskFull   = "disk_full"   // there is no room on the disk
)

// giveUp ends all steps of a request that nothing can be granted to.
func (r *run) giveUp(q device.Request, why *device.Refusal) {
	f := cache.Failure{Class: cache.Infra, Stage: "start", Evidence: why.WaitsFor}
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
		f.Message = fmt.Sprintf("others kept the devices that it needs busy for %s", r.patience.limit)
		f.Remedy = "end what uses them, or let them cool down, and apply again; " + waitLonger
	}
	delete(r.patience.waits, q)
	for _, s := range r.ready.take(q) {
		a := r.newAttempt(s)
		a.err = r.note(a, &Failure{Retry: &Retry{Attempts: 1}, Failure: f})
		r.conclude(s, a)
	}
}

// note writes the log of an attempt that was not made, and returns why it was not.
func (r *run) note(a *attempt, why error) error {
	log, err := r.openLog(a.ID)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer log.close()
	_, err = fmt.Fprintf(log, "%s: %v\n", a.Address, why)
	return cmp.Or(err, log.f.Sync(), why)
}
