package device

import (
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu"
)

// A driver takes its time to say how a device is, milliseconds or seconds, and may hang. So who asks the pool for
// devices is answered by the last look at them, and told when that found something new. While somebody asks, one
// goroutine looks once a second at all devices that are asked for, and makes known at once how all of them are: of two
// that somebody leaves together, not one is granted to a small request before the other is seen. It ends when nobody
// has asked for a while.
//
// A grant follows from a look that is no older than a second and the time that the driver takes. That keeps leases off
// devices that others use, and is not enough for a sample: before that, who holds the lease looks again (AwaitIdle).

// look is what is known of a device that is asked for.
type look struct {
	device gpu.Device
	asked  time.Time // when it was asked for last
	known  bool      // it was looked at
	why    string    // it is not to be granted now; empty: it may be
}

// lookEvery is the time between two looks.
const lookEvery = time.Second

// unasked is how long a device is still looked at when nobody asks for it: who waits asks more often.
const unasked = 2 * time.Second

// lastLook is the last look at a device; when it is not known, it is on its way.
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

// look looks for as long as devices are asked for.
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

// wanted forgets the looks that nobody asks for any more, and returns the others.
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
	case <-p.hurry: // they are all there
	default:
	}
	return looks
}

// seen takes in the answers, and tells who waits when one of them makes a difference.
func (p *LocalPool) seen(looks []*look, answers []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := false
	for i, l := range looks {
		if !l.known {
			changed, l.asked = true, time.Now() // as who asked for it could not
		}
		changed = changed || (l.why == "") != (answers[i] == "")
		l.known, l.why = true, answers[i]
	}
	if changed {
		close(p.change)
		p.change = make(chan struct{})
	}
}
