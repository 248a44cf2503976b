//go:build linux

package apptainer

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/apptainer/images"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/head"
)

// box is a container, or a program that runs in one.
type box struct {
	engine   *Engine
	id, name string
	dir      string // its own writable directory, outside of the mounts
	root     string // root directory of the image
	image    *images.Image
	config   container.Config
	host     container.HostConfig
	within   *box // the container in which this program runs; nil: this is a container
	created  time.Time

	output output
	done   chan struct{} // closed once the program has ended and all output is written

	mu      sync.Mutex
	process executor.Process // nil: not started
	status  executor.Status
	err     error
}

func newBox(e *Engine, name string) *box {
	id := make([]byte, 32)
	_, _ = rand.Read(id) // never fails
	text := hex.EncodeToString(id)
	return &box{engine: e, id: text, name: name, dir: filepath.Join(e.scratch, text[:16]), created: time.Now(),
		output: output{start: head.Buffer{Most: 1024}}, done: make(chan struct{})}
}

// output carries the streams of a program to the client that is attached.
type output struct {
	mu    sync.Mutex
	conn  net.Conn    // connection of the client; nil: nobody is attached
	stdin io.Reader   // standard input from the client; nil: no input
	start head.Buffer // beginning of both streams
}

// stream is one of the two streams of an output.
type stream struct {
	to   *output
	kind stdcopy.StdType
}

func (s stream) Write(p []byte) (int, error) {
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	_, _ = s.to.start.Write(p) // never fails
	if s.to.conn == nil {
		return len(p), nil
	}
	// A client that has gone does not stop the program.
	_, _ = stdcopy.NewStdWriter(s.to.conn, s.kind).Write(p)
	return len(p), nil
}

// close tells the client that no more output follows. The connection stays open until the client closes its end: if
// unread input were pending, closing first would discard the last output.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if half, ok := o.conn.(*net.UnixConn); ok {
		_ = half.CloseWrite()
		go func() {
			_, _ = io.Copy(io.Discard, half)
			half.Close()
		}()
	}
}

// creationFailed begins Apptainer's message when it cannot make a container.
const creationFailed = "FATAL:   container creation failed: "

// notMade returns an error if Apptainer could not make the container. The program may have printed the same words, so
// notMade makes the container once more, with a program that no image has.
func (b *box) notMade() error {
	b.output.mu.Lock()
	why, ok := strings.CutPrefix(string(b.output.start.Bytes()), creationFailed)
	b.output.mu.Unlock()
	if !ok {
		return nil
	}
	again := newBox(b.engine, "")
	again.dir, again.root, again.image, again.host, again.config = b.dir, b.root, b.image, b.host, b.config
	again.config.Entrypoint, again.config.Cmd = nil, []string{nothing}
	cmd, err := again.command()
	if err != nil {
		return err
	}
	said, err := b.engine.output(context.Background(), cmd)
	if err == nil && strings.HasPrefix(said, creationFailed) {
		err = images.Cannot("it made no container: %s", strings.TrimSpace(why))
	}
	return err
}

func (b *box) start(cmd executor.Command) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process != nil {
		return nil
	}
	cmd.Stdout, cmd.Stderr = stream{&b.output, stdcopy.Stdout}, stream{&b.output, stdcopy.Stderr}
	cmd.Stdin = b.output.stdin
	p, err := b.engine.options.Host.Start(context.Background(), cmd)
	if err != nil {
		return err
	}
	b.process = p
	go func() {
		status, err := p.Wait(context.Background())
		if err == nil && status.Code == 255 && b.within == nil {
			err = b.notMade()
		}
		b.output.close()
		b.mu.Lock()
		b.status, b.err = status, err
		b.mu.Unlock()
		close(b.done)
	}()
	return nil
}

// state returns the state of the program in the engine's API.
func (b *box) state() *container.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &container.State{Status: container.StateCreated}
	select {
	case <-b.done:
		s.Status, s.ExitCode, s.OOMKilled = container.StateExited, code(b.status), b.status.OOM
	default:
		if b.process != nil {
			s.Status, s.Running = container.StateRunning, true
		}
	}
	return s
}

// code returns a status as one number, as shells do: 128 and the signal's number for a program that a signal ended.
func code(s executor.Status) int {
	if s.Signal != "" {
		return 128 + int(unix.SignalNum(s.Signal))
	}
	return s.Code
}

// kill ends the program and waits for its end.
func (b *box) kill() {
	b.mu.Lock()
	p := b.process
	b.mu.Unlock()
	if p != nil {
		_, _ = p.Stop()
		<-b.done
	}
}

