// Package pool grants slots for the jobs of an executor.
package pool

import (
	"fmt"
	"sync"

	"github.com/benchgraph/benchgraph/device"
)

// Pool adds slots for the jobs of one executor to another pool: that of this machine, perhaps with slots of others.
type Pool struct {
	device.Pool
	machine device.Pool
	name    string
	max     int

	mu   sync.Mutex
	jobs int
}

// New returns a pool with slots for most jobs of the named executor, beside the pool of. Each job runs on a machine
// with the pool machine.
func New(of, machine device.Pool, name string, most int) *Pool {
	return &Pool{Pool: of, machine: machine, name: name, max: most}
}

// Fits returns why a request can never be granted; nil if it can. The request of a job is compared with the pool of the
// job's machine.
func (p *Pool) Fits(q device.Request) error {
	if q.Queue == p.name {
		return p.machine.Fits(q)
	}
	return p.Pool.Fits(q)
}

// TryAcquire grants a slot for a job, or a lease of the pool beneath.
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

// Free returns the free amounts. Jobs take nothing of this machine, so nothing is kept back for them.
func (p *Pool) Free(q device.Request) device.Amounts {
	if q.Queue == p.name {
		const plenty = 1 << 30
		return device.Amounts{CPUs: plenty, Memory: plenty << 30, Disk: plenty << 30, GPUs: plenty}
	}
	return p.Pool.Free(q)
}
