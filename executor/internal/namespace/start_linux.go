// Package namespace starts the first process of a sandbox, and talks to it.
package namespace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor/internal/first"
	"github.com/benchgraph/benchgraph/executor/internal/thread"
)

// Network is the network of a sandbox, which other sandboxes can join.
type Network struct{ user, net *os.File }

// Close closes the files of the network.
func (n *Network) Close() {
	n.user.Close()
	n.net.Close()
}

// Process is a first process. It waits for Begin.
type Process struct {
	*Control
	kind   kind
	os     *os.Process
	gone   chan struct{} // closed when it has ended, with all processes in its namespaces
	output []*output
}

// kind is the kind of a first process's network.
type kind int

const (
	own    kind = iota // a new network with only a loopback
	host               // the network of this process
	joined             // the network of another sandbox
)

// start starts a first process; beside is the network to join.
func start(kind kind, beside *Network) (*Process, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	defer ours.Close()
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	name, attr := first.Name, &os.ProcAttr{
		Dir: "/", Env: []string{first.Environment}, Files: []*os.File{null, null, null, theirs},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL},
	}
	if kind == joined {
		name, attr.Files = first.JoinName, append(attr.Files, beside.user, beside.net)
	} else {
		separate(attr.Sys, kind)
	}
	p := &Process{Control: &Control{conn: conn.(*net.UnixConn), answers: make(chan answer, 1)}, kind: kind,
		gone: make(chan struct{})}
	started := make(chan error, 1)
	// The kernel kills the process when the thread that started it ends, so the goroutine keeps the thread.
	thread.Go(func() {
		defer close(p.gone)
		var err error
		p.os, err = os.StartProcess(first.Program(), []string{name}, attr)
		started <- err
		if err == nil {
			_, _ = p.os.Wait() // its messages have said how it ended
		}
	})
	if err := <-started; err != nil {
		conn.Close()
		return nil, err
	}
	return p, nil
}

// separate makes a process start in new namespaces.
func separate(a *syscall.SysProcAttr, kind kind) {
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if kind == own {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	a.AmbientCaps = first.Ambient
}

// Streams are the streams of a program. A nil In is empty; output to a nil writer is discarded. Out and Err may be
// the same.
type Streams struct {
	In       *os.File
	Out, Err io.Writer
}

// Begin sends the Spec, the program's streams and its control group (a descriptor; negative: the group of this
// process). It returns the first answer, which says whether the program runs. It may be called only once.
func (p *Process) Begin(s first.Spec, streams Streams, group int) (first.Message, error) {
	if err := p.hand(s, streams, group); err != nil {
		return first.Message{}, err
	}
	return p.Next()
}

// Written writes a Spec to an anonymous file.
func Written(s first.Spec) (*os.File, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("spec", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "spec")
	if _, err := file.Write(text); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// hand sends the Spec and the files of a program to the first process.
func (p *Process) hand(s first.Spec, streams Streams, group int) error {
	spec, err := Written(s)
	if err != nil {
		return err
	}
	defer spec.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	files := []*os.File{spec, null, null, null}
	if streams.In != nil {
		files[1] = streams.In
	}
	for i, w := range []io.Writer{streams.Out, streams.Err} {
		switch {
		case w == nil:
		case i == 1 && w == streams.Out:
			files[3] = files[2]
		default:
			o, theirs, err := newOutput(w)
			if err != nil {
				return err
			}
			defer theirs.Close()
			p.output, files[2+i] = append(p.output, o), theirs
		}
	}
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	if group >= 0 {
		fds = append(fds, group)
	}
	return p.send(first.Message{Begin: true}, fds...)
}

// Gone returns a channel that is closed when the process has ended, and with it everything in its namespaces.
func (p *Process) Gone() <-chan struct{} { return p.gone }

func (p *Process) ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// Kill kills the process, and with it everything in its namespaces.
func (p *Process) Kill() { _ = p.os.Kill() } // it may have ended

// Pid returns the process number.
func (p *Process) Pid() int { return p.os.Pid }

// Network returns the network of the process. The caller must close it.
func (p *Process) Network() (*Network, error) {
	n := &Network{}
	var err, err2 error
	n.user, err = os.Open(fmt.Sprintf("/proc/%d/ns/user", p.os.Pid))
	n.net, err2 = os.Open(fmt.Sprintf("/proc/%d/ns/net", p.os.Pid))
	// Until the process is reaped, no other process has its number.
	if err := errors.Join(err, err2, p.os.Signal(syscall.Signal(0))); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Runs reports whether a process is a first process, or joins one's network and waits for one.
func Runs(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	name, _, _ := strings.Cut(string(text), "\x00")
	return err == nil && (name == first.Name || name == first.JoinName)
}
