package family

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reapGrace is how long programs of a dead owner may take to end after SIGTERM.
const reapGrace = 2 * time.Second

// Reap ends the processes that a Host of an owner left when its process was killed, and returns how many. It ends
// only processes whose mark names that owner and a starter that has ended, and their descendants. If ctx ends first,
// it returns the cause of ctx.
func Reap(ctx context.Context, owner string) (int, error) {
	hash, namespace := ownerHash(owner), pidNamespace()
	count, counted := 0, make(chan struct{})
	close(counted)
	s := sweep{
		members: func() ([]proc, error) {
			all, err := processes()
			if err != nil {
				return nil, err
			}
			return abandoned(all, hash, namespace), nil
		},
		send: func(sig syscall.Signal, procs []proc) {
			for _, p := range procs {
				signalProc(p, sig)
			}
		},
		counted: counted,
		count:   &count,
	}
	rest, err := s.run(unix.SIGTERM, reapGrace, ctx.Done())
	if err == nil && len(rest) > 0 && ctx.Err() == nil {
		rest, err = s.run(unix.SIGKILL, KillTime, ctx.Done())
	}
	switch {
	case err != nil:
		return count, fmt.Errorf("end abandoned processes: %w", err)
	case len(rest) > 0 && ctx.Err() != nil:
		return count, fmt.Errorf("end abandoned processes: %w", context.Cause(ctx))
	case len(rest) > 0:
		return count, fmt.Errorf("abandoned processes that cannot be ended: %s", list(rest))
	}
	return count, nil
}

// Gone reports whether a starter in this PID namespace has ended. known is false if the process cannot be read and
// its number is in use: /proc may hide processes of other users (hidepid).
func (s Starter) Gone() (gone, known bool) {
	p, err := readProc(s.PID)
	if err != nil {
		return true, errors.Is(unix.Kill(s.PID, 0), unix.ESRCH)
	}
	return p.born != s.Born || p.state == 'Z', true
}

// abandoned returns the living processes of the owner whose starter has ended, and their descendants.
func abandoned(all []proc, owner, namespace string) []proc {
	living, parent := map[procID]bool{}, map[int]int{}
	for _, p := range all {
		living[p.id()] = p.state != 'Z' // a zombie only waits for its status to be read
		parent[p.pid] = p.parent
	}
	in := map[int]bool{}
	for _, p := range all {
		m, ok := markOf(p.pid)
		if ok && living[procID{m.PID, m.Born}] {
			continue // a living process answers for it
		}
		in[p.pid] = ok && m.owner == owner && m.Namespace == namespace
	}
	// A dead process may have started this one: spare this process and all its ancestors.
	for pid := os.Getpid(); pid > 0; pid = parent[pid] {
		delete(in, pid)
	}
	addChildren(all, in)
	var found []proc
	for _, p := range all {
		if in[p.pid] && p.state != 'Z' && p.state != 'X' {
			found = append(found, p)
		}
	}
	return found
}
