package executor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/benchgraph/benchgraph/executor/internal/first"
	"github.com/benchgraph/benchgraph/executor/internal/namespace"
	"github.com/benchgraph/benchgraph/executor/internal/refusal"
)

// LandlockVersion returns the version of Landlock that confines commands with a Sandbox. It is 0 if the kernel has no
// Landlock, or a version that forbids moving files between directories.
func LandlockVersion() int { return landlockVersion() }

var landlockVersion = sync.OnceValue(func() int {
	if v := first.LandlockVersion(); v >= first.LandlockMoves {
		return v
	}
	return 0
})

// secondLine returns the fence of a program that is already in namespaces. It repeats the rules of the mounts for
// files, and keeps the program away from abstract sockets of a shared network.
func secondLine(s *first.Spec, network bool) *first.Fence {
	if landlockVersion() == 0 {
		return nil
	}
	f := &first.Fence{Read: []string{"/"}, Write: []string{"/dev", "/proc"}, Sockets: network}
	for _, b := range s.Binds {
		if b.Writable {
			f.Write = append(f.Write, b.To)
		}
	}
	return f
}

// common are the directories that all users share: other users' files are there.
var common = []string{"/tmp", "/var/tmp", "/dev"}

// fenceOf returns the fence of a program without namespaces. The program may read everything but the directories that
// the sandbox hides, and write only its own directories. Landlock rules can allow but not forbid, so fenceOf leaves
// out each directory that contains a hidden one, and names its other entries.
func fenceOf(cmd Command) (*first.Fence, error) {
	o := cmd.Sandbox
	hidden, err := concealed(slices.Concat(o.Hidden, common))
	if err != nil {
		return nil, err
	}
	f := &first.Fence{Sockets: true, Write: []string{cmd.Dir}}
	for _, dir := range []string{o.Tmp, o.Home} {
		if dir != "" {
			f.Write = append(f.Write, dir)
		}
	}
	for _, m := range o.Shown {
		switch {
		case m.Inside != "" && m.Inside != m.Host:
			return nil, &Unsupported{What: "a mount at another path without namespaces", Remedy: `say sandbox = "none"`}
		case m.Writable:
			f.Write = append(f.Write, m.Host)
		default:
			f.Read = append(f.Read, m.Host)
		}
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"} {
		f.Write = append(f.Write, "/dev/"+name)
	}
	gpus, err := DeviceNodes(o.GPUs)
	if err != nil {
		return nil, err
	}
	f.Write = append(f.Write, gpus...)
	f.Read = append(f.Read, reachable("/", hidden)...)
	if !o.Network {
		f.Ports = append([]int{0}, o.Ports...) // 0: any free port, to listen on
	}
	return f, nil
}

// reachable returns the paths in a directory that are not hidden and contain nothing hidden.
func reachable(dir string, hidden []string) (all []string) {
	if slices.Contains(hidden, dir) {
		return nil
	}
	if !slices.ContainsFunc(hidden, func(h string) bool { return dir == "/" || strings.HasPrefix(h, dir+"/") }) {
		return []string{dir}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // the program cannot read it either
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 { // a link's target has its own rule
			all = append(all, reachable(filepath.Join(dir, e.Name()), hidden)...)
		}
	}
	return all
}

// goBehindFence changes c to start a process that goes behind a fence and then becomes the program. After the start
// succeeded or failed, report must be called; it returns an error if the program does not run.
func goBehindFence(c *exec.Cmd, spec first.Spec) (report func(started bool) error, err error) {
	file, err := namespace.Written(spec)
	if err != nil {
		return nil, err
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		file.Close()
		return nil, err
	}
	c.Path, c.Args, c.ExtraFiles = first.Program(), []string{first.FenceName}, []*os.File{file, theirs}
	return func(started bool) error {
		file.Close()
		theirs.Close()
		defer ours.Close()
		if !started {
			return nil
		}
		said, err := io.ReadAll(ours)
		if err != nil || len(said) == 0 {
			return err
		}
		var f first.Refusal
		if err := json.Unmarshal(said, &f); err != nil {
			return err
		}
		errno := syscall.Errno(f.Errno)
		if f.Step == "" || refusal.Passes(errno) {
			return errno
		}
		return &Unsupported{
			What:   fmt.Sprintf("a sandbox by Landlock: this machine does not let benchgraph %s: %v", f.Step, errno),
			Remedy: `say sandbox = "none"`,
		}
	}, nil
}

