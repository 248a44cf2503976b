package device

import (
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu"
)

// A driver may take milliseconds or seconds to report the state of a device, and may hang. So a request for devices
// is answered from the last check of them, and Refusal.Changed tells when a check has a new result. While there are
// requests, one goroutine checks all requested devices once a second and publishes the results together: of two
// devices that become free at once, none is granted to a small request before the other is seen. The goroutine ends
// when there have been no requests for a while.
//
// A grant rests on a check that is at most a second old, plus the driver's time. That keeps leases off devices that
// others use, but it is not enough for a sample: the holder of the lease checks again before one (AwaitIdle).

// look is the last check of a requested device.
type look struct {
	device gpu.Device
	asked  time.Time // time of the last request
	known  bool      // the device has been checked
	why    string    // why it must not be granted now; empty: it may be granted
}

// lookEvery is the interval between checks.
const lookEvery = time.Second

// unasked is how long a device is checked after the last request: waiting requests are repeated more often.
const unasked = 2 * time.Second

// lastLook returns the last check of a device. If there is none yet, it starts one.
func (p *LocalPool) lastLook(d gpu.Device) look {
	if p.total.Ready == nil {
		return look{known: true}
	}
	p.lookAt([]gpu.Device{d})
	return *p.looks[d.UUID]
}

func (p *LocalPool) lookAt(devices []gpu.Device) {
	fresh := false
	for _, d := range devices {
		if p.looks[d.UUID] == nil {
			p.looks[d.UUID], fresh = &look{device: d}, true
		}
		p.looks[d.UUID].asked = time.Now()
	}
	switch {
	case !p.looking:
		p.looking = true
		go p.look()
	case fresh:
		select {
		case p.hurry <- struct{}{}:
		default:
		}
	}
}

// look checks devices as long as they are requested.
func (p *LocalPool) look() {
	for looks := p.wanted(); len(looks) > 0; looks = p.wanted() {
		answers := make([]string, len(looks))
		var all sync.WaitGroup
		for i, l := range looks {
			all.Go(func() { answers[i] = p.total.Ready(l.device) })
		}
		all.Wait()
		p.seen(looks, answers)
		select {
		case <-p.open.Done():
		case <-p.hurry:
		case <-time.After(lookEvery):
		}
	}
}

// wanted forgets the devices that are no longer requested, and returns the others.
func (p *LocalPool) wanted() (looks []*look) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for uuid, l := range p.looks {
		if p.open.Err() != nil || l.known && time.Since(l.asked) >= unasked {
			delete(p.looks, uuid)
			continue
		}
		looks = append(looks, l)
	}
	p.looking = len(looks) > 0
	select {
	case <-p.hurry: // all of them are in the list
	default:
	}
	return looks
}

// seen records results, and wakes waiting requests if a result makes a difference.
func (p *LocalPool) seen(looks []*look, answers []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := false
	for i, l := range looks {
		if !l.known {
			changed, l.asked = true, time.Now() // nobody could ask again meanwhile
		}
		changed = changed || (l.why == "") != (answers[i] == "")
		l.known, l.why = true, answers[i]
	}
	if changed {
		close(p.change)
		p.change = make(chan struct{})
	}
}
