package executor_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/executortest"
)

// write makes a file in a directory of its own and returns its path.
func write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStartErrorsExplain(t *testing.T) {
	h := executor.NewHost(executor.HostOptions{})
	plain := write(t, "plain", "echo no", 0o644)
	noInterpreter := write(t, "script", "#!/no/such/python -u\nprint()\n", 0o755)
	noProgram := write(t, "program", "\x01\x02\x03", 0o755)
	for _, test := range []struct {
		name   string
		change func(*executor.Command)
		want   []string
		is     error
	}{
		{"not found", func(c *executor.Command) { c.Argv, c.Env = []string{"nvcc"}, []string{"PATH=/opt/a:/opt/b"} },
			[]string{"nvcc: not found in PATH (/opt/a:/opt/b); install it"}, fs.ErrNotExist},
		{"no PATH", func(c *executor.Command) { c.Env = nil }, []string{"sh: ", "has no PATH"}, fs.ErrNotExist},
		{"path that is not there", func(c *executor.Command) {
			c.Argv = []string{"./run.sh"}
		}, []string{"./run.sh: " + "", "does not exist"}, fs.ErrNotExist},
		{"not executable", func(c *executor.Command) {
			c.Argv = []string{plain}
		}, []string{"permission denied", "chmod +x"}, fs.ErrPermission},
		{"not executable, in PATH", func(c *executor.Command) {
			c.Argv, c.Env = []string{"plain"}, []string{"PATH=" + filepath.Dir(plain)}
		}, []string{"plain: permission denied: " + plain}, fs.ErrPermission},
		{"a directory", func(c *executor.Command) { c.Argv = []string{"/usr"} }, []string{"/usr is a directory"}, nil},
		{"interpreter", func(c *executor.Command) {
			c.Argv = []string{noInterpreter}
		}, []string{`needs the interpreter "/no/such/python"`, "#! line"}, fs.ErrNotExist},
		{"no program", func(c *executor.Command) {
			c.Argv = []string{noProgram}
		}, []string{"neither a program for this machine nor a script"}, nil},
		{"no directory", func(c *executor.Command) {
			c.Dir += "/missing"
		}, []string{"sh: working directory", "missing", "make the directory"}, fs.ErrNotExist},
		{"a file as directory", func(c *executor.Command) {
			c.Dir = plain
		}, []string{"working directory", "not a directory"}, nil},
		{"a relative directory", func(c *executor.Command) {
			c.Dir = "here"
		}, []string{`"here" is not an absolute path`}, nil},
		{"too long", func(c *executor.Command) {
			c.Argv = append(c.Argv, strings.Repeat("x", 4<<20))
		}, []string{"sh: argument list too long: 4194", "file or on standard input"}, nil},
		{"NUL", func(c *executor.Command) { c.Argv = append(c.Argv, "a\x00b") }, []string{`NUL byte in "a\x00b"`}, nil},
		{"NUL in the environment", func(c *executor.Command) {
			c.Env = append(c.Env, "A=\x00")
		}, []string{"NUL byte"}, nil},
		{"empty", func(c *executor.Command) { c.Argv = nil }, []string{"command: is empty"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := executortest.Shell(t, "exit 0")
			test.change(&cmd)
			_, err := h.Start(t.Context(), cmd)
			var start *executor.StartError
			if !errors.As(err, &start) || test.is != nil && !errors.Is(err, test.is) {
				t.Fatalf("%v (%T)", err, err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
	t.Run("image", func(t *testing.T) {
		cmd := executortest.Shell(t, "exit 0")
		cmd.Container = &executor.Container{Image: "docker.io/library/debian"}
		_, err := h.Start(t.Context(), cmd)
		var unsupported *executor.Unsupported
		if !errors.As(err, &unsupported) || unsupported.Remedy == "" ||
			!strings.Contains(err.Error(), "no container engine") {
			t.Errorf("%v (%T)", err, err)
		}
	})
}

func TestProgramsAreLookedUpAsTheCommandWould(t *testing.T) {
	h := executor.NewHost(executor.HostOptions{})
	first, second := write(t, "tool", "#!/bin/sh\necho first\n", 0o755),
		write(t, "tool", "#!/bin/sh\necho second\n", 0o755)
	relative := write(t, "bin/tool", "#!/bin/sh\necho relative\n", 0o755)
	for _, test := range []struct{ name, argv0, path, dir, want string }{
		{"the first in PATH", "tool", filepath.Dir(first) + ":" + filepath.Dir(second), "/", "first\n"},
		{"below the command's directory", "tool", "/nowhere:bin", filepath.Dir(filepath.Dir(relative)), "relative\n"},
		{"the directory itself", "tool", ":/nowhere", filepath.Dir(second), "second\n"},
		{"a path from the directory", "bin/tool", "/nowhere", filepath.Dir(filepath.Dir(relative)), "relative\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			s, err := executor.Run(t.Context(), h, executor.Command{Argv: []string{test.argv0}, Dir: test.dir,
				Env: []string{"PATH=" + test.path}, Stdout: &out})
			if err != nil || !s.OK() || out.String() != test.want {
				t.Errorf("%+v, %v, %q", s, err, &out)
			}
		})
	}
}

// The shell of a PATH is looked up only once, until its file is gone.
func TestTheShellIsFoundAgainWhenItIsGone(t *testing.T) {
	h := executor.NewHost(executor.HostOptions{})
	first, second := write(t, "sh", "#!/bin/sh\necho first\n", 0o755), write(t, "sh", "#!/bin/sh\necho second\n", 0o755)
	run := func() string {
		var out bytes.Buffer
		cmd := executor.Command{Argv: []string{"sh"}, Dir: "/",
			Env: []string{"PATH=" + filepath.Dir(first) + ":" + filepath.Dir(second)}, Stdout: &out}
		if s, err := executor.Run(t.Context(), h, cmd); err != nil || !s.OK() {
			t.Fatalf("%+v, %v", s, err)
		}
		return out.String()
	}
	for range 2 {
		if got := run(); got != "first\n" {
			t.Errorf("%q ran", got)
		}
	}
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	if got := run(); got != "second\n" {
		t.Errorf("%q ran", got)
	}
}
