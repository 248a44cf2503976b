//go:build linux || darwin

package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor/family"
	"github.com/benchgraph/benchgraph/executor/internal/guard"
	"github.com/benchgraph/benchgraph/executor/internal/life"
	"github.com/benchgraph/benchgraph/executor/internal/thread"
	"github.com/benchgraph/benchgraph/executor/mask"
)

const (
	// DefaultGrace is the time from SIGTERM to SIGKILL of a command without a Grace.
	DefaultGrace = 5 * time.Second
	killTime     = family.KillTime
	// After all descendants have ended, only a process outside of them that was handed the pipe can hold it open.
	drainTime = 2 * time.Second
)

// HostOptions are the settings of a Host.
type HostOptions struct {
	Owner   string // such as the state directory; family.Reap finds the processes by it
	Guarded bool   // on Linux, programs without a Sandbox cannot read this process's memory, environment and files
}

// Host is the Executor that runs programs on this machine, as the current user. Close it after use.
//
// Each program gets its own session and process group, and no terminal. Its descendants are recognized by their
// session, by their parents, by BENCHGRAPH_PROC in their environment and, on Linux, because orphans become children
// of this process. For that, this whole process becomes a reaper of orphans with the first program. A daemon that hides
// its environment and session, and whose parent has ended, is ended once no other program runs that may have started
// it.
//
// If this process is killed, the kernel kills the programs at once (Linux); the descendants of programs with a
// Sandbox end with them. family.Reap later ends the other descendants that still carry the mark in their environment.
type Host struct {
	mark    family.Mark
	guarded bool
	orphans func() family.Adoption // adopts them at the first call: that reads all processes of the machine
	starter starter
}

// NewHost returns a Host.
func NewHost(o HostOptions) *Host {
	return &Host{mark: family.NewMark(o.Owner), guarded: o.Guarded, orphans: sync.OnceValue(family.AdoptOrphans)}
}

// Start starts cmd.
func (h *Host) Start(ctx context.Context, cmd Command) (Process, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if cmd.Container != nil {
		return nil, &Unsupported{Remedy: "leave the image out to run the command on the host",
			What: fmt.Sprintf("image %q: the host executor has no container engine", cmd.Container.Image)}
	}
	orphans := h.orphans() // before the first program starts
	if cmd.Sandbox != nil && SandboxOf() != Landlock {
		return h.startSandboxed(ctx, cmd)
	}
	path, err := resolve(cmd)
	if err != nil {
		return nil, err
	}
	mark := h.mark.Next()
	p := &process{
		name: cmd.Argv[0],
		template: exec.Cmd{
			Path: path, Args: cmd.Argv, Dir: cmd.Dir, SysProcAttr: family.Attr(), WaitDelay: drainTime,
			Env: append(slices.Clip(cmd.Env), mark.Variable()),
		},
	}
	p.prepare(cmd)
	join := func(pid int) (*family.Family, error) { return family.New(pid, mark, orphans) }
	if p.bound, err = bind(cmd); err != nil {
		return nil, err
	}
	p.bound.enter(&p.template)
	launch := func() error { return p.exec(join) }
	if cmd.Sandbox != nil {
		if launch, err = behindFence(p, cmd, launch); err != nil {
			return nil, errors.Join(err, p.bound.release(nil))
		}
	} else if h.guarded {
		launch = func() error { return guard.Start(func() error { return p.exec(join) }) }
	}
	if err := p.start(cmd.Stdin, func() error { return p.onThread(launch) }); err != nil {
		return nil, errors.Join(unstarted(cmd, path, err), p.bound.release(nil))
	}
	p.unwatch = context.AfterFunc(ctx, func() { p.Halt(context.Cause(ctx)) })
	go p.supervise()
	return p, nil
}

// process is a program with all its descendants.
type process struct {
	name     string
	grace    time.Duration
	template exec.Cmd // a template: each attempt to start copies it, as a Cmd can be started only once
	cmd      *exec.Cmd
	sinks    mask.Sinks
	stdin    *os.File // our end of the pipe; nil: no pipe
	family   *family.Family
	unwatch  func() bool
	bound    *bound

	life.Life[Status]
}

