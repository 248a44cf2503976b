package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/link"
	"github.com/benchgraph/benchgraph/device/hostlock"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/device/ports"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// Options are the settings of a LocalPool.
type Options struct {
	CPUs int // cores
	// numbers of the usable cores, ascending, called once when they are needed; nil: not known
	Cores  func() []int
	Memory int64       // bytes; 0: not known, and never short
	Disk   func() Disk // current state of the file system on which nodes work; nil: not known, and never short
	// devices in the order in which equally connected ones are granted, called once when they are needed; nil: none
	GPUs  func() []gpu.Device
	Links func(a, b gpu.Device) link.Link // connection of two devices; nil: not known
	// why a free device must not be granted now; empty: it may be. It may take long. nil: all may be granted
	Ready func(gpu.Device) string
	Lost  func(gpu.Device) string // why a device must not be granted any more; empty: it may be; nil: all may be
	Last  func(gpu.Device) bool   // devices that are granted only if there are too few others; nil: none
	// directory of the locks by which users of the host respect quiet and each other's GPUs; empty: beside HostLock
	GPULocks string
	Warn     func(format string, args ...any) // tells that GPULocks cannot be used; nil: nobody is told
	// why some existing devices are not in GPUs, called after GPUs; nil or empty result: none known
	Amiss func() string
	Name  string // name of the machine in messages; empty: this machine
	// path of the lock by which the pools of all processes of the user, or of the host without GPULocks, respect quiet
	// and each other's GPUs; empty: only this process
	HostLock string
}

// LocalPool is the Pool of this machine. It is safe for concurrent use.
//
// It never waits, not even for a driver (see look.go), and keeps no queue: the only scheduler asks in its own order,
// and holds small requests back when it is the turn of a quiet one. There is no such order between processes: a
// process that always holds a lease can keep others from being quiet.
type LocalPool struct {
	total Options

	mu     sync.Mutex
	leases map[*Lease]*hold
	given  map[string]time.Time // last release of each device, by UUID
	ports  ports.Ports
	host   *hostlock.Lock

	looks   map[string]*look // checks of requested devices, by UUID
	looking bool             // a goroutine runs look
	hurry   chan struct{}    // tells look not to wait
	change  chan struct{}    // closed and replaced when a check has a new result
	open    context.Context  // ended by Close
	end     func()
}

// hold is the accounting of a lease.
type hold struct {
	cpus   int   // of the lease; 0 after Yield
	cores  []int // nil after Yield
	memory int64 // 0 after Yield
	disk   int64 // 0 after Yield
	gpus   []*hostlock.File
}

// mostCoreless is the largest number of leases without a core at a time: connections cost others something, too.
const mostCoreless = 16

// NewPool returns a pool. It returns an error if o is invalid or the host lock cannot be opened.
func NewPool(o Options) (*LocalPool, error) {
	if o.CPUs < 1 || o.Memory < 0 {
		return nil, fmt.Errorf("pool: %d cores and %d bytes of memory: both must be positive", o.CPUs, o.Memory)
	}
	o.Name = cmp.Or(o.Name, "this machine")
	if o.GPUs == nil {
		o.GPUs = func() []gpu.Device { return nil }
	}
	o.GPUs = sync.OnceValue(o.GPUs)
	if o.Cores != nil {
		o.Cores = sync.OnceValue(o.Cores)
	}
	p := &LocalPool{total: o, leases: map[*Lease]*hold{}, given: map[string]time.Time{}}
	p.looks, p.hurry, p.change = map[string]*look{}, make(chan struct{}, 1), make(chan struct{})
	p.open, p.end = context.WithCancel(context.Background())
	if o.HostLock != "" {
		host, err := hostlock.Open(o.HostLock, o.GPULocks, o.Warn)
		if err != nil {
			return nil, fmt.Errorf("pool: host lock: %w", err)
		}
		p.host = host
	}
	return p, nil
}

// PoolOf returns a pool for a described machine, which tells what fits there. Nothing can be leased from it by a
// process on a machine that does not have the devices.
func PoolOf(p *machine.Profile, name string) (*LocalPool, error) {
	return NewPool(Options{CPUs: p.Host.Cores, Memory: p.Host.Memory, GPUs: gpu.These(p.Devices), Name: name})
}

