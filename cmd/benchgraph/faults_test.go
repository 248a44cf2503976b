//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The stories of faults_*_test.go and testdata/script/fault_*.txtar break things that benchgraph depends on. They look
// only at the command line and at the files that docs/architecture.md names. The long ones need the build tag faults.

// patience bounds the wait for an end. It measures nothing: it only ends a test that hangs.
const patience = 2 * time.Minute

// world is a project in a directory of its own, with its state.
type world struct {
	t        testing.TB
	dir      string
	env      []string
	patience time.Duration // with each command line
}

func newWorld(t testing.TB, benchmarks string) *world {
	t.Helper()
	return newWorldIn(t, t.TempDir(), benchmarks)
}

func newWorldIn(t testing.TB, dir, benchmarks string) *world {
	t.Helper()
	w := &world{t: t, dir: dir, patience: patience}
	w.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, ".home"), "BENCHGRAPH_HOST_LOCK=" +
			filepath.Join(dir, ".home", "host.lock"),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada",
		"GIT_COMMITTER_EMAIL=ada@example.org", "GIT_AUTHOR_DATE=2024-01-01T00:00:00Z",
		"GIT_COMMITTER_DATE=2024-01-01T00:00:00Z",
	}
	if err := os.Mkdir(filepath.Join(dir, ".home"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.write("benchmarks.hcl", benchmarks)
	t.Cleanup(func() { exec.Command("chmod", "-R", "u+w", dir).Run() }) // results are read-only
	return w
}

func (w *world) path(parts ...string) string {
	return filepath.Join(append([]string{w.dir}, parts...)...)
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := w.path(name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

// command is a benchgraph that was not started yet.
func (w *world) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), w.patience)
	w.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "benchgraph", args...)
	cmd.Dir, cmd.Env = w.dir, w.env
	cmd.WaitDelay = time.Second
	return cmd
}

// outcome is the end of a command of benchgraph.
type outcome struct {
	code           int // -1: by a signal
	stdout, stderr string
	state          *os.ProcessState
}

// run runs a command line to its end.
func (w *world) run(args ...string) outcome {
	w.t.Helper()
	return w.finish(w.command(args...))
}

func (w *world) finish(cmd *exec.Cmd) outcome {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("%v: %v\n%s", cmd.Args, err, stderr.String())
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
		w.t.Fatalf("%v did not end within %s\n%s", cmd.Args, w.patience, stderr.String())
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), cmd.ProcessState}
}

// must runs a command line, which must end with the exit code.
func (w *world) must(code int, args ...string) outcome {
	w.t.Helper()
	o := w.run(args...)
	o.exits(w.t, code)
	return o
}

func (o outcome) exits(t testing.TB, code int) {
	t.Helper()
	if o.code != code {
		t.Fatalf("exit code %d, want %d\n%s\n%s", o.code, code, o.stdout, o.stderr)
	}
}

// says makes sure that one of the streams has all of the texts.
func (o outcome) says(t testing.TB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(o.stdout+o.stderr, text) {
			t.Errorf("nothing says %q:\n%s\n%s", text, o.stdout, o.stderr)
		}
	}
}

func (o outcome) saysNot(t testing.TB, text string) {
	t.Helper()
	if strings.Contains(o.stdout+o.stderr, text) {
		t.Errorf("it says %q:\n%s\n%s", text, o.stdout, o.stderr)
	}
}

// json reads the document that a command line writes.
func (w *world) json(into any, args ...string) {
	w.t.Helper()
	o := w.must(0, args...)
	if err := json.Unmarshal([]byte(o.stdout), into); err != nil {
		w.t.Fatalf("%v: %v\n%s", args, err, o.stdout)
	}
}

// result returns the directory of the files of a node's result, and one of these files.
func (w *world) result(address string, args ...string) (dir string, file func(name string) string) {
	w.t.Helper()
	var doc struct{ Result struct{ Dir string } }
	w.json(&doc, append([]string{"show", "-json", address}, args...)...)
	return doc.Result.Dir, func(name string) string {
		text, err := os.ReadFile(filepath.Join(doc.Result.Dir, name))
		if err != nil {
			w.t.Fatal(err)
		}
		return string(text)
	}
}

// entry returns the store's directory of a node's result, with meta and the files below out.
func (w *world) entry(address string) string {
	w.t.Helper()
	dir, _ := w.result(address)
	if dir == "" {
		w.t.Fatalf("%s has no result", address)
	}
	return filepath.Dir(dir)
}

// verify makes sure that every stored byte is intact.
func (w *world) verify() {
	w.t.Helper()
	w.must(0, "cache", "verify").says(w.t, " 0 damaged")
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// marked returns the processes that these benchgraph processes started, by their environment.
func marked(pids map[int]bool) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for v := range strings.SplitSeq(string(env), "\x00") {
			mark, ok := strings.CutPrefix(v, "BENCHGRAPH_PROC=")
			if fields := strings.Split(mark, "."); ok && len(fields) == 5 && pids[number(fields[2])] {
				argv, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
				found = append(found, filepath.Base(filepath.Dir(file))+" "+strings.ReplaceAll(string(argv), "\x00",
					" "))
			}
		}
	}
	return found
}

func number(text string) int {
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// made has a result, and a node that reads it whenever the variable changes.
const made = `
variable "again" { default = "0" }
task "made" {
  inputs  = ["in"]
  command = "cat in > $OUT/text; mkdir $OUT/sub; echo below > $OUT/sub/text; ln -s text $OUT/link"
}
task "user" {
  data    = { "made/" = task.made }
  command = "cat made/text made/sub/text > $OUT/both; echo ${var.again}"
}
`

// stored is a project whose two nodes have results.
func stored(t *testing.T) *world {
	w := newWorld(t, made)
	w.write("in", "input 1\n")
	w.must(0, "apply")
	return w
}

func check(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// lockedBuffer is written by one goroutine and read by another.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
