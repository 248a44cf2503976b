//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor"
)

// TestFaultKillSandbox kills benchgraph while a command in a sandbox has left processes everywhere: they all end with
// benchgraph, before the next apply. That holds for an ordinary user, too.
func TestFaultKillSandbox(t *testing.T) {
	if err := executor.CheckSandbox(); err != nil {
		t.Skip(err)
	}
	for name, user := range map[string]*syscall.Credential{"as this user": nil,
		"as an ordinary user": {Uid: 65534, Gid: 65534}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if user != nil && os.Getuid() != 0 {
				t.Skip("only root can be somebody else")
			}
			// Unlike t.TempDir, every user can read it.
			dir, err := os.MkdirTemp("", "benchgraph-kill-")
			check(t, err, os.Chmod(dir, 0o755))
			t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
			// by which its processes are known
			length := strconv.Itoa(100000+os.Getpid()) + "." + strconv.Itoa(len(name))
			w := newWorldIn(t, dir, `
benchgraph { sandbox = "required" }
task "leaves" { command = "setsid sleep `+length+` & (env -i setsid sh -c 'sleep `+length+` & sleep `+length+`' &) ; sleep `+length+`" }
`)
			cmd := w.command("apply")
			if user != nil {
				program, err := os.Executable() // under the name benchgraph, it is benchgraph
				check(t, err)
				text, err := os.ReadFile(program)
				check(t, err, os.Mkdir(w.path("bin"), 0o755), os.WriteFile(w.path("bin", "benchgraph"), text, 0o755))
				cmd.Path = w.path("bin", "benchgraph")
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
				check(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
					if err != nil {
						return err
					}
					return os.Chown(path, int(user.Uid), int(user.Gid))
				}))
			}
			var said strings.Builder
			cmd.Stdout, cmd.Stderr = &said, &said
			check(t, cmd.Start())
			until(t, "what the command leaves", func() bool { return sleepers(length) == 4 })
			check(t, cmd.Process.Kill())
			_ = cmd.Wait()
			for end := time.Now().Add(2 * time.Second); sleepers(length) > 0; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%d processes are left\n%s", sleepers(length), said.String())
				}
			}
		})
	}
}

// sleepers counts the processes that sleep for so long.
func sleepers(length string) (n int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if text, err := os.ReadFile(path); err == nil && string(text) == "sleep\x00"+length+"\x00" {
			n++
		}
	}
	return n
}
