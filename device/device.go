// Package device grants the scarce amounts of a machine: cores, memory, disk, GPUs, ports, and the quiet of the host.
package device

import (
	"os"
	"regexp"
	"strings"

	"github.com/benchgraph/benchgraph/device/gpu"
)

// GPUs asks for devices, which are all of one kind. The zero value asks for none.
type GPUs struct {
	Count int
	// bytes a device must have at least, as its maker counts: up to 8 % may be kept by driver and ECC
	Memory int64
	Model  *regexp.Regexp // matched against Device.Name; nil: any
	Kind   string         // as machine.KindOf calls it; empty: any
}

// Request is what a node needs while it runs; all of it is granted at once, or nothing.
type Request struct {
	CPUs   int   // cores; 0 counts as 1, NoCore as none; more than the machine has counts as all
	Cores  bool  // it must be told which ones, for it can keep to them; those who do not keep to any are not told apart
	Memory int64 // bytes; 0: not counted
	Disk   int64 // bytes of room where nodes work; 0: not counted
	Ports  int   // free TCP ports on the loopback interface
	GPUs   GPUs
	Quiet  bool   // nothing else of benchgraph's runs on the host meanwhile
	Queue  string // name of the cluster that runs the node; "": this machine does
}

// NoCore is what a node asks for that only waits for others, such as a download. A pool grants a few of them at a time,
// beside those that compute.
const NoCore = -1

// Takes is how many cores a request takes of a machine that has enough.
func (r Request) Takes() int {
	if r.CPUs == NoCore {
		return 0
	}
	return max(r.CPUs, 1)
}

// Lease is what was granted. It is exclusive until it is released.
type Lease struct {
	CPUs   int
	Cores  []int // numbers of the cores, ascending, which no other lease names; nil: not asked for, or not known here
	Memory int64
	Disk   int64
	Ports  []int
	GPUs   []gpu.Device
	Quiet  bool

	locks   []*os.File
	release func()            // safe to call twice; nil in a Lease that no Pool made
	yield   func()            // likewise
	name    func(node string) // nil likewise
}

// Visible is the value of CUDA_VISIBLE_DEVICES for the GPUs: empty when there are none, so that none can be used
// without a lease. A nil Lease has none.
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

// Granted returns a lease of something that a pool outside of this package counts.
func Granted(release func()) *Lease { return &Lease{release: release} }

// Name notes the node of the lease, for messages about the holder of a device.
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

// Release gives back all of the lease. A second call does nothing. It is safe for concurrent use.
func (l *Lease) Release() {
	if l != nil && l.release != nil {
		l.release()
	}
}

// Locks are the open files by whose locks the devices are kept from others. Who inherits them keeps the devices, too,
// until it ends.
func (l *Lease) Locks() []*os.File { return l.locks }

// Amounts are how much there is of what can be counted.
type Amounts struct {
	CPUs   int
	Memory int64 // bytes
	Disk   int64 // bytes
	GPUs   int
}

// Covers says whether there is enough for a request.
func (a Amounts) Covers(r Request) bool {
	return a.CPUs >= r.Takes() && a.Memory >= r.Memory && a.Disk >= r.Disk && a.GPUs >= r.GPUs.Count
}

// Plus is a with b added.
func (a Amounts) Plus(b Amounts) Amounts {
	return Amounts{a.CPUs + b.CPUs, a.Memory + b.Memory, a.Disk + b.Disk, a.GPUs + b.GPUs}
}

// Minus is a without what a request takes of it.
func (a Amounts) Minus(r Request) Amounts {
	return Amounts{a.CPUs - r.Takes(), a.Memory - r.Memory, a.Disk - r.Disk, a.GPUs - r.GPUs.Count}
}

// Amounts returns the amounts of the lease. Of its devices, it counts those that suit like.
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
// Fits reports why a request can never be granted here, or nil. TryAcquire grants the whole request now, or nothing,
// with the reason. Free returns the amounts that are free now for a request: of the devices, those that suit it, and
// plenty if it asks for none; likewise of the disk. More cores than the machine has count as all of them, and unknown
// memory counts as plenty.
type Pool interface {
	Fits(Request) error
	TryAcquire(Request) (*Lease, *Refusal)
	Free(Request) Amounts
}

// Refusal is why a request is not granted now.
type Refusal struct {
	WaitsFor string // in words
	Looking  bool   // for a look at devices that may do: there is no answer yet, and soon there is one
	// for what others than benchgraph keep from it: what its own leases hold would not be enough
	Outside bool
	// with Outside: for devices that this process has just given back, which may have to cool down
	Settles bool
	Disk    bool // for room on the disk; else, if Outside, for devices
	Lost    bool // for nothing that could come: too many of the devices are not granted any more
	Taken   int  // devices that others keep, of those that Free counts
	// closed when devices were found in another state, and the answer may be another one; nil: it does not depend on
	// that
	Changed <-chan struct{}
}
