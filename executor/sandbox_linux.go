package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/benchgraph/benchgraph/executor/family"
	"github.com/benchgraph/benchgraph/executor/internal/first"
	"github.com/benchgraph/benchgraph/executor/internal/namespace"
	"github.com/benchgraph/benchgraph/executor/internal/refusal"
	"github.com/benchgraph/benchgraph/internal/fs"
)

var mostProcesses = MostProcesses // of a sandbox; a test lowers it

// starter starts the first processes of sandboxes.
type starter = namespace.Starter

// Close ends the spare process of a Host and waits until all namespaces are removed. No command may run any more. A
// nil Host does nothing.
func (h *Host) Close() error {
	if h == nil {
		return nil
	}
	return h.starter.Close(killTime)
}

// sandboxed is a program in its own namespaces.
type sandboxed struct {
	process
	first   *namespace.Process
	network bool          // it has the network of this machine
	dead    chan struct{} // closed when the namespaces are empty
	end     *first.Ended
	rest    *first.Gone
}

func (h *Host) startSandboxed(ctx context.Context, cmd Command) (Process, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	if err := checkDir(cmd.Argv[0], cmd.Dir); err != nil {
		return nil, err
	}
	spec, err := specOf(cmd)
	if err != nil {
		return nil, err
	}
	s := &sandboxed{network: cmd.Sandbox.Network, dead: make(chan struct{})}
	s.name = cmd.Argv[0]
	s.prepare(cmd)
	spec.Grace = s.grace
	var beside *namespace.Network
	if other := cmd.Sandbox.Beside; other != nil && !s.network {
		if beside, err = networkOf(other); err != nil {
			return nil, err
		}
		defer beside.Close()
	}
	if err := s.start(cmd.Stdin, func() error { return s.launch(&h.starter, cmd, spec, beside) }); err != nil {
		if _, told := errors.AsType[*StartError](err); !told && refusal.Passes(err) {
			err = shortage(s.name, "start a sandbox", err)
		}
		return nil, errors.Join(err, s.bound.release(nil))
	}
	s.unwatch = context.AfterFunc(ctx, func() { s.Halt(context.Cause(ctx)) })
	go s.follow(&h.starter)
	go s.supervise()
	return s, nil
}

func networkOf(p Process) (*namespace.Network, error) {
	s, ok := p.(*sandboxed)
	if !ok || s.network {
		return nil, &Unsupported{What: "the network of a program that has none of its own",
			Remedy: "run both in a sandbox"}
	}
	n, err := s.first.Network()
	if err != nil {
		return nil, fmt.Errorf("%s: its network: %w", s.name, err)
	}
	return n, nil
}

// launch lets a first process start the program.
func (s *sandboxed) launch(h *starter, cmd Command, spec first.Spec, beside *namespace.Network) (err error) {
	if s.bound, err = bind(cmd); err != nil {
		return err
	}
	if s.first, err = h.Start(s.network, beside); err != nil {
		return refused(s.name, "make namespaces", err)
	}
	streams := namespace.Streams{Out: s.template.Stdout, Err: s.template.Stderr}
	streams.In, _ = s.template.Stdin.(*os.File)
	m, err := s.first.Begin(spec, streams, s.bound.fd())
	switch {
	case err != nil:
		err = shortage(s.name, "start a sandbox", fmt.Errorf("its first process has ended: %w", err))
	case m.Failed != nil && m.Failed.Step != "":
		err = refused(s.name, m.Failed.Step, syscall.Errno(m.Failed.Errno))
	case m.Failed != nil:
		err = missing(cmd, spec.Path, syscall.Errno(m.Failed.Errno))
	case m.Started:
		return nil
	}
	s.first.Close()
	s.first.Kill()
	<-s.first.Gone()
	return err
}

