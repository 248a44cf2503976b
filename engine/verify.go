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

// Check reads a file or directory that a task uses, and compares it with its digest. It only reads ahead: the task
// checks again, which is quick by then, and reports a difference.
type Check struct {
	Name string // of the checked thing; steps with the same check wait for one run of it
	Run  func(context.Context)
}

// checks is the gate to things that are read as a whole before use: large inputs, and Node.Checks. A node is granted
// its request only after its checks: hashing a model of 140 GB takes minutes, in which eight devices would be idle. A
// check takes a core, as other work does.
type checks struct {
	*run
	inputs  verifiedInputs
	checked map[string]bool    // by name: has ended
	under   map[string][]*Step // by name: steps that wait for a running check
	ctx     context.Context    // of the checks; ends when no more steps are started
	stop    context.CancelFunc
}

// largeInput is the size in bytes from which an input is checked beforehand.
const largeInput = 64 << 20

func newChecks(r *run) *checks {
	c := &checks{run: r, checked: map[string]bool{}, under: map[string][]*Step{}}
	c.inputs.store, c.inputs.seen = r.Store, map[cache.Key]func() (verified, error){}
	c.ctx, c.stop = context.WithCancel(r.ctx)
	return c
}

// admit makes a step with open checks request a core first, or wait for a check that runs already.
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

// pass runs the open checks of a step. A step that was granted only a core for checks is queued again afterwards.
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

// verify runs checks in a goroutine.
func (c *checks) verify(s *Step, open []Check, lease *device.Lease) {
	names := make([]string, len(open))
	for i, k := range open {
		names[i], c.under[k.Name] = k.Name, nil
	}
	fresh := slices.ContainsFunc(s.Node.Needs, func(dep *Node) bool { return c.jobs[dep.id].tries > 0 })
	settled := c.jobs[s.Node.id].ready.Add(cache.StampGrain)
	lease.Name(s.Node.Address)
	c.emit(Event{Type: Note, Address: s.Node.Address, Key: s.Key,
		Reason: Waiting + "the check of " + strings.Join(names, ", ")})
	go func() {
		if fresh { // too new a stamp proves nothing: all bytes would be read again later
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

// end queues the step and all steps that waited for the same checks, before any of them is granted a lease.
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
