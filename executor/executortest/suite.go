// Package executortest holds the suite that each executor must pass. It runs real programs: those of a POSIX shell,
// and setsid.
package executortest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor"
)

// Traits are limits of an executor that follow from where it runs commands. The suite skips the checks concerned.
type Traits struct {
	Adds      []string // names of variables that it adds to the environment
	NoCount   bool     // it does not count left processes
	Unordered bool     // lines of stdout and stderr may change places
	LateStart bool     // only Wait reports that a program cannot be started
	ReadsAll  bool     // a program must read its input to the end
}

// Run runs the suite on executors that open returns.
func Run(t *testing.T, traits Traits, open func(t *testing.T) executor.Executor) {
	for _, story := range []struct {
		name string
		test func(*testing.T, executor.Executor)
	}{
		{"status", traits.status},
		{"signal", signalled},
		{"streams", streams},
		{"order of one writer", traits.order},
		{"environment", traits.environment},
		{"directory and input", directoryAndInput},
		{"input that is not read", inputNotRead},
		{"not UTF-8", notUTF8},
		{"much output", muchOutput},
		{"secrets", traits.secrets},
		{"failing writer", failingWriter},
		{"cancelled while waiting", cancelled},
		{"cancelled before and after the start", cancelledStart},
		{"stop", stopped},
		{"politeness ignored", stubborn},
		{"early death is noticed", earlyDeath},
		{"background child", traits.backgroundChild},
		{"daemon", traits.daemon},
		{"daemon that keeps the output open", daemonWithOutput},
		{"many at a time", many},
		{"cannot be started", traits.cannotStart},
	} {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			if traits.ReadsAll && story.name == "input that is not read" {
				t.Skip("a program has to read its input to the end")
			}
			story.test(t, open(t))
		})
	}
}

// Shell returns a command that runs script in a directory of its own, with a plain environment.
func Shell(t *testing.T, script string) executor.Command {
	return executor.Command{
		Argv: []string{"sh", "-euc", script},
		Dir:  t.TempDir(),
		Env:  []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}
}

func start(t *testing.T, e executor.Executor, cmd executor.Command) executor.Process {
	t.Helper()
	p, err := e.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Output runs a command to its end, and returns what it printed.
func Output(t *testing.T, e executor.Executor, cmd executor.Command) (executor.Status, string) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	s, err := executor.Run(t.Context(), e, cmd)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return s, out.String()
}

// Started starts a command and waits for its first line. The command is stopped at the end of the test.
func Started(t *testing.T, e executor.Executor, cmd executor.Command) executor.Process {
	t.Helper()
	r, out := io.Pipe()
	cmd.Stdout = out
	p := start(t, e, cmd)
	if _, err := r.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	t.Cleanup(func() { _, _ = p.Stop() })
	return p
}

func (x Traits) status(t *testing.T, e executor.Executor) {
	for _, code := range []int{0, 1, 42, 255} {
		s, _ := Output(t, e, Shell(t, fmt.Sprintf("exit %d", code)))
		if s.Code != code || s.Signal != "" || s.Left != 0 || s.OK() != (code == 0) {
			t.Errorf("exit %d: %+v", code, s)
		}
	}
}

func signalled(t *testing.T, e executor.Executor) {
	for _, name := range []string{"KILL", "TERM", "SEGV"} {
		s, _ := Output(t, e, Shell(t, "kill -"+name+" $$; sleep 1000"))
		if s.Signal != "SIG"+name || s.Code != -1 || s.OK() {
			t.Errorf("kill -%s: %+v", name, s)
		}
	}
}

func streams(t *testing.T, e executor.Executor) {
	var out, err bytes.Buffer
	cmd := Shell(t, "echo to out; echo to err >&2")
	cmd.Stdout, cmd.Stderr = &out, &err
	if s, e := executor.Run(t.Context(), e, cmd); e != nil || !s.OK() {
		t.Fatal(s, e)
	}
	if out.String() != "to out\n" || err.String() != "to err\n" {
		t.Errorf("stdout %q, stderr %q", &out, &err)
	}
	cmd.Stdout, cmd.Stderr = nil, nil
	if s, e := executor.Run(t.Context(), e, cmd); e != nil || !s.OK() {
		t.Errorf("without writers: %+v, %v", s, e)
	}
}

func (x Traits) order(t *testing.T, e executor.Executor) {
	var want strings.Builder
	for i := range 200 {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i, i)
	}
	_, got := Output(t, e, Shell(t, "i=0; while [ $i -lt 200 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done"))
	if x.Unordered {
		if sorted(got) != sorted(want.String()) {
			t.Errorf("lines changed places, or are missing:\n%s", got)
		}
		return
	}
	if got != want.String() {
		t.Errorf("lines of stdout and stderr changed places:\n%s", got)
	}
}

// sorted puts the lines of stdout before those of stderr.
func sorted(text string) string {
	lines := slices.Collect(strings.Lines(text))
	slices.SortStableFunc(lines, func(a, b string) int { return -strings.Compare(a[:3], b[:3]) })
	return strings.Join(lines, "")
}

