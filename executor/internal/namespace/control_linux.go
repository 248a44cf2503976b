package namespace

import (
	"encoding/json"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor/internal/first"
)

// Control is the connection to a first process.
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

// Next returns the next message, except for answers to Dial. After an error, no more messages come.
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

// received returns the file that came with a message; nil: none.
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

// Stop ends all processes in the sandbox, with SIGTERM first.
func (c *Control) Stop() error { return c.send(first.Message{Stop: true}) }

func (c *Control) send(m first.Message, files ...int) error {
	text, err := json.Marshal(m)
	if err == nil {
		_, _, err = c.conn.WriteMsgUnix(text, unix.UnixRights(files...), nil)
	}
	return err
}

// dialPatience limits the wait for a connection on a loopback, which comes at once or never.
const dialPatience = 2 * time.Second

// Dial connects to a port on the loopback of the sandbox. Another goroutine must be calling Next meanwhile.
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
			if a.dialled.Port != port { // answer to an earlier Dial that timed out
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

// Close closes the connection. The first process then ends everything in the sandbox.
func (c *Control) Close() { c.conn.Close() }
