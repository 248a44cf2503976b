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
	// A spare is given up if no command has used it for this long.
	spareTime = 10 * time.Second
	// With more namespaces than this still being removed, Await waits for the oldest.
	mostLeaving = 16
)

// Starter starts first processes. When one has ended, Starter starts a spare for the next command: the start takes
// longer than all other work for a command in a sandbox. The zero value is ready to use.
type Starter struct {
	mu      sync.Mutex
	spare   *spare     // nil: none
	leaving []*Process // processes that are alone in their namespaces and about to end
	closed  bool
}

// spare is a first process that waits for its command.
type spare struct {
	kind   kind
	expiry *time.Timer
	made   chan struct{} // closed when first and mounts are set
	first  *Process      // nil: the start failed
	mounts int           // descriptor of this process's list of mounts, opened before the start
}

// Start returns a first process. Its network is beside if that is not nil; otherwise it is this process's network if
// network is true, or a new one with only a loopback.
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

// remove takes a spare and reports whether it was still there.
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

// fits reports whether a first process that starts now would see the same mounts.
func (n *spare) fits() bool {
	if n.first == nil || n.first.ended() {
		return false
	}
	// The kernel reports a change of the list once. Then compare the lists: the spare's namespace may have changed in
	// the same way.
	watched := []unix.PollFd{{Fd: int32(n.mounts), Events: unix.POLLPRI}}
	if changed, err := unix.Poll(watched, 0); err == nil && changed == 0 {
		return true
	}
	ours, err := mountsOf("self")
	theirs, err2 := mountsOf(strconv.Itoa(n.first.Pid()))
	return err == nil && err2 == nil && slices.Equal(ours, theirs)
}

// mountsOf returns the mounts of a process, sorted: source, mount point and flags.
func mountsOf(pid string) ([]string, error) {
	text, err := os.ReadFile("/proc/" + pid + "/mountinfo")
	var all []string
	for line := range strings.Lines(string(text)) {
		mount, kind, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(mount); len(fields) > 5 {
			all = append(all, strings.Join(fields[2:6], " ")+" "+kind) // the leading numbers differ between namespaces
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

// Await waits for the end of a command and returns the last message of its first process; nil means that the first
// process was killed with everything in its namespaces. It calls ended as soon as the program ends. The kernel takes
// milliseconds to remove namespaces; if they are empty and hold little memory, only Close waits for that.
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

// leave records that the namespaces of a process are empty, and starts a spare.
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
		// With os.Open, Go's runtime would poll the file, too, and receive the report of the change.
		if n.mounts, err = unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			n.first, _ = start(kind, nil) // if this fails, the next command gets the error of its own start
		}
	}()
	return n
}

// Close gives up the spare and waits until all namespaces are gone, at most for limit. No command may run any more.
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
