//go:build linux || darwin

package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/stream"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/family"
	"github.com/benchgraph/benchgraph/executor/internal/life"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// attached is a program in a container whose streams this process is connected to.
type attached struct {
	docker  *Executor
	name    string // of the container, and of its network if it has its own
	cmd     executor.Command
	ctx     context.Context
	output  *output
	stream  *stream.Stream
	unwatch func() bool

	life.Life[executor.Status]
}

func (a *attached) Container() string { return a.name }

// exit is how a program ended, or the error if that is not known.
type exit struct {
	code int
	err  error
}

// follow waits for the program's end. When the process is stopped, it sends SIGTERM and, after the grace time,
// SIGKILL.
func (a *attached) follow(await func() exit, signal func(name string) error) exit {
	a.output.follow(a.stream) // before await, which may look at the output
	ended := make(chan exit, 1)
	go func() { ended <- await() }()
	if a.cmd.Stdin != nil {
		go a.stream.Feed(a.cmd.Stdin) // in the background: reading stdin may block forever
	}
	select {
	case end := <-ended:
		return end
	case <-a.Stopping:
	}
	for _, try := range []struct {
		signal string
		limit  time.Duration
	}{{"TERM", max(a.cmd.Grace, 0)}, {"KILL", family.KillTime}} {
		if err := signal(try.signal); err != nil {
			return exit{err: err}
		}
		select {
		case end := <-ended:
			return end
		case <-time.After(cmp.Or(try.limit, executor.DefaultGrace)):
		}
	}
	return exit{err: fmt.Errorf("%s: cannot be ended in container %s", a.cmd.Argv[0], a.name)}
}

// contained is a program in a container of its own.
type contained struct {
	attached
	await func() (code int, err error)
}

