//go:build linux || darwin

package family

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// SettleTime is how long descendants may take to end by themselves after their program: the last ones, such as
	// the tee of a shell's output, often end a moment later and do not count as left.
	SettleTime = 100 * time.Millisecond
	// KillTime is how long a killed process may take to be gone. One that takes longer hangs in the kernel.
	KillTime = 10 * time.Second
)

// End ends the whole family. If the leader ended by itself, its descendants first get SettleTime. Then all get
// SIGTERM and, after the grace time, SIGKILL. ended is closed when the leader, called name, has ended; stop is closed
// when everything must end at once. left counts the processes that outlived the leader and got a signal.
func (f *Family) End(name string, ended, stop <-chan struct{}, grace time.Duration) (left int, err error) {
	s := sweep{members: f.members, send: f.send, counted: ended, count: &left}
	select {
	case <-ended:
		if f.gone() {
			return 0, nil
		}
		if rest, err := s.run(0, SettleTime, stop); err != nil || len(rest) == 0 {
			return left, err
		}
	case <-stop:
	}
	if rest, err := s.run(unix.SIGTERM, grace, nil); err != nil || len(rest) == 0 {
		return left, err
	}
	rest, err := s.run(unix.SIGKILL, KillTime, nil)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%s: processes that cannot be ended: %s", name, list(rest))
	}
	return left, err
}

func list(procs []proc) string {
	var names []string
	for _, pr := range procs {
		names = append(names, fmt.Sprintf("%d (%s, state %c)", pr.pid, pr.name, pr.state))
	}
	return strings.Join(names, ", ")
}

// proc is one living process.
type proc struct {
	pid, parent, group, session int
	born                        uint64 // clock ticks since boot; pid and born together are unique
	state                       byte   // as in ps: R, S, D, Z, …
	name                        string
}

// procID identifies a process uniquely; the number alone may be reused.
type procID struct {
	pid  int
	born uint64
}

func (p proc) id() procID { return procID{p.pid, p.born} }

// sweep ends a set of processes that may still grow.
type sweep struct {
	members func() ([]proc, error)
	send    func(syscall.Signal, []proc)
	counted <-chan struct{} // once closed, signalled processes are counted
	count   *int
	seen    map[procID]bool // already counted
}

// run sends sig once to each member, also to members that appear later; for 0 it sends nothing. It returns the
// members that are left when the limit has passed or enough is closed. SIGKILL is sent repeatedly.
func (s *sweep) run(sig syscall.Signal, limit time.Duration, enough <-chan struct{}) ([]proc, error) {
	deadline := time.Now().Add(limit)
	sent := map[procID]bool{}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		over := isClosed(s.counted)
		members, err := s.members()
		if err != nil || len(members) == 0 {
			return nil, err
		}
		var fresh []proc
		for _, m := range members {
			if !sent[m.id()] || sig == syscall.SIGKILL {
				sent[m.id()] = true
				fresh = append(fresh, m)
			}
		}
		if sig != 0 && len(fresh) > 0 {
			s.send(sig, fresh)
			if over {
				s.add(fresh)
			}
		}
		if time.Now().After(deadline) {
			return members, nil
		}
		select {
		case <-enough:
			return members, nil
		case <-time.After(pause):
		}
	}
}

func (s *sweep) add(procs []proc) {
	if s.seen == nil {
		s.seen = map[procID]bool{}
	}
	for _, p := range procs {
		if !s.seen[p.id()] {
			s.seen[p.id()] = true
			*s.count++
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