// Close ends the checks, except a running one, and closes the host lock. All leases must have been released.
func (p *LocalPool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.leases) > 0 {
		return fmt.Errorf("pool: closed while %d leases are held", len(p.leases))
	}
	p.end()
	if p.host == nil {
		return nil
	}
	return p.host.Close()
}

// Fits returns why r can never be granted. Too many cores are no reason: a build for 16 cores also runs on 2. Too
// little memory or disk is a reason, because the node would be killed half-way.
func (p *LocalPool) Fits(r Request) error {
	var errs []error
	if r.CPUs < NoCore || r.Memory < 0 || r.Disk < 0 || r.Ports < 0 || r.GPUs.Count < 0 {
		errs = append(errs, errors.New("a negative amount was asked for"))
	}
	if p.total.Memory > 0 && r.Memory > p.total.Memory {
		errs = append(errs, fmt.Errorf("needs %s of memory; %s has %s", printable.Bytes(r.Memory), p.total.Name,
			printable.Bytes(p.total.Memory)))
	}
	if err := p.diskFits(r.Disk); err != nil {
		errs = append(errs, err)
	}
	if r.Ports > ports.Most {
		errs = append(errs, fmt.Errorf("needs %d ports; at most %d are granted at a time", r.Ports, ports.Most))
	}
	return errors.Join(append(errs, p.gpusFit(r.GPUs))...)
}

// String describes the request in words.
func (g GPUs) String() string {
	text := fmt.Sprintf("%d devices", g.Count)
	if g.Count == 1 {
		text = "1 device"
	}
	if g.Memory > 0 {
		text += " with " + printable.Bytes(g.Memory)
	}
	if g.Model != nil {
		text += fmt.Sprintf(" and a name like %q", g.Model)
	}
	if g.Kind != "" {
		text += " of the kind " + g.Kind
	}
	return text
}

// Suits reports whether a device meets the conditions.
func (g GPUs) Suits(d gpu.Device) bool { return len(g.lacks(d)) == 0 }

// lacks returns why d cannot be granted. The driver reports 79.6 GiB for a device of "80 GiB", and 22.5 GiB for one
// of "24 GiB": up to 8 % of the nominal size is reserved for ECC and the driver. Sizes on the market differ by more
// than that.
func (g GPUs) lacks(d gpu.Device) []string {
	var lacks []string
	if g.Memory > 0 && d.Memory < g.Memory-g.Memory/100*8 {
		lacks = append(lacks, "has "+printable.Bytes(g.Memory-d.Memory)+" too little")
	}
	if g.Model != nil && !g.Model.MatchString(d.Name) {
		lacks = append(lacks, "is of another model")
	}
	if g.Kind != "" && machine.KindOf(d) != g.Kind {
		lacks = append(lacks, "is of another kind")
	}
	if g.Count > 1 && d.Parent != "" { // CUDA opens one instance per process, and NCCL cannot connect instances
		lacks = append(lacks, "is a MIG instance, which serves count = 1 alone")
	}
	return lacks
}