func (x Traits) environment(t *testing.T, e executor.Executor) {
	cmd := Shell(t, "env")
	cmd.Argv = []string{"env"}
	cmd.Env = append(cmd.Env, "EMPTY=", "ODD=a b\n=c", "TWICE=1", "TWICE=2")
	_, out := Output(t, e, cmd)
	out = strings.ReplaceAll(out, "a b\n=c", "a b =c")
	var got []string
	for line := range strings.Lines(out) {
		if name, _, _ := strings.Cut(line, "="); name != "BENCHGRAPH_PROC" && !slices.Contains(x.Adds, name) {
			got = append(got, strings.TrimSuffix(line, "\n"))
		}
	}
	slices.Sort(got)
	want := []string{"EMPTY=", "ODD=a b =c", cmd.Env[0], "TWICE=2"}
	if !slices.Equal(got, want) {
		t.Errorf("environment\n%q, want\n%q", got, want)
	}
}

func directoryAndInput(t *testing.T, e executor.Executor) {
	cmd := Shell(t, "pwd -P; cat; echo made >file")
	cmd.Stdin = strings.NewReader("from the test\n")
	_, out := Output(t, e, cmd)
	dir, err := filepath.EvalSymlinks(cmd.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := dir + "\nfrom the test\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if text, err := os.ReadFile(filepath.Join(cmd.Dir, "file")); err != nil || string(text) != "made\n" {
		t.Errorf("the file it made: %q, %v", text, err)
	}
	if _, out := Output(t, e, Shell(t, "cat; echo end")); out != "end\n" {
		t.Errorf("without input: %q", out)
	}
}

// endless is an input that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func inputNotRead(t *testing.T, e executor.Executor) {
	cmd := Shell(t, "head -c 5 >/dev/null; echo enough")
	cmd.Stdin = endless{}
	if s, out := Output(t, e, cmd); !s.OK() || out != "enough\n" {
		t.Errorf("%+v, %q", s, out)
	}
	blocked, w := io.Pipe()
	defer w.Close()
	cmd = Shell(t, "echo no input needed")
	cmd.Stdin = blocked
	if s, out := Output(t, e, cmd); !s.OK() || out != "no input needed\n" {
		t.Errorf("%+v, %q", s, out)
	}
}

func notUTF8(t *testing.T, e executor.Executor) {
	if _, out := Output(t, e, Shell(t, `printf '\377\376\000x\200'`)); out != "\xff\xfe\x00x\x80" {
		t.Errorf("got %q", out)
	}
}

// counter counts what is written to it.
type counter struct {
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}

func muchOutput(t *testing.T, e executor.Executor) {
	const size = 100 << 20
	var out counter
	cmd := Shell(t, fmt.Sprintf("head -c %d /dev/zero", size))
	cmd.Stdout = &out
	if s, err := executor.Run(t.Context(), e, cmd); err != nil || !s.OK() || out.n != size {
		t.Errorf("%d bytes of %d, %+v, %v", out.n, size, s, err)
	}
}

func (x Traits) secrets(t *testing.T, e executor.Executor) {
	cmd := Shell(
		t,
		`echo "token $TOKEN"; printf 'split hf_se'; sleep 0.05; printf 'cret'; echo " $TOKEN" >&2; printf 'hf_'`,
	)
	cmd.Env = append(cmd.Env, "TOKEN=hf_secret")
	cmd.Secrets = []string{"", "hf_secret"}
	if !x.Unordered {
		if _, out := Output(t, e, cmd); out != "token ***\nsplit *** ***\nhf_" {
			t.Errorf("got %q", out)
		}
	}
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	if s, e := executor.Run(t.Context(), e, cmd); e != nil || !s.OK() || out.String() != "token ***\nsplit ***hf_" ||
		err.String() != " ***\n" {
		t.Errorf("%+v, %v, %q, %q", s, e, &out, &err)
	}
}

var errFull = errors.New("disk full")

// full is a writer that always fails.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func failingWriter(t *testing.T, e executor.Executor) {
	cmd := Shell(t, "echo line; exit 3")
	cmd.Stdout = full{}
	if _, err := executor.Run(t.Context(), e, cmd); !errors.Is(err, errFull) {
		t.Errorf("lost output is not an error: %v", err)
	}
}

var errTimeout = errors.New("benchmark took longer than 60m")

