//go:build linux || darwin

package executor

import (
	"syscall"
	"time"
)

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