// prepare sets up the process before the start.
func (p *process) prepare(cmd Command) {
	p.Begin()
	p.grace = cmd.Grace
	if p.grace <= 0 {
		p.grace = DefaultGrace
	}
	p.connect(cmd)
}

// connect sends the program's output to cmd's writers, through one pipe if they are the same.
func (p *process) connect(cmd Command) {
	// The sink hides files on purpose: a program that got the file itself could rewind or truncate it.
	if cmd.Stdout != nil {
		p.template.Stdout = p.sinks.Open(cmd.Stdout, cmd.Secrets)
	}
	switch {
	case cmd.Stderr == nil:
	case sameWriter(cmd.Stdout, cmd.Stderr):
		p.template.Stderr = p.template.Stdout
	default:
		p.template.Stderr = p.sinks.Open(cmd.Stderr, cmd.Secrets)
	}
}

func sameWriter(a, b io.Writer) bool {
	defer func() {
		_ = recover() // types that cannot be compared are not the same writer
	}()
	return a == b
}

// onThread starts the program with launch and waits for its end. The kernel kills the program when the thread that
// started it ends, so onThread keeps the thread until then.
func (p *process) onThread(launch func() error) error {
	started := make(chan error, 1)
	thread.Go(func() {
		err := launch()
		started <- err
		if err == nil {
			family.AwaitExit(p.cmd.Process)
			close(p.Ended)
		}
	})
	return <-started
}

func (p *process) start(stdin io.Reader, launch func() error) error {
	theirs, err := p.openStdin(stdin)
	if err != nil {
		return err
	}
	defer theirs.Close()
	if err := launch(); err != nil {
		p.stdin.Close()
		return err
	}
	if p.stdin != nil {
		go func(to *os.File) {
			// In the background: reading stdin may block forever. It is no failure if the program does not read
			// everything.
			_, _ = io.Copy(to, stdin)
			to.Close()
		}(p.stdin)
	}
	return nil
}

func (p *process) openStdin(stdin io.Reader) (theirs *os.File, err error) {
	switch file := stdin.(type) {
	case nil:
		theirs, err = os.Open(os.DevNull)
		p.template.Stdin = theirs
		return theirs, err
	case *os.File:
		p.template.Stdin = file
		return nil, nil
	}
	theirs, p.stdin, err = os.Pipe()
	if err == nil {
		p.template.Stdin = theirs
	}
	return theirs, err
}

// exec starts the program and finds its family.
func (p *process) exec(join func(pid int) (*family.Family, error)) error {
	var err error
	// While another goroutine forks, the child holds all open files until its exec, also a program that was just
	// written. Such a program cannot be executed (ETXTBSY) for a moment.
	for pause := time.Millisecond; pause < time.Second; pause *= 2 {
		try := p.template
		p.cmd = &try
		if err = p.cmd.Start(); !errors.Is(err, syscall.ETXTBSY) {
			break
		}
		time.Sleep(pause)
	}
	if err != nil {
		return err
	}
	p.family, err = join(p.cmd.Process.Pid)
	if err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
	return err
}

// supervise waits until the program has ended or is stopped, and then ends its descendants.
func (p *process) supervise() {
	defer close(p.Gone)
	defer p.unwatch()
	p.Status.Left, p.Err = p.family.End(p.name, p.Ended, p.Stopping, p.grace)
	if err := p.bound.release(&p.Status); p.Err == nil {
		p.Err = err
	}
	if p.Err != nil {
		p.Status = Status{Code: -1}
		return
	}
	<-p.Ended
	_ = p.cmd.Wait() // the status is in ProcessState, and errors of writing are in the sinks
	p.collect()
	p.report()
}

// collect closes the input and the output after all processes have ended.
func (p *process) collect() {
	if p.stdin != nil {
		p.stdin.Close()
	}
	if err := p.sinks.Close(); err != nil {
		p.Err = fmt.Errorf("%s: write output: %w", p.name, err)
	}
}

// report sets the status after the program has been reaped.
func (p *process) report() {
	state := p.cmd.ProcessState
	if state == nil {
		p.Status.Code = -1
		return
	}
	p.Status.Code = state.ExitCode()
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		p.Status.Signal = SignalName(ws.Signal())
	}
}

// SignalName returns the name of a signal, such as SIGKILL.
func SignalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(s))
}
