package family

import (
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor/internal/namespace"
)

// Attr returns the attributes with which the leader of a family is started.
func Attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
}

// Adoption describes the orphans that become children of this process.
type Adoption struct {
	all     bool         // this process adopts each descendant whose parent ends
	foreign map[int]bool // sessions that hold no descendants of commands
}

// AdoptOrphans makes this process the parent of descendants whose own parent ends, so that they can still be found.
// If the kernel refuses, orphans are recognized only by their session and their environment.
//
// Foreign sessions are this process's own, and those of children that existed before this program replaced another
// one with exec, as in "server & exec benchgraph".
func AdoptOrphans() Adoption {
	foreign := map[int]bool{}
	a := Adoption{all: unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil, foreign: foreign}
	all, err := processes()
	if err != nil {
		return a // New will report the error
	}
	self := os.Getpid()
	started := pidfds()
	for _, p := range all {
		if p.pid == self || p.parent == self && !started[p.pid] {
			foreign[p.session] = true
		}
	}
	return a
}

// AwaitExit returns when p has ended, and does not reap it: until it is reaped, no other process, group or session
// can get its number.
func AwaitExit(p *os.Process) {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// Family is a program, called the leader, and all its descendants.
type Family struct {
	leader  procID
	mark    Mark
	thread  int // thread that started the leader
	orphans Adoption
	known   map[procID]bool
}

// New returns the family of a leader. The thread that started the leader must call it, and the leader's environment
// must contain the mark.
func New(leader int, m Mark, orphans Adoption) (*Family, error) {
	born, err := bornOf(leader)
	if err != nil {
		return nil, err
	}
	return &Family{leader: procID{leader, born}, mark: m, thread: unix.Gettid(), orphans: orphans,
		known: map[procID]bool{}}, nil
}

// gone reports whether only the leader is left of the family, ended and not yet reaped. Most programs leave no
// process. gone is cheap, because it looks at two lists of children, while members reads all processes of the
// machine.
//
// The kernel gives orphans to the main thread of this process. Since the leader has ended, each remaining descendant
// descends either from a child of the main thread or (CLONE_PARENT) from another child of the thread that started the
// leader. As long as the first child in a list stays, the kernel shows reliably whether there are others. If gone
// returns false, there may still be no process left.
func (f *Family) gone() bool {
	if !f.orphans.all {
		return false
	}
	orphans, err := childList(os.Getpid())
	if err != nil || orphans != "" {
		return false
	}
	siblings, err := childList(f.thread)
	return err == nil && siblings == strconv.Itoa(f.leader.pid)
}

// members returns the living processes of the family. It reaps zombies that no other process will reap.
func (f *Family) members() ([]proc, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	in := map[int]bool{}
	for _, p := range all {
		in[p.pid] = p.session == f.leader.pid || p.group == f.leader.pid || f.known[p.id()]
	}
	addChildren(all, in)
	for _, p := range all {
		// Read the environment last and only where necessary: it costs most.
		if !in[p.pid] && p.born >= f.leader.born && p.state != 'Z' {
			if m, ok := markOf(p.pid); ok && m == f.mark {
				in[p.pid] = true
			}
		}
	}
	for _, p := range f.strays(all) {
		in[p.pid] = true
	}
	addChildren(all, in)
	var living []proc
	for _, p := range all {
		if in[p.pid] {
			f.known[p.id()] = true
			if p.state != 'Z' && p.state != 'X' {
				living = append(living, p)
			}
		}
	}
	return living, nil
}

// addChildren adds all descendants of the processes in the set.
func addChildren(all []proc, in map[int]bool) {
	for again := true; again; {
		again = false
		for _, p := range all {
			if in[p.parent] && !in[p.pid] {
				in[p.pid] = true
				again = true
			}
		}
	}
}

// strays returns adopted orphans that neither session nor environment connects with a program: they changed their
// session and hid their environment (a server that sets its title overwrites it). Such an orphan belongs to this
// family unless another program still runs that is old enough to have started it. The last of the possible programs
// to end therefore ends the orphan.
//
// For processes that this process started itself, through any package, os keeps a pidfd. Adopted processes have none.
func (f *Family) strays(all []proc) []proc {
	self := os.Getpid()
	adopted := slices.DeleteFunc(slices.Clone(all), func(p proc) bool {
		return p.parent != self || p.pid == f.leader.pid
	})
	if len(adopted) == 0 {
		return nil
	}
	started := pidfds()
	if !started[f.leader.pid] {
		return nil // without pidfds, started and adopted processes look the same
	}
	var others []proc
	for _, p := range adopted {
		if started[p.pid] && !isApart(p.session) && !namespace.Runs(p.pid) {
			others = append(others, p)
		}
	}
	return slices.DeleteFunc(adopted, func(p proc) bool {
		if started[p.pid] {
			return true
		}
		if p.state == 'Z' {
			_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil) // reaps it
			return true
		}
		if self == 1 || f.orphans.foreign[p.session] {
			return true // a container's first process also adopts orphans of others
		}
		if m, ok := markOf(p.pid); ok && m != f.mark && m.Starter == f.mark.Starter {
			return true // belongs to another program of this process, which will find it
		}
		return slices.ContainsFunc(others, func(o proc) bool {
			return o.state != 'Z' && o.born <= p.born || o.pid == p.session
		})
	})
}

// send sends sig to the leader's group at once, so that a shell does not see its commands end before it ends itself.
// All other processes get the signal one by one.
func (f *Family) send(sig syscall.Signal, procs []proc) {
	group := false
	for _, p := range procs {
		if p.group == f.leader.pid {
			group = true
		} else {
			signalProc(p, sig)
		}
	}
	if group {
		_ = unix.Kill(-f.leader.pid, sig) // the next call of members finds processes that this misses
	}
}
