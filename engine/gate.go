package engine

import (
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
)

// A gate guards something scarce other than the amounts that the pool grants (cores, memory, disk, devices, a quiet
// host). The goroutine of the apply calls its methods. A new gate needs only a place in run.gates.
//
// Admit returns ready for a step that may be queued, or the state in which the gate keeps the step until the gate calls
// run.queue or run.enqueue. If something must run before the step, first is the request for that; zero: nothing.
//
// Pass is called when the request of a queued step is granted. If ok is false, the gate has taken over the step and its
// lease: the step waits, has ended, or runs what had to run first. leave, which may be nil, is called after the
// attempt.
type gate interface {
	admit(*Step) (first device.Request, as state)
	pass(*Step, *device.Lease) (leave func(), ok bool)
}

// claimer is a store that several applies share. Only one of them makes the result of a key at a time.
type claimer interface {
	// Claim reserves a key for this apply until release is called. It reports false if another apply has reserved the
	// key.
	Claim(cache.Key) (release func(), ok bool)
}

// claims is the gate to keys that several applies could make.
type claims struct{ *run }

func (c *claims) claim(s *Step) (release func(), ok bool) {
	if store, shared := c.Store.(claimer); shared {
		return store.Claim(s.Key)
	}
	return func() {}, true
}

// admit keeps a step waiting while another apply makes its result, so that the step asks for no devices.
func (c *claims) admit(s *Step) (device.Request, state) {
	if c.jobs[s.Node.id].elsewhere {
		release, ok := c.claim(s)
		if !ok {
			c.wakeAfter(s, pollEvery)
			return device.Request{}, waiting
		}
		release()
	}
	return device.Request{}, ready
}

// pass claims the key of a step. If another apply is making the result, the step waits for it; if another apply has
// made it since the plan, the step ends.
func (c *claims) pass(s *Step, lease *device.Lease) (leave func(), ok bool) {
	release, ok := c.claim(s)
	if !ok {
		lease.Release()
		if j := &c.jobs[s.Node.id]; !j.elsewhere {
			j.elsewhere = true
			c.emit(Event{Type: Note, Address: s.Node.Address, Key: s.Key, Reason: Waiting + "another apply makes it"})
		}
		c.pause(s, pollEvery)
		return nil, false
	}
	if !c.mayBeMade(s) {
		return release, true
	}
	made, err := c.take(c.ctx, s, madeByOther)
	if err != nil {
		c.abort(err)
	}
	if !made && !c.stopping() {
		return release, true
	}
	release()
	lease.Release()
	if !made {
		c.set(s, missing)
		return nil, false
	}
	c.set(s, present)
	c.cached(s)
	c.settleAll(c.finish(s))
	return nil, false
}

// mayBeMade reports whether another apply may have made the result of a step since the store was last asked for it.
func (c *claims) mayBeMade(s *Step) bool {
	f := &s.found
	return f.entry == nil && f.damage == "" && f.gone == "" && (s.redo == keep || s.redo == retry)
}

// pollEvery is the pause between questions to pools, disks and other applies, which do not report that something was
// released. Patience is also measured in such steps.
const pollEvery = 500 * time.Millisecond
