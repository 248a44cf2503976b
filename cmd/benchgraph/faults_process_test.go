//go:build linux && faults

package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/benchgraph/benchgraph/executor"
)

// daemons leave a process behind that hides better and better. It holds the pipe life open as long as it lives, so that
// the tests see it, and makes a file when it is up.
var daemons = map[string]string{
	"a child in the background": `(exec 9<>$LIFE; : > $UP; exec sleep 300) &`,
	"a session of its own":      `(exec 9<>$LIFE; exec setsid sh -c ': > $UP; exec sleep 300') > /dev/null 2>&1 &`,
	"no environment":            `(exec 9<>$LIFE; : > $UP; exec env -i sleep 300) < /dev/null > /dev/null 2>&1 &`,
	"deaf": `(exec 9<>$LIFE; trap '' TERM HUP INT; : > $UP; exec env -i sleep 300) < /dev/null ` +
		`> /dev/null 2>&1 &`,
	"all of it": `(exec 9<>$LIFE; setsid env -i UP=$UP sh -c 'trap "" TERM HUP INT; (cd /; sh -c ` +
		`"echo \$\$ > $UP; while :; do sleep 1; done" &)' < /dev/null > /dev/null 2>&1) &`,
	"a family that multiplies": `(exec 9<>$LIFE; for i in $(seq 40); do
		(setsid sh -c 'for j in 1 2 3; do (trap "" TERM; sleep 300) & done; wait' > /dev/null 2>&1 &); done; : > $UP; sleep 300) &`,
}

// lives reports whether a process holds a pipe open.
func lives(t *testing.T, pipe string) bool {
	t.Helper()
	f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// TestFaultDaemon starts daemons of every kind, in a sandbox and without: they end with the command that started them.
// In a sandbox they also end with a killed apply. Without one, the next apply ends those that carry the mark.
func TestFaultDaemon(t *testing.T) {
	for name, command := range daemons {
		for _, sandbox := range []string{"default", "none"} {
			if sandbox == "default" && executor.CheckSandbox() != nil {
				continue
			}
			t.Run(name+", "+sandbox, func(t *testing.T) {
				t.Parallel()
				w := daemonWorld(t, sandbox, command, "")
				w.must(0, "apply").says(t, "2 done")
				if lives(t, w.path("shared", "life")) {
					t.Error("it outlives its command")
				}
			})
			if sandbox == "none" && strings.Contains(command, "env -i") {
				continue // it carries no mark: docs/security.md
			}
			t.Run(name+", "+sandbox+", killed", func(t *testing.T) {
				t.Parallel()
				w := daemonWorld(t, sandbox, command, "[ -e $LIFE.go ] || sleep 300")
				cmd := w.command("apply")
				check(t, cmd.Start())
				until(t, "the daemon", func() bool { return exists(w.path("shared", "up")) })
				if !lives(t, w.path("shared", "life")) {
					t.Fatal("nobody lives: nothing is tested")
				}
				check(t, cmd.Process.Kill())
				_ = cmd.Wait() // killed
				if sandbox == "default" {
					until(t, "its end", func() bool { return !lives(t, w.path("shared", "life")) })
					return
				}
				if !lives(t, w.path("shared", "life")) {
					t.Fatal("the daemon did not outlive the apply: nothing is tested")
				}
				w.write("shared/life.go", "")
				w.must(0, "apply", "-target", "task.good").says(t, "that an earlier, killed apply had left behind")
				if lives(t, w.path("shared", "life")) {
					t.Error("it outlives the next apply's start")
				}
			})
		}
	}
}

// daemonWorld has a task that starts a daemon and then waits, and a task that succeeds.
func daemonWorld(t *testing.T, sandbox, command, wait string) *world {
	w := newWorld(t, "")
	check(t, os.Mkdir(w.path("shared"), 0o755), syscall.Mkfifo(w.path("shared", "life"), 0o644))
	w.write("benchmarks.hcl", fmt.Sprintf(`
benchgraph { sandbox = %q }
mount "shared" {
  source    = "./shared"
  target    = "/shared"
  read_only = false
  identity  = "1"
}
task "bad" {
  mounts  = [mount.shared]
  env     = { LIFE = %q, UP = %q }
  command = <<-EOT
    %s
    until [ -e $UP ]; do sleep 0.01; done
    %s
  EOT
}
task "good" { command = "true" }
`, sandbox, w.path("shared", "life"), w.path("shared", "up"), command, wait))
	t.Cleanup(func() {
		if lives(t, w.path("shared", "life")) {
			t.Error("the daemon still lives")
		}
	})
	return w
}
