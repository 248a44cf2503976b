package engine

import (
	"time"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
)

// A node that gets devices, or the host for itself, has its large inputs checked before: hashing a model of 140 GB takes minutes, in which
// eight devices would be idle. The check takes a core, as other work does.

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

// queue puts a step into the ready queue.
func (r *run) queue(s *Step) { r.ready.push(s, r.asks(s), r.remains) }

// unchecked are the large inputs of a step that were not checked before.
func (r *run) unchecked(s *Step) (large []*cache.Meta) {
	for _, dep := range s.Node.Needs {
		if m := r.ends[dep.id].meta; m != nil && m.Bytes >= largeInput && !r.checked[m.Key] {
			large = append(large, m)
		}
	}
	return large
}

// check checks the large inputs of a step, which holds a core meanwhile. What is wrong with one is found, and told, by the attempt.
func (r *run) check(s *Step, lease *device.Lease) {
	r.running++
	large, bytes, fresh := r.unchecked(s), int64(0), false
	for _, m := range large {
		bytes += m.Bytes
	}
	for _, dep := range s.Node.Needs {
		fresh = fresh || r.tries[dep.id] > 0
	}
	settled := r.ends[s.Node.id].ready.Add(cache.StampGrain)
	lease.Name(s.Node.Address)
	r.emit(Event{Type: Note, Address: s.Node.Address, Key: s.Key, Reason: Waiting + "the check of its inputs, " + units.BytesSize(float64(bytes))})
	go func() {
		if fresh { // the stamps of new files tell nothing yet, and all would be read once more later
			select {
			case <-time.After(time.Until(settled)):
			case <-r.ctx.Done():
			}
		}
		for _, m := range large {
			_, _ = r.inputs.get(r.ctx, m)
		}
		r.send(message{step: s, checked: &checked{large, lease}})
	}()
}

// checked is the end of a check.
type checked struct {
	inputs []*cache.Meta
	lease  *device.Lease
}

func (r *run) endCheck(s *Step, c *checked) {
	r.running--
	c.lease.Release()
	if r.checked == nil {
		r.checked = map[cache.Key]bool{}
	}
	for _, m := range c.inputs {
		r.checked[m.Key] = true
	}
	r.queue(s)
}