// missing returns an error that says why the program could not be started in the sandbox.
func missing(cmd Command, path string, errno syscall.Errno) error {
	const remedy = `declare what it needs of the host as a mount, or say sandbox = "none"`
	if path == "" {
		if errno != syscall.ENOENT {
			return explain(cmd, cmd.Argv[0], errno)
		}
		list, _ := valueOf(cmd.Env, "PATH")
		return &StartError{
			Program: cmd.Argv[0], Reason: fmt.Sprintf("not found in PATH, as far as that is there in the sandbox (%s)",
				list),
			Remedy: "install it for all users; or " + remedy, Err: iofs.ErrNotExist,
		}
	}
	if errno == syscall.ENOENT && executable(path) == nil && interpreter(path) == "" {
		return &StartError{Program: cmd.Argv[0], Reason: path + " is not there in the sandbox", Remedy: remedy,
			Err: iofs.ErrNotExist}
	}
	return explain(cmd, path, errno)
}

// follow waits for the end of the program, and then until the namespaces are empty.
func (s *sandboxed) follow(h *starter) {
	_, _ = groups() // must come before Await starts a spare: no group can be made afterwards
	s.rest = h.Await(s.first, func(e *first.Ended) { s.end = e; close(s.Ended) })
	if s.end == nil {
		close(s.Ended)
	}
	close(s.dead)
}

// supervise waits for the end of all processes, or stops them.
func (s *sandboxed) supervise() {
	defer close(s.Gone)
	defer s.unwatch()
	select {
	case <-s.dead:
	case <-s.Stopping:
		s.Err = s.bringDown()
	}
	s.first.Close()
	if err := s.bound.release(&s.Status); s.Err == nil {
		s.Err = err
	}
	if s.Err != nil {
		s.Status = Status{Code: -1}
		return
	}
	s.first.Drain(drainTime)
	s.collect()
	s.report()
}

// bringDown ends everything in the sandbox through the first process.
func (s *sandboxed) bringDown() error {
	if s.first.Stop() == nil {
		select {
		case <-s.dead:
			return nil
		case <-time.After(s.grace + 2*time.Second):
		}
	}
	s.first.Kill()
	select {
	case <-s.dead:
		return nil
	case <-time.After(killTime):
		return fmt.Errorf("%s: its sandbox cannot be ended: process %d", s.name, s.first.Pid())
	}
}

// report sets the status after the end.
func (s *sandboxed) report() {
	// If the first process sent no message, it was killed with everything in the sandbox.
	s.Status.Code, s.Status.Signal = -1, "SIGKILL"
	if s.end != nil {
		s.Status.Code, s.Status.Signal = s.end.Code, ""
		if s.end.Signal != 0 {
			s.Status.Signal = SignalName(syscall.Signal(s.end.Signal))
		}
	}
	if g := s.rest; g != nil {
		s.Status.Left = g.Left
	}
}

// Dial connects to a port of the program's loopback.
func (s *sandboxed) Dial(port int) (net.Conn, error) { return s.first.Dial(port) }

func specOf(cmd Command) (first.Spec, error) {
	o := cmd.Sandbox
	s := first.Spec{Argv: cmd.Argv, Env: lastOf(cmd.Env), Dir: cmd.Dir, Loopback: !o.Network && o.Beside == nil,
		Settle: family.SettleTime, Most: mostProcesses}
	if strings.ContainsRune(cmd.Argv[0], filepath.Separator) {
		s.Path = below(cmd.Dir, cmd.Argv[0])
	}
	var err error
	if s.Empty, err = concealed(o.Hidden); err != nil {
		return s, err
	}
	for _, to := range []string{"/tmp", "/var/tmp"} {
		s.Binds = append(s.Binds, first.Bind{From: o.Tmp, To: to, Writable: true})
	}
	giveHome(&s, o)
	if filepath.Clean(cmd.Dir) != "/" {
		s.Binds = append(s.Binds, first.Bind{From: cmd.Dir, To: filepath.Clean(cmd.Dir), Writable: true})
	}
	for _, m := range o.Shown {
		to := filepath.Clean(cmp.Or(m.Inside, m.Host))
		s.Binds = append(s.Binds, first.Bind{From: m.Host, To: to, Writable: m.Writable})
	}
	if names, err := filepath.EvalSymlinks("/etc/resolv.conf"); o.Network && err == nil && names != "/etc/resolv.conf" {
		s.Binds = append(s.Binds, first.Bind{From: names, To: names}) // a daemon keeps the file below /run
	}
	s.Fence = secondLine(&s, o.Network)
	s.Devices, err = DeviceNodes(o.GPUs)
	return s, err
}

