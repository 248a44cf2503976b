//go:build linux || darwin

package executor

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
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// attached is a program in a container, and what we have of it.
type attached struct {
	docker  *Docker
	name    string // of the container, and of its network if it has one
	cmd     Command
	ctx     context.Context
	output  *output
	stream  *stream.Stream
	unwatch func() bool

	life
}

func (a *attached) Container() string { return a.name }

// exit is how a program ended, or why that is not known.
type exit struct {
	code int
	err  error
}

// follow sees the program's end, which it brings about when it is to be stopped: first it asks, then it kills.
func (a *attached) follow(await func() exit, signal func(name string) error) exit {
	a.output.follow(a.stream) // await may look at it
	ended := make(chan exit, 1)
	go func() { ended <- await() }()
	if a.cmd.Stdin != nil {
		go a.stream.Feed(a.cmd.Stdin) // not waited for: stdin may block for ever
	}
	select {
	case end := <-ended:
		return end
	case <-a.stop:
	}
	for _, try := range []struct {
		signal string
		limit  time.Duration
	}{{"TERM", max(a.cmd.Grace, 0)}, {"KILL", killTime}} {
		if err := signal(try.signal); err != nil {
			return exit{err: err}
		}
		select {
		case end := <-ended:
			return end
		case <-time.After(cmp.Or(try.limit, defaultGrace)):
		}
	}
	return exit{err: fmt.Errorf("%s: cannot be ended in container %s", a.cmd.Argv[0], a.name)}
}

// contained is a program in a container of its own.
type contained struct {
	attached
	await func() (code int, err error)
}

// start makes the container and starts it. Output and end are waited for before, so that nothing is missed. The end of
// ctx interrupts no request that makes something: the engine would go on with it.
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

// connect connects to what the container prints and to its end, both at once.
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
	// Podman makes what the container runs in before it attaches, and tells why it cannot to those who start it.
	return cmp.Or(c.explain(c.docker.engine.Start(c.ctx, c.name)), err)
}

// network returns what the container is connected to. One of its own is made.
func (c *contained) network() (string, error) {
	o := c.cmd.Container
	switch {
	case o.Beside != nil:
		beside, ok := o.Beside.(Contained)
		if !ok {
			return "", &Unsupported{What: c.cmd.Argv[0] + " beside a program that is in no container",
				Remedy: "run both in containers"}
		}
		return "container:" + beside.Container(), nil
	case o.Outward: // that of others would let them in
		return c.name, c.docker.engine.CreateNetwork(c.ctx, c.name, c.docker.Labels())
	}
	return "none", nil
}

// explain says what is wrong with the command when the engine refuses to start it.
func (c *contained) explain(err error) error {
	e, ok := errors.AsType[*container.Error](err)
	if !ok || e.Class != failure.Permanent {
		return err
	}
	return &StartError{Program: c.cmd.Argv[0], Reason: e.Reason, Remedy: e.Remedy, Err: err}
}

// supervise sees the end of the program and removes its container.
func (c *contained) supervise() {
	defer close(c.gone)
	defer c.unwatch()
	end := c.follow(func() exit {
		code, err := c.await()
		return exit{code, err}
	}, func(name string) error { return c.docker.engine.Signal(c.ctx, c.name, "SIG"+name) })
	close(c.done)
	c.status = exitStatus(end.code)
	err := end.err
	if err == nil {
		err = c.output.drain()
	}
	if err == nil {
		err = cmp.Or(c.complete(), c.report())
	}
	if err != nil {
		c.status = Status{Code: -1}
	}
	c.stream.Close()
	c.err = cmp.Or(err, c.output.close(), c.failure())
	c.once.Do(func() {}) // what it was stopped for is now known
	c.remove()
}

// robbed is the error for a container that somebody else removed: what is told of its end then means nothing.
func (c *contained) robbed() error {
	return &container.Error{Doing: c.cmd.Argv[0], Reason: "its container was removed by somebody else",
		Class: failure.Transient}
}

// complete adds to the output what the engine has in its log but has not passed on: Docker closes the streams of a
// container that has ended, whether or not all has reached its clients. What cannot be added is lost.
func (c *contained) complete() error {
	info, err := c.docker.about(c.ctx)
	if err != nil || !info.Logs {
		return cmp.Or(err, c.output.err)
	}
	lost := &container.Error{Doing: c.cmd.Argv[0], Reason: "the container engine lost the end of its output",
		Class: failure.Transient, Err: c.output.err}
	switch log, err := c.docker.engine.Log(c.ctx, c.name); {
	case container.IsNotFound(err):
		return c.robbed()
	case err == nil && log.Complete(&c.output.stdout, &c.output.stderr), container.IsGone(err):
		return err
	case err != nil:
		lost.Reason, lost.Err = "whether its output is whole is not known: "+err.Error(), err
	}
	return lost
}

