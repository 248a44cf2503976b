package containertest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

const (
	startTime = 60 * time.Second // time limit for the start of an engine or registry
	endTime   = 60 * time.Second // time limit for the end after SIGTERM
)

// Daemon is a separate engine for one test.
type Daemon struct {
	Socket string // path
	Root   string // directory of images
	State  string // state directory of Engine

	t       testing.TB
	dir     string
	bridge  string
	args    []string
	program *program
}

// DaemonOptions are the settings of a Daemon. The zero value is usable.
type DaemonOptions struct {
	Root string   // directory of images; empty: a new one
	Args []string // more arguments of dockerd
}

// daemons counts the daemons of this process: each has its own networks.
var daemons atomic.Int32

// NewDaemon starts a separate engine that ends with the test. It uses no packet filter: its containers reach each
// other and this machine, and nothing else. If dockerd cannot start, the test is skipped.
func NewDaemon(t testing.TB, o DaemonOptions) *Daemon {
	t.Helper()
	if _, err := exec.LookPath("dockerd"); err != nil {
		needtest.Missing(t, "no dockerd to start: %v", err)
	}
	if os.Geteuid() != 0 {
		needtest.Missing(t, "only root starts a container engine of its own")
	}
	dir, err := os.MkdirTemp("", "dockerd-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{Socket: dir + "/sock", Root: o.Root, State: t.TempDir(), t: t, dir: dir}
	if d.Root == "" {
		d.Root = dir + "/root"
	}
	number := daemons.Add(1)
	// Without its own bridge and address pools, the daemon would remove docker0, which belongs to the machine's
	// engine.
	d.bridge = fmt.Sprintf("bg%d-%d", os.Getpid()%100000, number)
	t.Cleanup(d.remove)
	for _, line := range []string{"link add " + d.bridge + " type bridge",
		fmt.Sprintf("addr add 10.%d.%d.1/24 dev %s", 100+os.Getpid()%100, number%256, d.bridge), "link set " +
			d.bridge + " up"} {
		ip(t, line)
	}
	d.args = append([]string{
		"--host=unix://" + d.Socket, "--data-root=" + d.Root, "--exec-root=" + dir + "/exec", "--pidfile=" + dir +
			"/pid",
		"--containerd-namespace=" + filepath.Base(dir), "--containerd-plugins-namespace=" + filepath.Base(dir) +
			"-plugins",
		"--iptables=false", "--ip-forward=false", "--ip-masq=false", "--bridge=" + d.bridge,
		"--insecure-registry=127.0.0.0/8",
	}, o.Args...)
	d.Start()
	return d
}

// Host returns the address of the daemon, as in DOCKER_HOST.
func (d *Daemon) Host() string { return "unix://" + d.Socket }

// Engine opens the daemon.
func (d *Daemon) Engine() *container.Engine {
	return container.Open(container.Options{Environ: map[string]string{"DOCKER_HOST": d.Host()}, State: d.State})
}

// Start starts the daemon (again) and waits until it answers.
func (d *Daemon) Start() {
	d.t.Helper()
	// A killed daemon leaves these files; its containerd may look alive, since nobody waited for it.
	os.Remove(d.dir + "/pid")
	os.Remove(d.dir + "/exec/containerd/containerd.pid")
	d.program = begin(d.t, "dockerd", d.args...)
	d.program.await(func() error { return dial(d.Host()).get("/_ping", nil) })
}

// Kill kills the daemon. Its containers may live on until the daemon is started again.
func (d *Daemon) Kill() { d.program.kill() }

// Signal sends the daemon a signal: SIGSTOP makes it hang until SIGCONT.
func (d *Daemon) Signal(sig syscall.Signal) {
	if err := d.program.cmd.Process.Signal(sig); err != nil {
		d.t.Error(err)
	}
}

// Stop ends the daemon with SIGTERM, and all its containers.
func (d *Daemon) Stop() { d.program.end(syscall.SIGTERM) }

// Restart is Stop and Start.
func (d *Daemon) Restart() {
	d.t.Helper()
	d.Stop()
	d.Start()
}

// remove ends the daemon and its containers, and removes its directory. It starts a killed daemon once more, since
// only the daemon knows its containers.
func (d *Daemon) remove() {
	if d.args != nil {
		if d.program == nil || d.program.ended() {
			d.Start()
		}
		dial(d.Host()).sweep(d.t)
		d.Stop()
	}
	_ = exec.Command("ip", "link", "delete", d.bridge).Run() // it may not exist
	unmount(d.Root)                                          // a bind mount onto itself: each killed daemon left one
	if err := os.RemoveAll(d.dir); err != nil {
		d.t.Error(err)
	}
}

// Registry is a separate registry for one test, on this machine's loopback, where engines use plain HTTP.
type Registry struct {
	Host string // "127.0.0.1:PORT"
	Root string // directory of images

	program *program
}

// NewRegistry starts a registry that ends with the test. The test is skipped if there is no docker-registry.
func NewRegistry(t testing.TB) *Registry {
	t.Helper()
	if _, err := exec.LookPath("docker-registry"); err != nil {
		needtest.Missing(t, "no docker-registry to start: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Registry{Host: l.Addr().String(), Root: t.TempDir()}
	l.Close()
	config := filepath.Join(t.TempDir(), "config.yml")
	text := fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %q}, delete: {enabled: true}}\nhttp: "+
		"{addr: %q}\n", r.Root, r.Host)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.program = begin(t, "docker-registry", "serve", config)
	t.Cleanup(r.Stop)
	r.program.await(func() error { return dial("tcp://"+r.Host).get("/v2/", nil) })
	return r
}

// Stop kills the registry; connections break.
func (r *Registry) Stop() { r.program.kill() }

// program is a server that runs beside a test.
type program struct {
	t    testing.TB
	cmd  *exec.Cmd
	out  *os.File // a file: unlike a pipe, it does not wait for descendants that hold it open
	done chan struct{}
}

// begin starts a server. The server ends with this process even if this process is killed.
func begin(t testing.TB, name string, args ...string) *program {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, cmd: exec.Command(name, args...), out: out, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = attributes()
	started := make(chan error)
	go func() {
		defer close(p.done)
		defer out.Close()
		runtime.LockOSThread() // the server ends with the thread that started it
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // it was killed, or its output says why it ended
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *program) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// output returns the end of the server's output.
func (p *program) output() []byte {
	text, err := os.ReadFile(p.out.Name())
	if err != nil {
		return []byte(err.Error())
	}
	return text[max(0, len(text)-4000):]
}

// await waits until ready returns nil.
func (p *program) await(ready func() error) {
	p.t.Helper()
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := ready()
		switch {
		case err == nil:
			return
		case p.ended():
			p.t.Fatalf("%s ended:\n%s", p.cmd.Path, p.output())
		case time.Since(begun) > startTime:
			p.kill()
			p.t.Fatalf("%s does not answer: %v\n%s", p.cmd.Path, err, p.output())
		}
	}
}

func (p *program) kill() { p.end(syscall.SIGKILL) }

// end sends a signal, and later SIGKILL if the server has not ended.
func (p *program) end(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig) // it may have ended
	select {
	case <-p.done:
	case <-time.After(endTime):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}
