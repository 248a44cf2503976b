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
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor/family"
	"github.com/benchgraph/benchgraph/executor/internal/guard"
	"github.com/benchgraph/benchgraph/executor/internal/thread"
	"github.com/benchgraph/benchgraph/executor/mask"
)

const (
	defaultGrace = 5 * time.Second
	killTime     = family.KillTime
	// Only a process that is no descendant, but was handed the pipe, can hold it open after all descendants are gone.
	drainTime = 2 * time.Second
)

// HostOptions are the settings of a Host.
type HostOptions struct {
	Owner   string // names what the processes belong to, such as the state directory; family.Reap finds them by it
	Guarded bool   // on Linux, programs without a Sandbox cannot read memory, environment and files of this process
}

// Host is the Executor that runs programs on this machine, as the current user. Close it after use.
//
// Each program gets a session, and thus a process group, of its own and has no terminal. Its descendants are known by
// that session, by their parents, by BENCHGRAPH_PROC in their environment and, on Linux, by becoming children of this
// process when their own parent ends. The last of these makes this whole process a reaper of orphans; a daemon that
// hides its environment and its session, and whose parent is gone, is ended when no other program is left that may have
// started it.
//
// Should this process be killed, the kernel kills the programs at once (Linux), with all that they left if they have a
// Sandbox. Of the others, family.Reap ends the descendants that still carry the mark in their environment.
type Host struct {
	mark    family.Mark
	guarded bool
	orphans family.Adoption
	starter starter
}

// NewHost returns a Host.
func NewHost(o HostOptions) *Host {
	return &Host{mark: family.NewMark(o.Owner), guarded: o.Guarded, orphans: family.AdoptOrphans()}
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
	join := func(pid int) (*family.Family, error) { return family.New(pid, mark, h.orphans) }
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
	p.unwatch = context.AfterFunc(ctx, func() { p.halt(context.Cause(ctx)) })
	go p.supervise()
	return p, nil
}

// process is one program and all that descends from it.
type process struct {
	name     string
	grace    time.Duration
	template exec.Cmd // never started itself, as a Cmd can be started but once
	cmd      *exec.Cmd
	sinks    mask.Sinks
	stdin    *os.File // our end of the pipe, if there is one
	family   *family.Family
	unwatch  func() bool
	bound    *bound

	life
}

// prepare does what comes before the start.
func (p *process) prepare(cmd Command) {
	p.begin()
	p.grace = cmd.Grace
	if p.grace <= 0 {
		p.grace = defaultGrace
	}
	p.connect(cmd)
}

// connect makes the program's output reach cmd's writers, through one pipe when they are the same.
func (p *process) connect(cmd Command) {
	// A file is hidden behind the sink on purpose: a program that got the file itself could rewind or truncate it.
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
		_ = recover() // types that cannot be compared are not the same
	}()
	return a == b
}

// onThread starts the program by launch, and sees its end. The kernel kills the program when the thread that started it
// ends, so that thread is kept as long as it runs.
func (p *process) onThread(launch func() error) error {
	started := make(chan error, 1)
	thread.Go(func() {
		err := launch()
		started <- err
		if err == nil {
			family.AwaitExit(p.cmd.Process)
			close(p.done)
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
			// Not waited for: stdin may block for ever. A program that does not read to the end is no failure.
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

// exec starts the program and learns who it is.
func (p *process) exec(join func(pid int) (*family.Family, error)) error {
	var err error
	// A fork elsewhere in this process holds, until its exec, every file open: also a program that was just written,
	// which then cannot be executed. That lasts a moment.
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

// supervise ends all that is left when the program has ended or is to be stopped.
func (p *process) supervise() {
	defer close(p.gone)
	defer p.unwatch()
	p.status.Left, p.err = p.family.End(p.name, p.done, p.stop, p.grace)
	if err := p.bound.release(&p.status); p.err == nil {
		p.err = err
	}
	if p.err != nil {
		p.status = Status{Code: -1}
		return
	}
	<-p.done
	_ = p.cmd.Wait() // the status tells how it ended; errors of writing are in the sinks
	p.collect()
	p.report()
}

// collect ends the input and the output when all has ended.
func (p *process) collect() {
	if p.stdin != nil {
		p.stdin.Close()
	}
	if err := p.sinks.Close(); err != nil {
		p.err = fmt.Errorf("%s: write output: %w", p.name, err)
	}
}

// report fills the status in after the program was waited for.
func (p *process) report() {
	state := p.cmd.ProcessState
	if state == nil {
		p.status.Code = -1
		return
	}
	p.status.Code = state.ExitCode()
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		p.status.Signal = signalName(ws.Signal())
	}
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(s))
}