// report fills in what only the engine knows. Nothing is asked when nothing can be the matter.
func (c *contained) report() error {
	if c.status.OK() && c.cmd.Container.Memory == 0 {
		return nil
	}
	for tries := 0; ; tries++ {
		info, err := c.docker.engine.Inspect(c.ctx, c.name)
		switch {
		case container.IsNotFound(err):
			return c.robbed()
		case err != nil:
			return err
		}
		c.status.OOM = info.State.OOMKilled
		// A busy engine hears of the kernel's kill after the end of the container.
		if c.status.OOM || c.status.OK() || c.cmd.Container.Memory == 0 || tries == oomTries {
			return nil
		}
		time.Sleep(oomPause)
	}
}

// A failure under a limit of memory is reported after at most a second.
const (
	oomTries = 10
	oomPause = 100 * time.Millisecond
)

// exitStatus undoes what shells and the init of a container do: a program that a signal ended exits with 128 and its
// number.
func exitStatus(code int) Status {
	if code > 128 && unix.SignalName(syscall.Signal(code-128)) != "" {
		return Status{Code: -1, Signal: signalName(syscall.Signal(code - 128))}
	}
	return Status{Code: code}
}

// initFailures are what is said when the program of a container cannot be started: by tini, catatonit, Apptainer.
var initFailures = lazyregexp.New(`^\[FATAL tini \(\d+\)\] exec .* failed: (.+)\n$|^ERROR \(catatonit:\d+\): ` +
	`failed to exec pid1: (.+)\n$|^FATAL: +(?:".+": |stat .+: )?(executable file not found in \$PATH|` +
	`no such file or directory|permission denied|is a directory)\n$`)

// failure says that the program could not be started when its container has ended because of that.
func (c *contained) failure() error {
	m := initFailures().FindStringSubmatch(string(c.output.start.Bytes()))
	if m == nil || c.status.Code <= 0 {
		return nil
	}
	why := m[1] + m[2] + m[3]
	e := &StartError{Program: c.cmd.Argv[0], Reason: "cannot be started in the container: " + why}
	switch why { // catatonit has one status for all
	case "No such file or directory", "no such file or directory", "executable file not found in $PATH":
		e.Remedy, e.Err = "install it in the image, or add its directory to PATH", fs.ErrNotExist
	case "Permission denied", "permission denied":
		e.Remedy, e.Err = "make it executable (chmod +x)", fs.ErrPermission
	}
	return e
}

// remove removes what is not to be kept. The engine may just be on its way out, or away: what it told last is not
// believed then, as it ends its containers itself before.
func (c *contained) remove() {
	var err error
	if c.cmd.Container.Keep && c.err == nil && c.cause == nil {
		err = cmp.Or(c.docker.engine.Settle(c.ctx, c.name), c.removeNetwork())
	} else {
		there, failed := c.takeAway()
		if err = cmp.Or(failed, c.removeNetwork()); err == nil && !there {
			err = c.robbed()
		}
	}
	if c.err == nil {
		c.err = err
	}
	if !container.IsGone(c.err) {
		return
	}
	if err := c.docker.engine.Persist(c.ctx, c.discard); err != nil {
		c.err = err
		return
	}
	c.err = &container.Error{
		Doing: c.cmd.Argv[0], Reason: "the container engine went away while it ran", Class: failure.Transient,
		Err: c.err, Remedy: "it was restarted, or has crashed: its log says more (journalctl -u docker)",
	}
}

// discard removes the container and what it was given.
func (c *contained) discard() error {
	if c.stream != nil {
		c.stream.Close()
	}
	if _, err := c.takeAway(); err != nil {
		return err
	}
	return c.removeNetwork()
}

// takeAway removes the container, and says whether it was there. A client ends because its server has, and its
// container is then on its way out.
func (c *contained) takeAway() (there bool, err error) {
	for begun := time.Now(); ; time.Sleep(sharedPause) {
		there, err = c.docker.engine.RemoveIfThere(c.ctx, c.name)
		if !container.IsShared(err) || time.Since(begun) > sharedTime {
			return there, err
		}
	}
}

// Programs that do not heed that they are to end are killed before.
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