// concealed returns the directories and files that are hidden from every command. They are sorted: once a directory is
// hidden, the directories inside it no longer exist and need no mount.
func concealed(more []string) ([]string, error) {
	var all []string
	for _, dir := range slices.Concat(private, more) {
		real, err := filepath.EvalSymlinks(dir)
		switch {
		case errors.Is(err, iofs.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("sandbox: %w", err)
		case real != "/dev" && holdsSystem(real):
			return nil, &Unsupported{
				What:   "a sandbox without " + real + ", which holds the system",
				Remedy: "put the project and its state into a directory of their own",
			}
		case !slices.Contains(all, real):
			all = append(all, real)
		}
	}
	slices.Sort(all)
	return all, nil
}

// lastOf returns the environment with only the last value of each variable.
func lastOf(env []string) []string {
	seen := map[string]bool{}
	var last []string
	for _, v := range slices.Backward(env) {
		if name, _, _ := strings.Cut(v, "="); !seen[name] {
			seen[name] = true
			last = append(last, v)
		}
	}
	slices.Reverse(last)
	return last
}

// holdsSystem reports whether commands need the content of a directory.
func holdsSystem(dir string) bool {
	return slices.ContainsFunc(system(), func(path string) bool { return fs.Below(path, dir) })
}

// system returns the directories of the system, with links resolved.
var system = sync.OnceValue(func() []string {
	var all []string
	for _, path := range []string{"/bin", "/sbin", "/lib", "/lib64", "/usr/bin", "/usr/lib", "/etc", "/proc", "/sys",
		"/dev"} {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			all = append(all, real)
		}
	}
	return all
})

// giveHome mounts an empty directory at the user's home, so that mounts in the home are where programs look for them.
// A user without a home gets /tmp.
func giveHome(s *first.Spec, o *Sandbox) {
	home, _ := valueOf(s.Env, "HOME")
	if info, err := os.Stat(home); err != nil || !info.IsDir() || !filepath.IsAbs(home) || holdsSystem(home) {
		s.Env = lastOf(append(s.Env, "HOME=/tmp"))
		return
	}
	s.Binds = append(s.Binds, first.Bind{From: cmp.Or(o.Home, o.Tmp), To: filepath.Clean(home), Writable: true})
}

// CheckSandbox returns why commands of this process cannot have a Sandbox. An *Unsupported has the remedy; any other
// error is temporary and does not mean that this machine has no sandboxes. It is found out once, by making a sandbox.
func CheckSandbox() error { return checkSandbox() }

var checkSandbox = sync.OnceValue(func() error {
	spec := first.Spec{Trial: true, Loopback: true, Empty: private, Binds: []first.Bind{{To: "/tmp", Writable: true}}}
	s := sandboxed{process: process{name: "sandbox"}}
	err := s.launch(&starter{}, Command{}, spec, nil)
	if err == nil {
		s.first.Close()
		<-s.first.Gone() // it has no work
	}
	return err
})

// refused returns the error for namespaces that this machine refuses, permanently or now.
func refused(program, step string, err error) error {
	if refusal.Passes(err) {
		return shortage(program, step, err)
	}
	return &Unsupported{What: fmt.Sprintf("a sandbox: this machine does not let benchgraph %s: %v", step, err),
		Remedy: refusal.Remedy(err)}
}

// shortage returns the error for a sandbox that this machine cannot make now.
func shortage(program, step string, err error) error {
	return &StartError{
		Program: program, Reason: fmt.Sprintf("this machine does not let benchgraph %s now: %v", step, err),
		Remedy:  "run fewer programs at a time, or raise the limit of " + refusal.Limit(err) + ", then try again",
		Passing: true, Err: err,
	}
}
