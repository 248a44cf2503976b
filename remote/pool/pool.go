// Package pool grants places among the jobs of an executor.
package pool

import (
	"fmt"
	"sync"

	"github.com/benchgraph/benchgraph/device"
)

// Pool is the pool of this machine, which may have places of other executors already, with places for the jobs of one.
type Pool struct {
	device.Pool
	machine device.Pool
	name    string
	max     int

	mu   sync.Mutex
	jobs int
}

// New returns a pool with as many places as the executor of a name has jobs at once, each on a machine like one with
// that other pool.
func New(of, machine device.Pool, name string, most int) *Pool {
	return &Pool{Pool: of, machine: machine, name: name, max: most}
}

// Fits reports why a request can never be granted: what a job asks for is held against the machine that it runs on.
func (p *Pool) Fits(q device.Request) error {
	if q.Queue == p.name {
		return p.machine.Fits(q)
	}
	return p.Pool.Fits(q)
}

// TryAcquire grants a place among the jobs, or what the pool of this machine grants.
func (p *Pool) TryAcquire(q device.Request) (*device.Lease, *device.Refusal) {
	if q.Queue != p.name {
		return p.Pool.TryAcquire(q)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jobs >= p.max {
		return nil, &device.Refusal{WaitsFor: fmt.Sprintf("one of the %d jobs of executor %s to end", p.max, p.name)}
	}
	p.jobs++
	return device.Granted(sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.jobs--
	})), nil
}

// Free returns the amounts that are free. Jobs take nothing of this machine, so that nothing is kept back for them.
func (p *Pool) Free(q device.Request) device.Amounts {
	if q.Queue == p.name {
		const plenty = 1 << 30
		return device.Amounts{CPUs: plenty, Memory: plenty << 30, Disk: plenty << 30, GPUs: plenty}
	}
	return p.Pool.Free(q)
}
