// Package namespace starts the first process of a sandbox, and speaks with it.
package namespace

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor/internal/first"
)

// Network is that of a sandbox, for others to join.
type Network struct{ user, net *os.File }

// NetworkOf is the network that a first process is in. Close it after use.
func NetworkOf(pid int) (*Network, error) {
	n := &Network{}
	var err, err2 error
	n.user, err = os.Open(fmt.Sprintf("/proc/%d/ns/user", pid))
	n.net, err2 = os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err := errors.Join(err, err2); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Close forgets a network.
func (n *Network) Close() {
	n.user.Close()
	n.net.Close()
}

// Prepare makes cmd, whose streams are set, the first process of a sandbox with a network of its own (Spec.Loopback),
// that of another one (not nil), or that of this process. After it was started, or could not be, exactly one of the
// methods of what is returned is to be called.
func Prepare(cmd *exec.Cmd, s first.Spec, beside *Network) (*Pending, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	p := &Pending{}
	fd, err := unix.MemfdCreate("spec", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	p.spec = os.NewFile(uintptr(fd), "spec")
	if _, err := p.spec.Write(text); err != nil {
		p.Drop()
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		p.Drop()
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours := os.NewFile(uintptr(pair[0]), "control")
	defer ours.Close()
	p.theirs = os.NewFile(uintptr(pair[1]), "control")
	conn, err := net.FileConn(ours)
	if err != nil {
		p.Drop()
		return nil, err
	}
	p.conn = conn.(*net.UnixConn)
	cmd.Path, cmd.Args, cmd.Env, cmd.Dir = first.Program(), []string{first.Name}, []string{first.Environment}, "/"
	cmd.ExtraFiles = []*os.File{p.theirs, p.spec}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
	if beside != nil {
		cmd.Args[0] = first.JoinName
		cmd.ExtraFiles = append(cmd.ExtraFiles, beside.user, beside.net)
		return p, nil
	}
	a := cmd.SysProcAttr
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if s.Loopback {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	a.AmbientCaps = first.Ambient
	return p, nil
}

// Pending is a sandbox whose first process is about to be started.
type Pending struct {
	spec, theirs *os.File
	conn         *net.UnixConn
}

// Drop gives it up.
func (p *Pending) Drop() {
	for _, f := range []*os.File{p.spec, p.theirs} {
		if f != nil {
			f.Close()
		}
	}
	if p.conn != nil {
		p.conn.Close()
	}
}

// Started returns how its first process is spoken with.
func (p *Pending) Started() *Control {
	p.spec.Close()
	p.theirs.Close()
	return &Control{conn: p.conn, answers: make(chan answer, 1)}
}

// Control is how a first process is spoken with.
type Control struct {
	conn    *net.UnixConn
	dialing sync.Mutex
	answers chan answer
}

type answer struct {
	dialled first.Dialled
	file    *os.File
}

func (a answer) close() {
	if a.file != nil {
		a.file.Close()
	}
}

// Next is the next message but for answers to Dial. An error means that nothing more comes.
func (c *Control) Next() (first.Message, error) {
	text, rights := make([]byte, 1<<10), make([]byte, unix.CmsgSpace(4))
	for {
		n, nr, _, _, err := c.conn.ReadMsgUnix(text, rights)
		if err != nil {
			return first.Message{}, err
		}
		var m first.Message
		if err := json.Unmarshal(text[:n], &m); err != nil {
			return m, err
		}
		if m.Dialled == nil {
			return m, nil
		}
		a := answer{*m.Dialled, received(rights[:nr])}
		select {
		case c.answers <- a:
		default:
			a.close() // nobody waits for it any more
		}
	}
}

// received is the file that came with a message; nil: none.
func received(rights []byte) *os.File {
	all, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(all) == 0 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&all[0])
	if err != nil || len(fds) == 0 {
		return nil
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "connection")
}

// Stop has all in the sandbox ended, politely first.
func (c *Control) Stop() error { return c.send(first.Message{Stop: true}) }

func (c *Control) send(m first.Message) error {
	text, err := json.Marshal(m)
	if err == nil {
		_, err = c.conn.Write(text)
	}
	return err
}

// dialPatience bounds the wait for a connection on a loopback, which comes at once or never.
const dialPatience = 2 * time.Second

// Dial connects to a port on the loopback of the sandbox. Somebody must be calling Next meanwhile.
func (c *Control) Dial(port int) (net.Conn, error) {
	c.dialing.Lock()
	defer c.dialing.Unlock()
	if err := c.send(first.Message{Dial: port}); err != nil {
		return nil, err
	}
	late := time.After(dialPatience)
	for {
		select {
		case a := <-c.answers:
			if a.dialled.Port != port { // of one that was given up
				a.close()
				continue
			}
			if a.file == nil {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect",
					syscall.Errno(a.dialled.Errno))}
			}
			defer a.close()
			return net.FileConn(a.file)
		case <-late:
			return nil, os.ErrDeadlineExceeded
		}
	}
}

// Close ends the talk, and with it all that is still in the sandbox.
func (c *Control) Close() { c.conn.Close() }