// fenced returns the Spec of a command behind a fence. The environment names the sandbox's home and directory for
// temporary files.
func fenced(cmd Command, environ []string) (first.Spec, error) {
	o := cmd.Sandbox
	f, err := fenceOf(cmd)
	if err != nil {
		return first.Spec{}, err
	}
	home := cmp.Or(o.Home, o.Tmp)
	s := first.Spec{Argv: cmd.Argv, Dir: cmd.Dir, Fence: f, Env: environ}
	if home != "" {
		s.Env = append(slices.Clone(s.Env), "HOME="+home, "TMPDIR="+cmp.Or(o.Tmp, home))
	}
	s.Env = lastOf(s.Env)
	if strings.ContainsRune(cmd.Argv[0], filepath.Separator) {
		s.Path = below(cmd.Dir, cmd.Argv[0])
	}
	return s, nil
}

// behindFence returns a launch that starts the process behind the fence of its command.
func behindFence(p *process, cmd Command, launch func() error) (func() error, error) {
	spec, err := fenced(cmd, p.template.Env)
	if err != nil {
		return nil, err
	}
	report, err := goBehindFence(&p.template, spec)
	if err != nil {
		return nil, err
	}
	return func() error {
		err := launch()
		if refused := report(err == nil); err == nil && refused != nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait() // it was killed or has ended
			err = refused
		}
		return err
	}, nil
}

// unstarted returns an error that says why a program could not be started on the host or behind its fence.
func unstarted(cmd Command, path string, err error) error {
	if _, ok := errors.AsType[*Unsupported](err); ok {
		return err
	}
	if cmd.Sandbox != nil && errors.Is(err, syscall.EACCES) && executable(path) == nil {
		return &StartError{
			Program: cmd.Argv[0], Reason: path + " cannot be reached in the sandbox",
			Remedy: `declare what it needs of the host as a mount, or say sandbox = "none"`, Err: fs.ErrPermission,
		}
	}
	return explain(cmd, path, err)
}

// SandboxOf returns how this machine confines commands with a Sandbox; it is found out once. A temporary shortage
// does not change the answer: a command that gets no sandbox then does not run.
func SandboxOf() Confinement {
	switch {
	case !unsupported(CheckSandbox()):
		return Namespaces
	case !unsupported(checkFence()):
		return Landlock
	}
	return Unconfined
}

// unsupported reports whether an error means that this machine does not have a feature at all.
func unsupported(err error) bool {
	_, ok := errors.AsType[*Unsupported](err)
	return ok
}

// checkFence returns why commands cannot go behind a fence of Landlock: an *Unsupported, or a temporary error.
var checkFence = sync.OnceValue(func() error {
	if landlockVersion() == 0 {
		return &Unsupported{
			What:   "a sandbox by Landlock, which this kernel does not speak",
			Remedy: "it needs Linux 5.19 or newer, with landlock in lsm=",
		}
	}
	err := tryFence()
	if err == nil || refusal.Passes(err) || unsupported(err) {
		return err
	}
	return &Unsupported{What: "a sandbox by Landlock: " + err.Error(), Remedy: `say sandbox = "none"`}
})

// tryFence starts a process that goes behind a fence.
func tryFence() error {
	var cmd exec.Cmd
	report, err := goBehindFence(&cmd, first.Spec{Trial: true, Fence: &first.Fence{Read: []string{"/"}}})
	if err != nil {
		return err
	}
	err = cmd.Start()
	if refused := report(err == nil); refused != nil || err != nil {
		err = cmp.Or(refused, err)
	}
	if cmd.Process != nil {
		_ = cmd.Wait() // it runs no program
	}
	return err
}
