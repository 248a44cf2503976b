//go:build linux || darwin

package docker

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/family"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// within is a program that was started in the container of another program. It ends with the container at the latest,
// and so do its descendants.
type within struct {
	attached
	id string // of the program, for the engine
}

func (d *Executor) startWithin(ctx context.Context, cmd executor.Command) (executor.Process, error) {
	host, ok := cmd.Container.Within.(executor.Contained)
	if !ok {
		return nil, &executor.Unsupported{What: cmd.Argv[0] + " within a program that is in no container",
			Remedy: "run that in a container"}
	}
	w := &within{attached: attached{docker: d, name: host.Container(), cmd: cmd, output: newOutput(cmd),
		ctx: context.WithoutCancel(ctx)}}
	w.Begin()
	var err error
	w.id, w.stream, err = d.engine.Exec(ctx, w.name, container.ExecOptions{
		User: cmd.Container.User, Env: cmd.Env, WorkingDir: cmd.Dir, Cmd: cmd.Argv,
		AttachStdin: cmd.Stdin != nil, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return nil, err
	}
	w.unwatch = context.AfterFunc(ctx, func() { w.Halt(context.Cause(ctx)) })
	go w.supervise()
	return w, nil
}

func (w *within) supervise() {
	defer close(w.Gone)
	defer w.unwatch()
	end := w.follow(w.await, w.signal)
	w.Status = exitStatus(end.code)
	if end.err != nil {
		w.Status = executor.Status{Code: -1}
	}
	close(w.Ended)
	w.stream.Close()
	w.Err = cmp.Or(end.err, w.output.close(), w.failure())
}

// await waits for the end of the program and of its output. It does not wait for output that only a descendant keeps
// open.
func (w *within) await() exit {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		closed := false
		select {
		case <-w.output.copied:
			closed = true
		case <-time.After(pause):
		}
		info, err := w.docker.engine.InspectExec(w.ctx, w.id)
		if err != nil {
			return exit{err: err}
		}
		if info.Running {
			if closed {
				time.Sleep(pause) // it has closed its output or is about to end
			}
			continue
		}
		// A busy engine delivers output after the end of the program. Docker closes the stream two seconds after the
		// end even if output is unread, and no engine keeps a log of it: lost output cannot be detected.
		select {
		case <-w.output.copied:
		case <-time.After(family.KillTime):
		}
		return exit{code: info.ExitCode}
	}
}

// signal runs kill in the container: engines have no request for that.
func (w *within) signal(name string) error {
	e := w.docker.engine
	pid, err := w.pid()
	if err != nil || pid == 0 {
		return err
	}
	_, s, err := e.Exec(w.ctx, w.name, container.ExecOptions{
		User: w.cmd.Container.User, Cmd: []string{"sh", "-c", "kill -" + name + " " + strconv.Itoa(pid)},
		AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return err
	}
	s.Close()
	return nil
}

// pid returns the number of the program in its container; 0: it has ended. The engine may need a moment to know it.
func (w *within) pid() (int, error) {
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		info, err := w.docker.engine.InspectExec(w.ctx, w.id)
		if err != nil || !info.Running {
			return 0, err
		}
		pid, err := innermost(info.Pid)
		if err == nil {
			return pid, nil
		}
		if time.Since(begun) > executor.DefaultGrace {
			return 0, fmt.Errorf("%s: cannot be ended but with its container: %w", w.cmd.Argv[0], err)
		}
	}
}

// innermost returns the number of a process in its own namespace.
func innermost(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			all := strings.Fields(numbers)
			return strconv.Atoi(all[len(all)-1])
		}
	}
	return 0, fmt.Errorf("process %d: its number in the container is not known", pid)
}

// execFailure matches the message that Docker or Podman prints if a program cannot be started.
var execFailure = lazyregexp.New(`^OCI runtime exec failed: (.+)\r?\n$|^Error: (.+): OCI (?:runtime|permission)`)

func (w *within) failure() error {
	m := execFailure().FindStringSubmatch(string(w.output.start.Bytes()))
	if m == nil || w.Status.Code != 126 && w.Status.Code != 127 {
		return nil
	}
	e := &executor.StartError{Program: w.cmd.Argv[0], Reason: "cannot be started in the container: " + m[1] + m[2]}
	if w.Status.Code == 127 || strings.Contains(m[1], "not found") || strings.Contains(m[1], "no such file") {
		e.Err = fs.ErrNotExist
	}
	return e
}
