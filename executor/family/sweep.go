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
	// SettleTime is what is left of a program that has ended gets to end by itself: what the program started last, such
	// as the tee of a shell's output, often ends a moment after it and is no leftover.
	SettleTime = 100 * time.Millisecond
	// KillTime is how long a process that was killed may take to be gone. One that takes longer hangs in the kernel.
	KillTime = 10 * time.Second
)

// End ends all of the family: first it lets what is left be for a moment if the leader ended by itself, then it asks,
// then it kills. ended is closed when the leader, called name, has ended, and stop when all is to end at once. left is
// how many processes outlived the leader and had to be ended.
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
	born                        uint64 // clock ticks since boot; with pid it names the process for good
	state                       byte   // as in ps: R, S, D, Z, …
	name                        string
}

// procID names a process for good, while the number alone may be used again.
type procID struct {
	pid  int
	born uint64
}

func (p proc) id() procID { return procID{p.pid, p.born} }

// sweep ends a set of processes that may grow while it is being ended.
type sweep struct {
	members func() ([]proc, error)
	send    func(syscall.Signal, []proc)
	counted <-chan struct{} // once closed, processes that get a signal are counted
	count   *int
	seen    map[procID]bool // already counted
}

// run sends sig, or nothing when it is 0, to every member once, however late it appears, and returns those that are
// left when the limit has passed or enough is closed. SIGKILL is repeated.
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
