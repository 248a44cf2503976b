package engine

import (
	"context"
	"time"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
)

// checks is the gate to large inputs. A node that gets devices, or the host for itself, has its large inputs checked
// before: hashing a model of 140 GB takes minutes, in which eight devices would be idle. The check takes a core, as
// other work does. Steps with the same input wait for one check.
type checks struct {
	*run
	inputs  verifiedInputs
	checked map[cache.Key]bool    // inputs that were checked
	under   map[cache.Key][]*Step // inputs that are being checked, with the steps that wait for that
	ctx     context.Context       // of the checks; ends when no step is to be started any more
	stop    context.CancelFunc
}

// largeInput is the size in bytes from which an input is checked before.
const largeInput = 64 << 20

func newChecks(r *run) *checks {
	c := &checks{
		run: r, inputs: verifiedInputs{store: r.Store}, checked: map[cache.Key]bool{}, under: map[cache.Key][]*Step{},
	}
	c.ctx, c.stop = context.WithCancel(r.ctx)
	return c
}

// admit has a step with large inputs ask for a core first, or wait for the check of one of them.
func (c *checks) admit(s *Step) (device.Request, state) {
	large := c.unchecked(s)
	switch {
	case len(large) == 0:
		return device.Request{}, ready
	case c.waits(s, large):
		return device.Request{}, waiting
	}
	return device.Request{CPUs: 1}, ready
}

// unchecked returns the large inputs of a step that must be checked before it is granted all that its node needs.
func (c *checks) unchecked(s *Step) (large []*cache.Meta) {
	if q := s.Node.Resources; q.GPUs.Count == 0 && !q.Quiet {
		return nil
	}
	for _, dep := range s.Node.Needs {
		if m := c.step(dep).found.entry; m != nil && m.Bytes >= largeInput && !c.checked[m.Key] {
			large = append(large, m)
		}
	}
	return large
}

// waits has a step wait for the check of one of these inputs. It reports false if none is being checked.
func (c *checks) waits(s *Step, large []*cache.Meta) bool {
	for _, m := range large {
		if steps, busy := c.under[m.Key]; busy {
			c.under[m.Key] = append(steps, s)
			return true
		}
	}
	return false
}

// pass checks the large inputs of a step that was granted a core for that. The attempt finds and reports a damaged one.
func (c *checks) pass(s *Step, lease *device.Lease) (leave func(), ok bool) {
	if c.jobs[s.Node.id].asks == s.Node.Resources {
		return nil, true
	}
	large := c.unchecked(s)
	switch {
	case len(large) == 0: // another step's check came first
		lease.Release()
		c.queue(s)
	case c.waits(s, large):
		lease.Release()
		c.set(s, waiting)
	default:
		c.verify(s, large, lease)
	}
	return nil, false
}

// verify checks inputs beside the schedule.
func (c *checks) verify(s *Step, large []*cache.Meta, lease *device.Lease) {
	bytes, fresh := int64(0), false
	for _, m := range large {
		bytes += m.Bytes
		c.under[m.Key] = nil
	}
	for _, dep := range s.Node.Needs {
		fresh = fresh || c.jobs[dep.id].tries > 0
	}
	settled := c.jobs[s.Node.id].ready.Add(cache.StampGrain)
	lease.Name(s.Node.Address)
	size := units.BytesSize(float64(bytes))
	c.emit(Event{
		Type: Note, Address: s.Node.Address, Key: s.Key, Reason: Waiting + "the check of its inputs, " + size,
	})
	go func() {
		if fresh { // the stamps of new files prove nothing yet: all bytes would be read once more later
			select {
			case <-time.After(time.Until(settled)):
			case <-c.ctx.Done():
			}
		}
		for _, m := range large {
			_, _ = c.inputs.get(c.ctx, m)
		}
		c.send(func() { c.end(s, large, lease) })
	}()
}

// end queues the step and all that waited for the same inputs, before any of them is granted something.
func (c *checks) end(s *Step, large []*cache.Meta, lease *device.Lease) {
	lease.Release()
	steps := []*Step{s}
	for _, m := range large {
		c.checked[m.Key] = true
		steps = append(steps, c.under[m.Key]...)
		delete(c.under, m.Key)
	}
	for _, s := range steps {
		c.emit(Event{Type: Note, Address: s.Node.Address, Key: s.Key, Reason: Waiting + "its turn"})
		c.queue(s)
	}
}
