package family

import (
	"context"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Attr returns the attributes with which the leader of a family is started.
func Attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// Adoption is empty: on this system, orphans go to the machine's first process.
type Adoption struct{}

// AdoptOrphans does nothing on this system.
func AdoptOrphans() Adoption { return Adoption{} }

// AwaitExit returns when p has ended.
func AwaitExit(p *os.Process) {
	for kqueueWait(p.Pid) == unix.EINTR {
	}
}

// kqueueWait waits for the end of the process without reaping it.
func kqueueWait(pid int) error {
	kq, err := unix.Kqueue()
	if err != nil {
		return err
	}
	defer unix.Close(kq)
	var event [1]unix.Kevent_t
	unix.SetKevent(&event[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	event[0].Fflags = unix.NOTE_EXIT
	_, err = unix.Kevent(kq, event[:], event[:], nil)
	return err
}

// Family is a program and its process group. Descendants that leave the group are not found on this system.
type Family struct{ leader procID }

// New returns the family of a leader.
func New(leader int, _ Mark, _ Adoption) (*Family, error) {
	return &Family{leader: procID{pid: leader}}, nil
}

// gone returns false: members is as fast on this system.
func (f *Family) gone() bool { return false }

// members returns the group as one process while a process in it lives. The kernel refuses signals to a group of
// zombies with EPERM.
func (f *Family) members() ([]proc, error) {
	if err := unix.Kill(-f.leader.pid, 0); err != nil {
		return nil, nil
	}
	return []proc{{pid: f.leader.pid, group: f.leader.pid, state: 'R', name: "process group"}}, nil
}

func (f *Family) send(sig syscall.Signal, _ []proc) { _ = unix.Kill(-f.leader.pid, sig) }

func bornOf(int) (uint64, error) { return 0, errors.ErrUnsupported }

func pidNamespace() string { return "0" }

// Gone reports that nothing is known, because bornOf is not supported.
func (Starter) Gone() (gone, known bool) { return false, false }

// Reap does nothing on this system, where the environment of other processes cannot be read.
func Reap(context.Context, string) (int, error) { return 0, nil }

// KillDescendants does nothing on this system, where descendants are not known.
func KillDescendants() {}

// Own reports whether a process is this one: its descendants are not known here.
func Own(pid int) bool { return pid == os.Getpid() }