// send sends a signal to Apptainer, which passes it on to the program.
func (b *box) send(sig syscall.Signal) error {
	if sig == syscall.SIGKILL {
		go b.kill()
		return nil
	}
	outer, err := b.outer()
	if err != nil || b.state().Status != container.StateRunning {
		return nil // the program has ended or has not started
	}
	for _, pid := range descendants(outer, 2) {
		err = errors.Join(err, syscall.Kill(pid, sig))
	}
	return err
}

// numberFile is the file in which the outermost process of the box on this machine writes its process number.
func (b *box) numberFile() string { return filepath.Join(b.dir, "pid") }

// numbered returns the beginning of a command line: its process writes its number to numberFile and executes the
// rest.
func (b *box) numbered() []string {
	return []string{"sh", "-c", `echo $$ >"$0" && exec "$@"`, b.numberFile()}
}

// outer returns the number of the outermost process of the box on this machine. Apptainer is a grandchild of that
// process. A program that was started within a container is a child of that process.
func (b *box) outer() (int, error) {
	text, err := os.ReadFile(b.numberFile())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// inner returns the number of the first process in the container, once the container is set up.
func (b *box) inner() (int, error) {
	for deadline := time.Now().Add(setupTime); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if b.state().Status != container.StateRunning {
			return 0, images.Refused(409, "container "+b.name+" is not running")
		}
		outer, err := b.outer()
		if err != nil {
			continue
		}
		for _, pid := range descendants(outer, 3) {
			comm, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
			if strings.TrimSpace(string(comm)) == initName {
				return pid, nil
			}
		}
	}
	return 0, errors.New("container " + b.name + " is not set up after " + setupTime.String())
}

const (
	setupTime = time.Minute
	initName  = "appinit" // name of Apptainer's first process in a container, once the container is set up
)

// descendants returns the descendants of a process that are exactly that many generations below it.
func descendants(pid, generations int) []int {
	if generations == 0 {
		return []int{pid}
	}
	var all []int
	for _, child := range children(pid) {
		all = append(all, descendants(child, generations-1)...)
	}
	return all
}

func children(pid int) (all []int) {
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// network describes the network of a container.
type network struct {
	none   bool // only a loopback of its own
	beside int  // process in the container whose loopback is shared; 0: no container
}

// network returns the network of the container: by default, that of this machine.
func (b *box) network() (n network, err error) {
	name, ok := strings.CutPrefix(string(b.host.NetworkMode), "container:")
	if !ok {
		return network{none: b.host.NetworkMode == "none"}, nil
	}
	other, err := b.engine.box(name)
	if err != nil {
		return n, err
	}
	of, err := other.network()
	if err == nil && (of.none || of.beside != 0) {
		n.beside, err = other.inner()
	}
	return n, err
}

// launch makes the directories of the container, and starts its program.
func (b *box) launch() error {
	if err := b.unsupported(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(b.dir, "home"), 0o700); err != nil {
		return err
	}
	for _, dir := range b.temporary() {
		if err := os.MkdirAll(filepath.Join(b.dir, filepath.Base(dir)+"-"), 0o700); err != nil {
			return err
		}
	}
	cmd, err := b.command()
	if err != nil {
		return err
	}
	return b.start(cmd)
}

func (b *box) clear() error { return fs.RemoveTree(b.dir) }

// enter starts a program in a running container; pid is the container's first process.
func (b *box) enter(pid int) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	in := []string{"--mount", "--pid", "--ipc", "--uts"}
	if b.within.host.NetworkMode == "none" {
		in = append(in, "--net")
	}
	outer := slices.Concat(b.numbered(), nsenter(pid, in...))
	for _, i := range []int{0, 4, 6} { // use this machine's programs: PATH is that of the container
		path, err := b.engine.tool(outer[i])
		if err != nil {
			return err
		}
		outer[i] = path
	}
	argv := slices.Concat(outer, []string{"sh", "-c", entering, orRoot(b.config.WorkingDir)}, b.config.Cmd)
	return b.start(executor.Command{Argv: argv, Dir: "/", Grace: time.Millisecond,
		Env: slices.Concat([]string{"PATH=" + usualPath}, b.image.Env, b.within.config.Env, b.config.Env)})
}

// entering is a shell script that becomes the program. If there is no such program, it prints the message of
// container engines.
const entering = `cd "$0" && if command -v "$1" >/dev/null; then exec "$@"; fi
echo "OCI runtime exec failed: $1: no such file" >&2; exit 127`
