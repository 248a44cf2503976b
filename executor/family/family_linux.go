package family

import (
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor/internal/namespace"
)

// Attr returns how the leader of a family is started.
func Attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
}

// Adoption is what is known of the orphans that become children of this process.
type Adoption struct {
	all     bool         // each descendant whose parent ends becomes one
	foreign map[int]bool // sessions in which no descendant of a program can be
}

// AdoptOrphans makes this process the parent of descendants whose own parent ends, so that they can still be found.
// Where the kernel refuses, they are known by their session and their environment only.
//
// Foreign are the sessions of what is there already: its own, and those of children that it has from a program that was
// replaced by it, as in "server & exec benchgraph".
func AdoptOrphans() Adoption {
	foreign := map[int]bool{}
	a := Adoption{all: unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil, foreign: foreign}
	all, err := processes()
	if err != nil {
		return a // New will say what is wrong
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

// AwaitExit returns when p has ended, and leaves it unreaped: as long as it is, its number cannot name another process,
// group or session.
func AwaitExit(p *os.Process) {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// Family is a program, its leader, and all that descends from it.
type Family struct {
	leader  procID
	mark    Mark
	thread  int // that started the leader
	orphans Adoption
	known   map[procID]bool
}

// New is called by the thread that started the leader, which has the mark in its environment.
func New(leader int, m Mark, orphans Adoption) (*Family, error) {
	born, err := bornOf(leader)
	if err != nil {
		return nil, err
	}
	return &Family{leader: procID{leader, born}, mark: m, thread: unix.Gettid(), orphans: orphans,
		known: map[procID]bool{}}, nil
}

// gone says whether nothing is left of the family but its leader, which has ended and was not reaped yet. Most programs
// leave nothing, and to find that out this looks at no other process, while members looks at all of the machine.
//
// The parent of a process is its parent, or, once that has ended, this process, in whose main thread the kernel enters
// it. The leader has ended. So what is left of its family descends from a child of the main thread, or (CLONE_PARENT)
// from another child of the thread that started the leader. Whether a list of children has more than its first one is
// told for sure, as long as the first one stays. False is no answer: nothing may be left, or the kernel cannot tell.
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

// members returns all that live. A zombie does not live; those that nobody else will reap are reaped.
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
		// The environment is read last and of few, as it costs most.
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

// addChildren adds the children of those that are in, and theirs.
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

// strays returns the orphans that this process adopted and that nothing but their age connects with a program: they
// changed their session, and hide their environment (a server that sets its title overwrites it). Such a one belongs to
// this family unless another program still runs that is old enough to have started it; who ends after all of those ends
// it.
//
// What this process started itself, through any package, is told from what it adopted by the pidfd that os keeps of it.
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
		return nil // without pidfds the two cannot be told apart
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
			return true // the first process of a container is given all orphans, also those of strangers
		}
		if m, ok := markOf(p.pid); ok && m != f.mark && m.Starter == f.mark.Starter {
			return true // of another program of this process, which will find it
		}
		return slices.ContainsFunc(others, func(o proc) bool {
			return o.state != 'Z' && o.born <= p.born || o.pid == p.session
		})
	})
}

// send sends sig to the leader's group at once, so that a shell does not see its commands end before itself, and to
// the others one by one.
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
		_ = unix.Kill(-f.leader.pid, sig) // what it misses is seen by the next look
	}
}
