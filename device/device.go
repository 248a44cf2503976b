// Package device grants the scarce resources of a machine: cores, memory, disk space, GPUs, ports, and quiet.
package device

import (
	"os"
	"regexp"
	"strings"

	"github.com/benchgraph/benchgraph/device/gpu"
)

// GPUs is a request for devices of one kind. The zero value requests none.
type GPUs struct {
	Count int
	// minimum bytes of a device by its nominal size; driver and ECC may keep up to 8 % of them
	Memory int64
	Model  *regexp.Regexp // matched against Device.Name; nil: any
	Kind   string         // as returned by machine.KindOf; empty: any
}

// Request is what a node needs while it runs. Everything is granted at once, or nothing.
type Request struct {
	CPUs   int   // cores; 0 counts as 1, NoCore as 0; more than the machine has counts as all
	Cores  bool  // it needs the numbers of its cores, because its commands can be bound to them
	Memory int64 // bytes; 0: unlimited and not counted
	Disk   int64 // bytes of disk space for its files; 0: not counted
	Ports  int   // free TCP ports on the loopback interface
	GPUs   GPUs
	Quiet  bool   // nothing else of benchgraph's may run on the host meanwhile
	Queue  string // name of the cluster that runs the node; "": this machine
}

// NoCore is for nodes that only wait for other machines, such as downloads. A pool grants a few of them at a time, in
// addition to nodes that compute.
const NoCore = -1

// Takes returns how many cores a request takes on a machine that has enough.
func (r Request) Takes() int {
	if r.CPUs == NoCore {
		return 0
	}
	return max(r.CPUs, 1)
}

// Lease is a granted request. It is exclusive until it is released.
type Lease struct {
	CPUs   int
	Cores  []int // numbers of the cores, ascending, in no other lease; nil: not requested or not known
	Memory int64
	Disk   int64
	Ports  []int
	GPUs   []gpu.Device
	Quiet  bool

	locks   []*os.File
	release func()            // may be called twice; nil in a Lease that no Pool made
	yield   func()            // may be called twice; may be nil
	name    func(node string) // may be nil
}

// Visible returns the value of CUDA_VISIBLE_DEVICES for the GPUs of the lease. It is empty without GPUs, so that no
// GPU can be used without a lease. l may be nil.
func (l *Lease) Visible() string {
	if l == nil {
		return ""
	}
	uuids := make([]string, len(l.GPUs))
	for i, d := range l.GPUs {
		uuids[i] = d.UUID
	}
	return strings.Join(uuids, ",")
}

// Granted returns a lease of something that is counted outside of this package.
func Granted(release func()) *Lease { return &Lease{release: release} }

// Name records the node of the lease, for messages about the holder of a device.
func (l *Lease) Name(node string) {
	if l != nil && l.name != nil {
		l.name(node)
	}
}

// Yield returns the cores, the memory and the disk space while the holder waits for the disk. The lease still counts
// for quiet: a quiet node does not start beside it, nor any node beside a quiet holder.
func (l *Lease) Yield() {
	if l != nil && l.yield != nil {
		l.yield()
	}
}

// Release gives everything back. A second call does nothing. It is safe for concurrent use.
func (l *Lease) Release() {
	if l != nil && l.release != nil {
		l.release()
	}
}

// Locks returns the open files whose locks reserve the devices. A process that inherits the files holds the locks
// until it ends.
func (l *Lease) Locks() []*os.File { return l.locks }

// Amounts are amounts of the countable resources.
type Amounts struct {
	CPUs   int
	Memory int64 // bytes
	Disk   int64 // bytes
	GPUs   int
}

// Covers reports whether the amounts are enough for a request.
func (a Amounts) Covers(r Request) bool {
	return a.CPUs >= r.Takes() && a.Memory >= r.Memory && a.Disk >= r.Disk && a.GPUs >= r.GPUs.Count
}

// Plus returns the sum of a and b.
func (a Amounts) Plus(b Amounts) Amounts {
	return Amounts{a.CPUs + b.CPUs, a.Memory + b.Memory, a.Disk + b.Disk, a.GPUs + b.GPUs}
}

// Minus returns a without the amounts of a request.
func (a Amounts) Minus(r Request) Amounts {
	return Amounts{a.CPUs - r.Takes(), a.Memory - r.Memory, a.Disk - r.Disk, a.GPUs - r.GPUs.Count}
}

// Amounts returns the amounts of the lease. It counts only the devices that suit like.
func (l *Lease) Amounts(like GPUs) Amounts {
	a := Amounts{CPUs: l.CPUs, Memory: l.Memory, Disk: l.Disk}
	for _, d := range l.GPUs {
		if like.Suits(d) {
			a.GPUs++
		}
	}
	return a
}

// Pool grants leases and never waits.
//
// Fits returns why a request can never be granted here, or nil. TryAcquire grants the whole request now, or nothing
// and returns the reason. Free returns the amounts that are free now for a request: it counts only devices that suit
// the request; for a request without devices or disk it returns plenty of them. A request for more cores than the
// machine has counts as a request for all cores. Unknown memory counts as plenty.
type Pool interface {
	Fits(Request) error
	TryAcquire(Request) (*Lease, *Refusal)
	Free(Request) Amounts
}

// Refusal is why a request is not granted now.
type Refusal struct {
	WaitsFor string // what the request waits for, in words
	Looking  bool   // a check of devices is under way and will end soon
	// devices or disk are used outside of benchgraph: releasing its own leases would not be enough
	Outside bool
	// with Outside: only devices that this process has just released, and that may have to cool down, are missing
	Settles bool
	Disk    bool // the request waits for disk space; otherwise, with Outside, for devices
	Lost    bool // too many devices are lost: waiting does not help
	Taken   int  // number of devices that others use, out of those that Free counts
	// closed when the state of devices has changed, so that a retry may succeed; nil: the request does not depend on
	// devices
	Changed <-chan struct{}
}
