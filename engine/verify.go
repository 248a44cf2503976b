package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
)

// Check reads something that a task uses, and compares it with its digest. The task does so again, which is quick by
// then, and reports a difference.
type Check struct {
	Name string // of what is checked; steps with a check of the same name wait for one
	Run  func(context.Context)
}

// checks is the gate to what is read as a whole before it is used: large inputs, and what Node.Checks names. A node is
// granted what it asks for when its checks have ended: hashing a model of 140 GB takes minutes, in which eight devices
// would be idle. A check takes a core, as other work does.
type checks struct {
	*run
	inputs  verifiedInputs
	checked map[string]bool    // by name: has ended
	under   map[string][]*Step // by name: the steps that wait for a check that runs
	ctx     context.Context    // of the checks; ends when no step is to be started any more
	stop    context.CancelFunc
}

// largeInput is the size in bytes from which an input is checked before.
const largeInput = 64 << 20

func newChecks(r *run) *checks {
	c := &checks{run: r, checked: map[string]bool{}, under: map[string][]*Step{}}
	c.inputs.store, c.inputs.seen = r.Store, map[cache.Key]func() (verified, error){}
	c.ctx, c.stop = context.WithCancel(r.ctx)
	return c
}

// admit has a step with open checks ask for a core first, or wait for one of them.
func (c *checks) admit(s *Step) (device.Request, state) {
	open := c.open(s)
	for _, k := range open {
		if steps, busy := c.under[k.Name]; busy {
			c.under[k.Name] = append(steps, s)
			return device.Request{}, waiting
		}
	}
	if len(open) > 0 {
		return device.Request{CPUs: 1}, ready
	}
	return device.Request{}, ready
}

// open returns the checks that must end before a step is granted all that its node needs.
func (c *checks) open(s *Step) []Check {
	all := slices.Clone(s.Node.Checks)
	for _, dep := range s.Node.Needs {
		if m := c.step(dep).found.entry; m != nil && m.Bytes >= largeInput {
			name := fmt.Sprintf("%s (%s)", dep.Address, units.BytesSize(float64(m.Bytes)))
			all = append(all, Check{name, func(ctx context.Context) { _, _ = c.inputs.get(ctx, m) }})
		}
	}
	return slices.DeleteFunc(all, func(k Check) bool { return c.checked[k.Name] })
}

// pass runs the checks of a step. The step may have been granted a core for them, or ask for no more than that.
func (c *checks) pass(s *Step, lease *device.Lease) (leave func(), ok bool) {
	open := c.open(s)
	begun := func(k Check) bool { _, busy := c.under[k.Name]; return busy }
	switch {
	case len(open) > 0 && !slices.ContainsFunc(open, begun):
		c.verify(s, open, lease)
	case len(open) == 0 && c.jobs[s.Node.id].asks == s.Node.Resources:
		return nil, true
	default: // another step's check came first
		lease.Release()
		c.queue(s)
	}
	return nil, false
}

// verify runs checks beside the schedule.
func (c *checks) verify(s *Step, open []Check, lease *device.Lease) {
	names := make([]string, len(open))
	for i, k := range open {
		names[i], c.under[k.Name] = k.Name, nil
	}
	fresh := slices.ContainsFunc(s.Node.Needs, func(dep *Node) bool { return c.jobs[dep.id].tries > 0 })
	settled := c.jobs[s.Node.id].ready.Add(cache.StampGrain)
	lease.Name(s.Node.Address)
	c.emit(Event{
		Type: Note, Address: s.Node.Address, Key: s.Key,
		Reason: Waiting + "the check of " + strings.Join(names, ", ")})
	go func() {
		if fresh { // the stamps of new files prove nothing yet: all bytes would be read once more later
			select {
			case <-time.After(time.Until(settled)):
			case <-c.ctx.Done():
			}
		}
		for _, k := range open {
			k.Run(c.ctx)
		}
		c.send(func() { c.end(s, open, lease) })
	}()
}

// end queues the step and all that waited for the same checks, before any of them is granted something.
func (c *checks) end(s *Step, open []Check, lease *device.Lease) {
	lease.Release()
	steps := []*Step{s}
	for _, k := range open {
		c.checked[k.Name] = true
		steps = append(steps, c.under[k.Name]...)
		delete(c.under, k.Name)
	}
	for _, s := range steps {
		c.emit(Event{Type: Note, Address: s.Node.Address, Key: s.Key, Reason: Waiting + "its turn"})
		c.queue(s)
	}
}
