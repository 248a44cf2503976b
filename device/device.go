// Package device grants amounts of what a machine has few of: cores, memory, GPUs, ports, and the quiet of the host.
package device

import "regexp"

// Device is one GPU as its driver sees it.
type Device struct {
	Index  int    `json:"index"`
	UUID   string `json:"uuid"`
	Name   string `json:"name"`
	Memory int64  `json:"memory_bytes"`
	Used   int64  `json:"used_bytes"`
}

// GPUs asks for devices. The zero value asks for none.
type GPUs struct {
	Count  int
	Memory int64          // bytes a device must have at least, as its maker counts: up to 8 % may be kept by driver and ECC
	Model  *regexp.Regexp // matched against Device.Name; nil: any
}

// Request is what a node needs while it runs; all of it is granted at once, or nothing.
type Request struct {
	CPUs   int   // cores; 0 counts as 1; more than the machine has counts as all
	Memory int64 // bytes; 0: not counted
	Ports  int   // free TCP ports on the loopback interface
	GPUs   GPUs
	Quiet  bool // nothing else of benchgraph's runs on the host meanwhile
}

// Lease is what was granted. It is exclusive until it is released.
type Lease struct {
	CPUs   int
	Memory int64
	Ports  []int
	GPUs   []Device
	Quiet  bool

	release func() // safe to call twice; nil in a Lease that no Pool made
	yield   func() // likewise
}

// Yield gives the cores and the memory back, while the holder waits for a disk. It is still there: what must have the
// host for itself does not start beside it, nor anything beside it when that is itself.
func (l *Lease) Yield() {
	if l != nil && l.yield != nil {
		l.yield()
	}
}

// Release gives back all of the lease. A second call does nothing. It is safe for concurrent use.
func (l *Lease) Release() {
	if l != nil && l.release != nil {
		l.release()
	}
}

// Pool grants leases.
//
// Fits says why a request can never be granted here, however long one waits; nil when it can.
// TryAcquire grants all of the request now, or returns nil and what it waits for.
type Pool interface {
	Fits(Request) error
	TryAcquire(Request) (lease *Lease, waitsFor string)
}
