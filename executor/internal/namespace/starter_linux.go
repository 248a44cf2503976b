package namespace

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor/internal/first"
)

const (
	// A spare that nobody has wanted for so long is given up.
	spareTime = 10 * time.Second
	// The namespaces of so many commands may still be there before the end of one more is waited for.
	mostLeaving = 16
)

// Starter starts first processes. Once one has ended, it has the next one ready: a spare, whose start takes longer than
// all else that a command in a sandbox needs. The zero value can be used.
type Starter struct {
	mu      sync.Mutex
	spare   *spare     // nil: none
	leaving []*Process // that are alone in their namespaces, and end
	closed  bool
}

// spare is a first process that waits for its command, and has run nothing.
type spare struct {
	kind   kind
	expiry *time.Timer
	made   chan struct{} // closed: first and mounts are set
	first  *Process      // nil: it could not be started
	mounts int           // a file: the list of this process's mounts, as it was before
}

// Start returns a first process. Its network is that of another sandbox, if beside is not nil; else that of this
// process (network), or a new one, with nothing but a loopback.
func (s *Starter) Start(network bool, beside *Network) (*Process, error) {
	kind := own
	switch {
	case beside != nil:
		kind = joined
	case network:
		kind = host
	}
	s.mu.Lock()
	n := s.spare
	s.mu.Unlock()
	if n != nil && n.kind == kind && s.remove(n) {
		if n.fits() {
			unix.Close(n.mounts)
			return n.first, nil
		}
		s.drop(n)
	}
	return start(kind, beside)
}

// remove says whether a spare was there until now.
func (s *Starter) remove(n *spare) bool {
	s.mu.Lock()
	was := n != nil && s.spare == n
	if was {
		s.spare = nil
	}
	s.mu.Unlock()
	if was {
		n.expiry.Stop()
		<-n.made
	}
	return was
}

// fits says whether a first process that is started now would see the same.
func (n *spare) fits() bool {
	if n.first == nil || n.first.ended() {
		return false
	}
	// The kernel tells once that the list has changed since it was opened. The namespace may have changed likewise.
	watched := []unix.PollFd{{Fd: int32(n.mounts), Events: unix.POLLPRI}}
	if changed, err := unix.Poll(watched, 0); err == nil && changed == 0 {
		return true
	}
	ours, err := mountsOf("self")
	theirs, err2 := mountsOf(strconv.Itoa(n.first.Pid()))
	return err == nil && err2 == nil && slices.Equal(ours, theirs)
}

// mountsOf lists what a process sees mounted: what, where, and with which flags.
func mountsOf(pid string) ([]string, error) {
	text, err := os.ReadFile("/proc/" + pid + "/mountinfo")
	var all []string
	for line := range strings.Lines(string(text)) {
		mount, kind, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(mount); len(fields) > 5 {
			all = append(all, strings.Join(fields[2:6], " ")+" "+kind) // numbers are of a namespace
		}
	}
	slices.Sort(all)
	return all, err
}

// drop ends a spare that was removed.
func (s *Starter) drop(n *spare) {
	unix.Close(n.mounts)
	if n.first == nil {
		return
	}
	n.first.Close()
	n.first.Kill()
	s.mu.Lock()
	s.leaving = append(s.leaving, n.first)
	s.mu.Unlock()
}

// Await waits for the end of a command, whose program's end it tells at once, and returns what its first process said
// at last; nil: that was killed, and everything with it. The kernel removes namespaces that are empty and hold little
// memory later, which takes it milliseconds: nobody waits for that but Close.
func (s *Starter) Await(p *Process, ended func(*first.Ended)) *first.Gone {
	var gone *first.Gone
	for gone == nil {
		m, err := p.Next()
		if err != nil {
			break
		}
		if m.Ended != nil {
			ended(m.Ended)
		}
		gone = m.Gone
	}
	if gone == nil || !gone.Alone {
		<-p.gone
	}
	s.leave(p)
	return gone
}

// leave notes that the namespaces of a process are empty, and has a spare made.
func (s *Starter) leave(p *Process) {
	s.mu.Lock()
	s.leaving = append(slices.DeleteFunc(s.leaving, (*Process).ended), p)
	oldest, wait := s.leaving[0], len(s.leaving) > mostLeaving
	if s.spare == nil && !s.closed && p.kind != joined {
		s.spare = s.ahead(p.kind)
	}
	s.mu.Unlock()
	if wait {
		<-oldest.gone
	}
}

func (s *Starter) ahead(kind kind) *spare {
	n := &spare{kind: kind, made: make(chan struct{})}
	n.expiry = time.AfterFunc(spareTime, func() {
		if s.remove(n) {
			s.drop(n)
		}
	})
	go func() {
		defer close(n.made)
		var err error
		// os.Open would have Go's runtime wait for the change, too, and be the one who is told.
		if n.mounts, err = unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			n.first, _ = start(kind, nil) // without, the next command is told why none can be started
		}
	}()
	return n
}

// Close gives up the spare, and waits until all namespaces are gone, as long as the limit. No command may be there any
// more.
func (s *Starter) Close(limit time.Duration) error {
	s.mu.Lock()
	s.closed = true
	n := s.spare
	s.mu.Unlock()
	if s.remove(n) {
		s.drop(n)
	}
	s.mu.Lock()
	all := slices.Clone(s.leaving)
	s.mu.Unlock()
	late := time.After(limit)
	for _, p := range all {
		select {
		case <-p.gone:
		case <-late:
			return fmt.Errorf("the namespaces of process %d are still there", p.Pid())
		}
	}
	return nil
}