func cancelled(t *testing.T, e executor.Executor) {
	cmd, alive := lasting(t, ": >up; sleep 1000")
	p := start(t, e, cmd)
	waitFor(t, p, cmd, "up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errTimeout)
	if _, err := p.Wait(ctx); !errors.Is(err, errTimeout) {
		t.Errorf("Wait: %v, want the cause of its context", err)
	}
	alive.mustNot(t)
	if s, err := p.Stop(); err != nil || s.OK() {
		t.Errorf("Stop afterwards: %+v, %v", s, err)
	}
}

func cancelledStart(t *testing.T, e executor.Executor) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cmd, alive := lasting(t, ": >up; sleep 1000")
	p, err := e.Start(ctx, cmd)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, p, cmd, "up")
	cancel(errTimeout)
	<-p.Done()
	if _, err := p.Wait(t.Context()); !errors.Is(err, errTimeout) {
		t.Errorf("Wait: %v, want the cause of the context of Start", err)
	}
	alive.mustNot(t)
	if _, err := e.Start(ctx, cmd); !errors.Is(err, errTimeout) {
		t.Errorf("Start with an ended context: %v", err)
	}
}

func stopped(t *testing.T, e executor.Executor) {
	cmd, alive := lasting(t, `trap 'echo bye; exit 7' TERM; : >up; while :; do sleep 0.02; done`)
	var out bytes.Buffer
	cmd.Stdout = &out
	p := start(t, e, cmd)
	waitFor(t, p, cmd, "up")
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if s, err := p.Stop(); err != nil || s.Code != 7 {
				t.Errorf("Stop: %+v, %v", s, err)
			}
		})
	}
	all.Wait()
	if out.String() != "bye\n" {
		t.Errorf("output %q: the polite signal did not come through", &out)
	}
	if s, err := p.Wait(t.Context()); err != nil || s.Code != 7 {
		t.Errorf("Wait afterwards: %+v, %v", s, err)
	}
	alive.mustNot(t)
}

func stubborn(t *testing.T, e executor.Executor) {
	cmd, alive := lasting(t, `trap '' TERM INT HUP; : >up; while :; do sleep 0.02; done`)
	cmd.Grace = 50 * time.Millisecond
	p := start(t, e, cmd)
	waitFor(t, p, cmd, "up")
	if s, err := p.Stop(); err != nil || s.Signal != "SIGKILL" {
		t.Errorf("Stop: %+v, %v", s, err)
	}
	alive.mustNot(t)
}

func earlyDeath(t *testing.T, e executor.Executor) {
	p := start(t, e, Shell(t, "exit 9"))
	<-p.Done() // closes at once: callers need not wait for a time-out when a server dies
	if s, err := p.Wait(t.Context()); err != nil || s.Code != 9 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := p.Stop(); err != nil || s.Code != 9 {
		t.Errorf("Stop afterwards: %+v, %v", s, err)
	}
}

func (x Traits) backgroundChild(t *testing.T, e executor.Executor) {
	cmd, alive := lasting(t, "sleep 1000 & exit 4")
	if s, _ := Output(t, e, cmd); s.Code != 4 || s.Left != 1 && !x.NoCount {
		t.Errorf("%+v, want 1 left process", s)
	}
	alive.mustNot(t)
}

// daemonScript starts a process in its own session whose parent ends at once. The process ignores SIGTERM.
const daemonScript = `(setsid sh -c 'trap "" TERM; echo daemon; : >ready; while :; do sleep 0.02; done' %s &)
while ! [ -e ready ]; do sleep 0.01; done; exit 5`

func (x Traits) daemon(t *testing.T, e executor.Executor) {
	cmd, alive := lasting(t, fmt.Sprintf(daemonScript, ">/dev/null 2>&1"))
	cmd.Grace = 50 * time.Millisecond
	if s, _ := Output(t, e, cmd); s.Code != 5 || s.Left == 0 && !x.NoCount {
		t.Errorf("%+v, want left processes", s)
	}
	alive.mustNot(t)
}

func daemonWithOutput(t *testing.T, e executor.Executor) {
	cmd, alive := lasting(t, fmt.Sprintf(daemonScript, ""))
	cmd.Grace = 50 * time.Millisecond
	if s, out := Output(t, e, cmd); s.Code != 5 || out != "daemon\n" {
		t.Errorf("%+v, %q", s, out)
	}
	alive.mustNot(t)
}

func many(t *testing.T, e executor.Executor) {
	var all sync.WaitGroup
	for i := range 40 {
		cmd := Shell(t, fmt.Sprintf("echo %d; exit %d", i, i))
		all.Go(func() {
			var out bytes.Buffer
			cmd.Stdout = &out
			s, err := executor.Run(t.Context(), e, cmd)
			if err != nil || s.Code != i || out.String() != fmt.Sprintln(i) {
				t.Errorf("process %d: %+v, %q, %v", i, s, &out, err)
			}
		})
	}
	all.Wait()
}

func (x Traits) cannotStart(t *testing.T, e executor.Executor) {
	cmd := Shell(t, "")
	cmd.Argv = []string{"no-such-program-anywhere"}
	p, err := e.Start(t.Context(), cmd)
	if x.LateStart && err == nil {
		_, err = p.Wait(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "no-such-program-anywhere") {
		t.Errorf("an unknown program: %v", err)
	}
	if _, err := e.Start(t.Context(), executor.Command{Dir: t.TempDir()}); err == nil {
		t.Error("an empty command was started")
	}
}
