package engine

import (
	"time"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
)

// A node that gets devices, or the host for itself, has its large inputs checked before: hashing a model of 140 GB takes minutes, in which
// eight devices would be idle. The check takes a core, as other work does. Steps with the same input wait for one check.

// largeInput is the size in bytes from which an input is checked before.
const largeInput = 64 << 20

// asks is what a step is to be granted next: a core for the check of its inputs, or all that its node needs.
func (r *run) asks(s *Step) device.Request {
	q := s.Node.Resources
	if (q.GPUs.Count > 0 || q.Quiet) && len(r.unchecked(s)) > 0 {
		return device.Request{CPUs: 1}
	}
	return q
}

// unchecked are the large inputs of a step that were not checked before.
func (r *run) unchecked(s *Step) (large []*cache.Meta) {
	for _, dep := range s.Node.Needs {
		if m := r.steps[dep.id].found.entry; m != nil && m.Bytes >= largeInput && !r.checked[m.Key] {
			large = append(large, m)
		}
	}
	return large
}

// queue puts a step into the ready queue, or has it wait for the check of an input that is under way.
func (r *run) queue(s *Step) {
	asks := r.asks(s)
	if asks == s.Node.Resources || !r.waitsForCheck(s) {
		r.ready.push(s, asks, r.remains)
	}
}

func (r *run) waitsForCheck(s *Step) bool {
	for _, m := range r.unchecked(s) {
		if waiting, busy := r.checking[m.Key]; busy {
			r.checking[m.Key] = append(waiting, s)
			return true
		}
	}
	return false
}

// check checks the large inputs of a step, which was granted a core for that. What is wrong with one is found, and told, by the attempt.
func (r *run) check(s *Step, lease *device.Lease) {
	large := r.unchecked(s)
	if len(large) == 0 || r.waitsForCheck(s) { // another step's check came first
		lease.Release()
		if len(large) == 0 {
			r.queue(s)
		}
		return
	}
	r.running++
	bytes, fresh := int64(0), false
	for _, m := range large {
		bytes += m.Bytes
		r.checking[m.Key] = nil
	}
	for _, dep := range s.Node.Needs {
		fresh = fresh || r.jobs[dep.id].tries > 0
	}
	settled := r.jobs[s.Node.id].ready.Add(cache.StampGrain)
	lease.Name(s.Node.Address)
	r.emit(Event{Type: Note, Address: s.Node.Address, Key: s.Key, Reason: Waiting + "the check of its inputs, " + units.BytesSize(float64(bytes))})
	go func() {
		if fresh { // the stamps of new files tell nothing yet, and all would be read once more later
			select {
			case <-time.After(time.Until(settled)):
			case <-r.checks.Done():
			}
		}
		for _, m := range large {
			_, _ = r.inputs.get(r.checks, m)
		}
		r.send(message{step: s, checked: &checked{large, lease}})
	}()
}

// checked is the end of a check.
type checked struct {
	inputs []*cache.Meta
	lease  *device.Lease
}

// endCheck queues the step and all that waited for the same inputs, before any of them is granted something.
func (r *run) endCheck(s *Step, c *checked) {
	r.running--
	c.lease.Release()
	queued := []*Step{s}
	for _, m := range c.inputs {
		r.checked[m.Key] = true
		queued = append(queued, r.checking[m.Key]...)
		delete(r.checking, m.Key)
	}
	for _, s := range queued {
		r.emit(Event{Type: Note, Address: s.Node.Address, Key: s.Key, Reason: Waiting + "its turn"})
		r.queue(s)
	}
}