// TryAcquire grants all of r now, or nothing.
func (p *LocalPool) TryAcquire(r Request) (*Lease, *Refusal) {
	if err := p.Fits(r); err != nil {
		return nil, &Refusal{WaitsFor: err.Error()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &Lease{CPUs: min(r.Takes(), p.total.CPUs), Memory: r.Memory, Disk: r.Disk, Quiet: r.Quiet}
	if waits := p.amountsWait(l); waits != "" {
		p.unqueue()
		return nil, &Refusal{WaitsFor: waits}
	}
	if refused := p.diskWaits(l.Disk); refused != nil {
		p.unqueue()
		return nil, refused
	}
	if p.host != nil {
		if waits := p.host.Enter(r.Quiet); waits != "" {
			return nil, &Refusal{WaitsFor: waits}
		}
	}
	if r.Cores {
		l.Cores = p.freeCores(l.CPUs)
	}
	h := &hold{cpus: l.CPUs, cores: l.Cores, memory: l.Memory, disk: l.Disk}
	var refused *Refusal
	if l.GPUs, refused = p.takeGPUs(r.GPUs, h); refused == nil {
		var free bool
		if l.Ports, free = p.ports.Take(r.Ports); !free {
			refused = &Refusal{WaitsFor: fmt.Sprintf("%d free ports", r.Ports)}
		}
	}
	if refused != nil {
		p.giveBack(h)
		if !refused.Looking && !refused.Settles { // those take only a moment
			p.unqueue()
		}
		return nil, refused
	}
	p.unqueue()
	for _, lock := range h.gpus {
		l.locks = append(l.locks, lock.File)
	}
	for _, d := range l.GPUs {
		delete(p.looks, d.UUID) // the check says nothing about the device after the lease
	}
	p.leases[l] = h
	l.release = sync.OnceFunc(func() { p.release(l) })
	l.yield = func() { p.yield(h) }
	l.name = func(node string) { p.name(h, node) }
	return l, nil
}

// unqueue lets nodes of other processes on the host come first.
func (p *LocalPool) unqueue() {
	if p.host != nil {
		p.host.Unqueue()
	}
}

// amountsWait returns which cores, memory or quiet l waits for.
func (p *LocalPool) amountsWait(l *Lease) string {
	if l.Quiet && len(p.leases) > 0 {
		return fmt.Sprintf("quiet: the end of %d others", len(p.leases))
	}
	cpus, memory, coreless := p.total.CPUs, p.total.Memory, 0
	for other, held := range p.leases {
		if other.Quiet {
			return "the end of a quiet one"
		}
		if other.CPUs == 0 {
			coreless++
		}
		cpus -= held.cpus
		memory -= held.memory
	}
	if l.CPUs == 0 && coreless == mostCoreless {
		return fmt.Sprintf("the end of one of %d downloads", coreless)
	}
	if l.CPUs > cpus {
		return fmt.Sprintf("%d cores (%d of %d are free)", l.CPUs, cpus, p.total.CPUs)
	}
	if p.total.Memory > 0 && l.Memory > memory {
		return fmt.Sprintf("%s of memory (%s of %s are free)", printable.Bytes(l.Memory), printable.Bytes(memory),
			printable.Bytes(p.total.Memory))
	}
	return ""
}

// freeCores returns cores that are in no lease, lowest first. There are always enough: leases with numbered cores
// hold at most as many as the pool has.
func (p *LocalPool) freeCores(n int) []int {
	if p.total.Cores == nil {
		return nil
	}
	var free []int
	for _, core := range p.total.Cores() {
		held := false
		for _, h := range p.leases {
			held = held || slices.Contains(h.cores, core)
		}
		if !held {
			free = append(free, core)
		}
	}
	return slices.Clip(free[:min(n, len(free))])
}

// Free returns the amounts for a request that this process does not hold.
func (p *LocalPool) Free(r Request) Amounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := Amounts{CPUs: p.total.CPUs, Memory: p.total.Memory, Disk: plenty << 30, GPUs: plenty}
	for _, h := range p.leases {
		a.CPUs -= h.cpus
		a.Memory -= h.memory
	}
	if d := p.disk(r.Disk); d.Size > 0 {
		a.Disk = d.Free - p.diskKept()
	}
	if r.GPUs.Count > 0 {
		a.GPUs = 0
		for _, kind := range machine.ByKind(p.free(p.suitable(r.GPUs))) {
			a.GPUs = max(a.GPUs, len(kind))
		}
	}
	if r.CPUs > p.total.CPUs {
		a.CPUs += r.CPUs - p.total.CPUs
	}
	if p.total.Memory == 0 {
		a.Memory = plenty << 30
	}
	return a
}

// plenty is an amount that is never short and that can be added to others.
const plenty = math.MaxInt32

func (p *LocalPool) release(l *Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.leases[l]
	delete(p.leases, l)
	for _, d := range l.GPUs {
		p.given[d.UUID] = time.Now()
	}
	p.ports.Give(l.Ports)
	p.giveBack(h)
}

func (p *LocalPool) yield(h *hold) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.cpus, h.cores, h.memory, h.disk = 0, nil, 0, 0
}

func (p *LocalPool) name(h *hold, node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, lock := range h.gpus {
		lock.Note(node)
	}
}

func (p *LocalPool) giveBack(h *hold) {
	for _, lock := range h.gpus {
		lock.Close()
	}
	if p.host != nil {
		p.host.Leave()
	}
}
