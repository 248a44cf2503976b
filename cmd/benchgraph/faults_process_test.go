//go:build linux && faults

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// daemons leave a process behind in ever better hiding. It holds life open as long as it lives, which the tests see,
// and makes a file when it is up.
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

// lives says whether somebody holds a pipe open.
func lives(t *testing.T, pipe string) bool {
	t.Helper()
	f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// TestFaultDaemon starts daemons of every kind: they end with the command that started them, and, when the apply was
// killed, before the next one starts anything.
func TestFaultDaemon(t *testing.T) {
	for name, command := range daemons {
		world := func(t *testing.T, wait string) *world {
			w := newWorld(t, fmt.Sprintf(`
task "bad" {
  env     = { LIFE = %q, UP = %q }
  command = <<-EOT
    %s
    until [ -e $UP ]; do sleep 0.01; done
    %s
  EOT
}
task "good" { command = "! [ -e ${var.up} ] || true" }
variable "up" { default = "up" }
`, "$HOME/../life", "$HOME/../up", command, wait))
			text, err := os.ReadFile(w.path("benchmarks.hcl"))
			check(t, err)
			w.write("benchmarks.hcl", strings.ReplaceAll(string(text), "$HOME/..", w.dir))
			check(t, syscall.Mkfifo(w.path("life"), 0o644))
			t.Cleanup(func() {
				if lives(t, w.path("life")) {
					t.Error("the daemon still lives")
				}
			})
			return w
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world(t, "")
			w.must(0, "apply").says(t, "2 done")
			if lives(t, w.path("life")) {
				t.Error("it outlives its command")
			}
		})
		t.Run(name+", killed", func(t *testing.T) {
			t.Parallel()
			w := world(t, "[ -e $LIFE.go ] || sleep 300")
			cmd := w.command("apply")
			check(t, cmd.Start())
			until(t, "the daemon", func() bool { return exists(w.path("up")) && w.rolled("9<>$LIFE") })
			// What is an orphan by now is known to the apply after a second.
			if strings.Contains(command, "setsid env -i") {
				until(t, "the orphan", func() bool {
					pid, err := os.ReadFile(w.path("up"))
					check(t, err)
					return len(pid) > 0 && strings.Contains(w.roll(), "\n+ "+strings.TrimSpace(string(pid))+" ")
				})
			}
			check(t, cmd.Process.Kill())
			_ = cmd.Wait() // killed
			if !lives(t, w.path("life")) {
				t.Fatal("the daemon did not outlive the apply: nothing is tested")
			}
			w.write("life.go", "")
			check(t, os.Remove(w.path("up")))
			w.must(0, "apply", "-target", "task.good").says(t, "that an earlier, killed apply had left behind")
			if lives(t, w.path("life")) {
				t.Error("it outlives the next apply's start")
			}
			if rolls, _ := filepath.Glob(w.path(".benchgraph/processes/*")); len(rolls) > 0 {
				t.Errorf("left: %q", rolls)
			}
		})
	}
}

// rolled reports whether the state knows of a process whose command line has a text.
func (w *world) rolled(text string) bool {
	for _, line := range strings.Split(w.roll(), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "+" {
			if command, err := os.ReadFile("/proc/" + fields[1] + "/cmdline"); err == nil &&
				strings.Contains(string(command), text) {
				return true
			}
		}
	}
	return false
}

// roll is what the state says that runs.
func (w *world) roll() string {
	files, _ := filepath.Glob(w.path(".benchgraph/processes/*"))
	all := ""
	for _, f := range files {
		text, _ := os.ReadFile(f)
		all += string(text)
	}
	return all
}