// start makes the container and starts it. It connects to the output and the end first, so that it misses nothing.
// Requests that make something do not end with ctx: the engine would complete them anyway.
func (c *contained) start(ctx context.Context) error {
	e := c.docker.engine
	network, err := c.network()
	if err != nil {
		return err
	}
	host, err := c.docker.hostConfig(c.ctx, c.cmd.Container, network)
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error {
			id, err := e.Create(c.ctx, c.name, c.docker.config(c.cmd), host)
			c.docker.made(id)
			return c.explain(err)
		},
		func() error {
			if c.cmd.Container.Files == nil {
				return nil
			}
			return e.CopyTo(ctx, c.name, c.cmd.Container.Files)
		},
		c.connect,
		func() error { return c.explain(e.Start(c.ctx, c.name)) },
	} {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// connect connects to the container's output and waits for its end, both at once.
func (c *contained) connect() error {
	attached := make(chan error, 1)
	go func() {
		var err error
		c.stream, err = c.docker.engine.Attach(c.ctx, c.name, c.cmd.Stdin != nil)
		attached <- err
	}()
	var err error
	c.await, err = c.docker.engine.Await(c.ctx, c.name)
	if err = cmp.Or(<-attached, err); err == nil || container.IsGone(err) {
		return err
	}
	// Podman sets up the container before it attaches, and reports errors of the set-up only to Start.
	return cmp.Or(c.explain(c.docker.engine.Start(c.ctx, c.name)), err)
}

// network returns the name of the container's network, after it has made one if the container needs its own.
func (c *contained) network() (string, error) {
	o := c.cmd.Container
	switch {
	case o.Beside != nil:
		beside, ok := o.Beside.(executor.Contained)
		if !ok {
			return "", &executor.Unsupported{What: c.cmd.Argv[0] + " beside a program that is in no container",
				Remedy: "run both in containers"}
		}
		return "container:" + beside.Container(), nil
	case o.Outward: // a shared network would let other containers in
		return c.name, c.docker.engine.CreateNetwork(c.ctx, c.name, c.docker.Labels())
	}
	return "none", nil
}

// explain turns a permanent error of the engine into a StartError.
func (c *contained) explain(err error) error {
	e, ok := errors.AsType[*container.Error](err)
	if !ok || e.Class != failure.Permanent {
		return err
	}
	return &executor.StartError{Program: c.cmd.Argv[0], Reason: e.Reason, Remedy: e.Remedy, Err: err}
}

// supervise waits for the end of the program and removes its container.
func (c *contained) supervise() {
	defer close(c.Gone)
	defer c.unwatch()
	end := c.follow(func() exit {
		code, err := c.await()
		return exit{code, err}
	}, func(name string) error { return c.docker.engine.Signal(c.ctx, c.name, "SIG"+name) })
	close(c.Ended)
	c.Status = exitStatus(end.code)
	err := end.err
	if err == nil {
		err = c.output.drain()
	}
	if err == nil {
		err = cmp.Or(c.complete(), c.report())
	}
	if err != nil {
		c.Status = executor.Status{Code: -1}
	}
	c.stream.Close()
	c.Err = cmp.Or(err, c.output.close(), c.failure())
	c.remove(c.Cause() != nil)
}

// removedElsewhere returns the error for a container that somebody else removed. Its reported status means nothing.
func (c *contained) removedElsewhere() error {
	return &container.Error{Doing: c.cmd.Argv[0], Reason: "its container was removed by somebody else",
		Class: failure.Transient}
}

// complete completes the output from the engine's log: Docker closes the streams of an ended container even if
// clients have not received everything. It returns an error if output was lost.
func (c *contained) complete() error {
	info, err := c.docker.about(c.ctx)
	if err != nil || !info.Logs {
		return cmp.Or(err, c.output.err)
	}
	lost := &container.Error{Doing: c.cmd.Argv[0], Reason: "the container engine lost the end of its output",
		Class: failure.Transient, Err: c.output.err}
	switch log, err := c.docker.engine.Log(c.ctx, c.name); {
	case container.IsNotFound(err):
		return c.removedElsewhere()
	case err == nil && log.Complete(&c.output.stdout, &c.output.stderr), container.IsGone(err):
		return err
	case err != nil:
		lost.Reason, lost.Err = "whether its output is whole is not known: "+err.Error(), err
	}
	return lost
}

// report sets the fields of the status that only the engine knows. It skips the request if none of them can be set.
func (c *contained) report() error {
	if c.Status.OK() && c.cmd.Container.Memory == 0 {
		return nil
	}
	for tries := 0; ; tries++ {
		info, err := c.docker.engine.Inspect(c.ctx, c.name)
		switch {
		case container.IsNotFound(err):
			return c.removedElsewhere()
		case err != nil:
			return err
		}
		c.Status.OOM = info.State.OOMKilled
		// A busy engine hears of the kernel's OOM kill only after the container has ended.
		if c.Status.OOM || c.Status.OK() || c.cmd.Container.Memory == 0 || tries == oomTries {
			return nil
		}
		time.Sleep(oomPause)
	}
}

// A failure under a memory limit is reported at most one second late.
const (
	oomTries = 10
	oomPause = 100 * time.Millisecond
)

// exitStatus undoes what shells and the container's init do: a program that a signal ended exits with 128 plus the
// signal's number.
func exitStatus(code int) executor.Status {
	if code > 128 && unix.SignalName(syscall.Signal(code-128)) != "" {
		return executor.Status{Code: -1, Signal: executor.SignalName(syscall.Signal(code - 128))}
	}
	return executor.Status{Code: code}
}

// initFailures matches the messages of tini, catatonit and Apptainer when they cannot start the program.
var initFailures = lazyregexp.New(`^\[FATAL tini \(\d+\)\] exec .* failed: (.+)\n$|^ERROR \(catatonit:\d+\): ` +
	`failed to exec pid1: (.+)\n$|^FATAL: +(?:".+": |stat .+: )?(executable file not found in \$PATH|` +
	`no such file or directory|permission denied|is a directory)\n$`)

// failure returns an error if the container ended because its program could not be started.
func (c *contained) failure() error {
	m := initFailures().FindStringSubmatch(string(c.output.start.Bytes()))
	if m == nil || c.Status.Code <= 0 {
		return nil
	}
	why := m[1] + m[2] + m[3]
	e := &executor.StartError{Program: c.cmd.Argv[0], Reason: "cannot be started in the container: " + why}
	switch why { // catatonit exits with the same status in all cases
	case "No such file or directory", "no such file or directory", "executable file not found in $PATH":
		e.Remedy, e.Err = "install it in the image, or add its directory to PATH", fs.ErrNotExist
	case "Permission denied", "permission denied":
		e.Remedy, e.Err = "make it executable (chmod +x)", fs.ErrPermission
	}
	return e
}

// remove removes the container and its network unless they are kept. If the engine stops meanwhile, its last answers
// are wrong, because an engine ends its containers before it stops: remove then waits for the engine and reports a
// transient failure.
func (c *contained) remove(stopped bool) {
	var err error
	if c.cmd.Container.Keep && c.Err == nil && !stopped {
		err = cmp.Or(c.docker.engine.Settle(c.ctx, c.name), c.removeNetwork())
	} else {
		there, failed := c.removeContainer()
		if err = cmp.Or(failed, c.removeNetwork()); err == nil && !there {
			err = c.removedElsewhere()
		}
	}
	if c.Err == nil {
		c.Err = err
	}
	if !container.IsGone(c.Err) {
		return
	}
	if err := c.docker.engine.Persist(c.ctx, c.discard); err != nil {
		c.Err = err
		return
	}
	c.Err = &container.Error{
		Doing: c.cmd.Argv[0], Reason: "the container engine went away while it ran", Class: failure.Transient,
		Err: c.Err, Remedy: "it was restarted, or has crashed: its log says more (journalctl -u docker)",
	}
}

// discard removes the container and its network.
func (c *contained) discard() error {
	if c.stream != nil {
		c.stream.Close()
	}
	if _, err := c.removeContainer(); err != nil {
		return err
	}
	return c.removeNetwork()
}

// removeContainer removes the container and reports whether it existed. It retries while another container shares a
// namespace with this one: that container's server has ended, and the container is about to end as well.
func (c *contained) removeContainer() (there bool, err error) {
	for begun := time.Now(); ; time.Sleep(sharedPause) {
		there, err = c.docker.engine.RemoveIfThere(c.ctx, c.name)
		if !container.IsShared(err) || time.Since(begun) > sharedTime {
			return there, err
		}
	}
}

// A client that does not react to SIGTERM is killed earlier than this.
const (
	sharedTime  = time.Minute
	sharedPause = 100 * time.Millisecond
)

func (c *contained) removeNetwork() error {
	if o := c.cmd.Container; o.Outward && o.Beside == nil {
		return c.docker.engine.RemoveNetwork(c.ctx, c.name)
	}
	return nil
}
