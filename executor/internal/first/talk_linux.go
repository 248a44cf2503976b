package first

import (
	"encoding/json"
	"errors"
	"os"
	"sync"
	"syscall"
)

// controlFD is the only file that the first process has at its start: the socket for Messages. All other files come
// with a message.
const controlFD = 3

// warm encodes and decodes each kind of message once. The first time takes longest, and a spare process has the time.
func warm() {
	var s Spec
	if text, err := json.Marshal(Spec{Argv: []string{""}, Binds: []Bind{{}}, Fence: &Fence{}}); err == nil {
		_ = json.Unmarshal(text, &s) // valid JSON, made above
	}
	_, _ = json.Marshal(Message{Ended: &Ended{}, Gone: &Gone{}})
	_ = json.Unmarshal([]byte(`{"Begin":true}`), &Message{})
}

// receive waits for the Spec. It returns false if the other end of the socket was closed instead.
func (p *process) receive() (bool, error) {
	const most = 5 // files
	text, rights := make([]byte, 1024), make([]byte, syscall.CmsgSpace(most*4))
	n, nr, flags, _, err := syscall.Recvmsg(controlFD, text, rights, syscall.MSG_CMSG_CLOEXEC)
	for err == syscall.EINTR {
		n, nr, flags, _, err = syscall.Recvmsg(controlFD, text, rights, syscall.MSG_CMSG_CLOEXEC)
	}
	if err != nil || n == 0 {
		return false, err
	}
	if flags&syscall.MSG_CTRUNC != 0 {
		return false, syscall.EMFILE // the kernel left files out
	}
	var m Message
	if err := json.Unmarshal(text[:n], &m); err != nil {
		return false, err
	}
	all, err := syscall.ParseSocketControlMessage(rights[:nr])
	if err != nil || len(all) != 1 || !m.Begin {
		return false, syscall.EPROTO
	}
	fds, err := syscall.ParseUnixRights(&all[0])
	if err != nil || len(fds) < 4 {
		return false, syscall.EPROTO
	}
	p.files = fds[1:]
	return true, p.read(uintptr(fds[0]))
}

func (p *process) read(fd uintptr) error {
	f := os.NewFile(fd, "spec")
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	text := make([]byte, info.Size())
	if _, err := f.ReadAt(text, 0); err != nil {
		return err
	}
	return json.Unmarshal(text, &p.spec)
}

// fail sends the reason why there will be no program.
func (p *process) fail(step string, err error) int {
	send(Message{Failed: refusal(step, err)})
	return 1
}

func refusal(step string, err error) *Refusal {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		errno = syscall.EIO
	}
	return &Refusal{Step: step, Errno: int(errno)}
}

// send sends a message to the process that started this one. If that process has ended, this one ends in a moment.
func send(m Message, files ...int) int {
	text, err := json.Marshal(m)
	if err == nil {
		err = syscall.Sendmsg(controlFD, text, syscall.UnixRights(files...), nil, syscall.MSG_NOSIGNAL)
	}
	if err != nil {
		return 1
	}
	return 0
}

// listen handles messages of the process that started this one, and ends everything when that process has ended.
func (p *process) listen() {
	var once sync.Once
	text := make([]byte, 1024)
	for {
		n, err := syscall.Read(controlFD, text)
		if err == syscall.EINTR {
			continue
		}
		var m Message
		if err != nil || n == 0 || json.Unmarshal(text[:n], &m) != nil {
			os.Exit(1)
		}
		if m.Stop {
			once.Do(func() { close(p.stop) })
		}
		if m.Dial > 0 {
			go dial(m.Dial)
		}
	}
}

// dial connects to a port of the loopback and sends the connection.
func dial(port int) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		defer syscall.Close(fd)
		err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	var errno syscall.Errno
	switch {
	case err == nil:
		send(Message{Dialled: &Dialled{Port: port}}, fd)
	case errors.As(err, &errno):
		send(Message{Dialled: &Dialled{Port: port, Errno: int(errno)}})
	}
}
