//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ending has a finished node, and a node that reports its start, has a child, and then takes long. The variable says
// how this node reacts when it is asked to end.
const ending = `
benchgraph { sandbox = "none" }
variable "on_term" { default = "exit 1" }
variable "for" { default = "60" }
task "quick" { command = "true" }
task "slow" {
  needs   = [task.quick]
  command = "trap '${var.on_term}' TERM; sleep ${var.for} & echo $! > $HOME/../child; wait; wait"
}
`

// under starts an apply, and waits until the slow node runs.
func (w *world) under(cmd *exec.Cmd) (end func() outcome) {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	until(w.t, "the slow node", func() bool {
		text, _ := os.ReadFile(w.path("child"))
		return strings.HasSuffix(string(text), "\n")
	})
	return func() outcome {
		_ = cmd.Wait() // the state tells it
		return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), cmd.ProcessState}
	}
}

// goesOn makes sure that nothing of an apply is left, and that the next one comes to the end.
func (w *world) goesOn(pid int) {
	w.t.Helper()
	if left := marked(map[int]bool{pid: true}); len(left) > 0 {
		w.t.Errorf("still running: %q", left)
	}
	w.verify()
	o := w.must(0, "apply", "-var", "for=0")
	o.says(w.t, "1 done, 1 cached")
	o.saysNot(w.t, "had left behind")
}

// heedHangups makes processes of the test heed SIGHUP, even if the tests were started with SIGHUP ignored (nohup):
// processes inherit an ignored signal, but not a signal with a handler.
func heedHangups(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(signals) })
}

// TestFaultInterrupt interrupts an apply in every way in which people and machines do that.
func TestFaultInterrupt(t *testing.T) {
	heedHangups(t)
	for _, c := range []struct {
		name    string
		onTerm  string
		signals []syscall.Signal
		code    int // -1: by the last signal
		says    string
	}{
		{"Ctrl-C", "exit 1", []syscall.Signal{syscall.SIGINT}, 130,
			"What is finished is kept; benchgraph apply goes on from there."},
		{"SIGTERM", "exit 1", []syscall.Signal{syscall.SIGTERM}, 130, "What is finished is kept"},
		{"hangup", "exit 1", []syscall.Signal{syscall.SIGHUP}, 130, "What is finished is kept"},
		{"hangup twice", "sleep 0.3; exit 1", []syscall.Signal{syscall.SIGHUP, syscall.SIGHUP}, 130,
			"What is finished is kept"},
		{"Ctrl-C twice", "", []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, -1, ""},
		{"Ctrl-C, then SIGTERM", "", []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, -1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ending)
			cmd := w.command("apply", "-var", "on_term="+c.onTerm)
			end := w.under(cmd)
			for _, s := range c.signals {
				check(t, cmd.Process.Signal(s))
				time.Sleep(50 * time.Millisecond) // equal signals that wait are one
			}
			o := end()
			o.exits(t, c.code)
			o.says(t, c.says)
			if status := o.state.Sys().(syscall.WaitStatus); c.code == -1 &&
				status.Signal() != c.signals[len(c.signals)-1] {
				t.Errorf("ended by %v", status.Signal())
			}
			w.goesOn(cmd.Process.Pid)
		})
	}
	t.Run("SIGINT twice of one that a shell started in the background", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, ending)
		cmd := w.command()
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "trap '' INT; exec benchgraph apply -var on_term="}
		end := w.under(cmd)
		for range 2 {
			check(t, cmd.Process.Signal(syscall.SIGINT))
			time.Sleep(50 * time.Millisecond)
		}
		end().exits(t, 130)
		w.goesOn(cmd.Process.Pid)
	})
	t.Run("hangup of one that was told not to mind", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, ending)
		cmd := w.command()
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "trap '' HUP; exec benchgraph apply -var for=1"}
		end := w.under(cmd)
		check(t, cmd.Process.Signal(syscall.SIGHUP))
		end().exits(t, 0)
	})
}

// TestFaultReaderGone takes away the reader of the output: running nodes go on, and the loss is reported at the end.
func TestFaultReaderGone(t *testing.T) {
	for _, args := range [][]string{{"apply", "-var", "for=0.2"}, {"apply", "-json", "-var", "for=0.2"}} {
		t.Run(strings.Join(args[:len(args)-2], " "), func(t *testing.T) {
			t.Parallel()
			for _, full := range []bool{false, true} {
				w := newWorld(t, ending)
				cmd := w.command(args...)
				var said bytes.Buffer
				if full {
					out, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
					check(t, err)
					defer out.Close()
					cmd.Stdout, cmd.Stderr = out, &said
				} else {
					r, out, err := os.Pipe()
					check(t, err, r.Close())
					defer out.Close()
					cmd.Stdout, cmd.Stderr = out, out
				}
				o := w.finish(cmd)
				o.exits(t, 1)
				if full && !strings.Contains(said.String(), "no space left on device") {
					t.Errorf("it says %q", said.String())
				}
				if full && strings.Contains(said.String(), "cache gc") {
					t.Errorf("it blames the store: %q", said.String())
				}
				w.must(0, "apply", "-var", "for=0.2").says(t, "2 cached")
			}
		})
	}
	t.Run("what is only shown", func(t *testing.T) {
		t.Parallel()
		w := stored(t)
		for _, args := range [][]string{{"plan"}, {"plan", "-json"}, {"status"}, {"cache", "ls"}, {"show", "task.made"},
			{"version"}, {"help"}, {"logs", "task.made"}, {"graph"}} {
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			check(t, err)
			cmd := w.command(args...)
			cmd.Stdout = full
			o := w.finish(cmd)
			full.Close()
			if o.code != 1 || !strings.Contains(o.stderr, "no space left on device") {
				t.Errorf("%q into a full file: exit code %d, %q", args, o.code, o.stderr)
			}
		}
	})
	t.Run("streams closed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, ending)
		cmd := w.command()
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "exec benchgraph apply -var for=0 <&- >&- 2>&-"}
		w.finish(cmd).exits(t, 0)
		w.must(0, "apply", "-var", "for=0").says(t, "2 cached")
	})
}

// TestFaultTerminalClosed closes the terminal in which an apply runs.
func TestFaultTerminalClosed(t *testing.T) {
	heedHangups(t)
	w := newWorld(t, ending)
	cmd := w.command("apply")
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Skip("no pseudo-terminal:", err)
	}
	number, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPTN)
	check(t, err, unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0),
		syscall.SetNonblock(int(terminal.Fd()), true))
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	check(t, err)
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	read := make(chan struct{})
	go func() { defer close(read); io.Copy(io.Discard, terminal) }()
	end := w.under(cmd)
	check(t, tty.Close(), terminal.Close())
	end().exits(t, 130)
	<-read
	w.goesOn(cmd.Process.Pid)
}
