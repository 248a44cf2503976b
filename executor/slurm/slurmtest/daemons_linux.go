package slurmtest

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// daemons are the processes of a cluster. One thread starts all of them, so that the kernel ends them if the test
// program is killed.
type daemons struct {
	running map[string]*daemon
	starts  chan func()
}

type daemon struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

func newDaemons(t testing.TB) *daemons {
	d := &daemons{running: map[string]*daemon{}, starts: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the last daemon
		for start := range d.starts {
			start()
		}
	}()
	t.Cleanup(func() {
		for name := range d.running {
			if name != authority {
				d.kill(t, name)
			}
		}
		d.kill(t, authority)
		close(d.starts)
	})
	return d
}

func (d *daemons) start(t testing.TB, name, log string, env []string, argv ...string) {
	t.Helper()
	if d.running[name] != nil {
		t.Fatalf("%s runs already", name)
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	one := &daemon{exec.Command(argv[0], argv[1:]...), make(chan struct{})}
	one.cmd.Env, one.cmd.Stdout, one.cmd.Stderr = env, out, out
	one.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	d.starts <- func() { started <- one.cmd.Start() }
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	d.running[name] = one
	go func() {
		one.cmd.Wait()
		close(one.done)
	}()
}

// stop ends a daemon with SIGTERM.
func (d *daemons) stop(t testing.TB, name string) {
	t.Helper()
	d.end(t, name, syscall.SIGTERM)
}

func (d *daemons) kill(t testing.TB, name string) {
	t.Helper()
	d.end(t, name, syscall.SIGKILL)
}

// end ends a daemon and waits until it is gone. It does nothing if the daemon does not run.
func (d *daemons) end(t testing.TB, name string, signal syscall.Signal) {
	t.Helper()
	one := d.running[name]
	if one == nil {
		return
	}
	delete(d.running, name)
	select {
	case <-one.done: // another process may have its number by now
		return
	default:
	}
	one.cmd.Process.Signal(signal)
	select {
	case <-one.done:
	case <-time.After(startTime):
		one.cmd.Process.Kill()
		t.Errorf("%s did not end within %s of %s", name, startTime, signal)
	}
}
