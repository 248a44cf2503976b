package applylock

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/executor/family"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// TestMain is also the other process of these tests: it takes the lock, prints that, and waits to be ended.
func TestMain(m *testing.M) {
	if path := os.Getenv("APPLYLOCK_TEST_HOLD"); path != "" {
		if _, err := Acquire(path, Owner{User: "other", Command: "benchgraph apply"}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		select {}
	}
	os.Exit(m.Run())
}

// holder starts another process that holds the lock.
func holder(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "APPLYLOCK_TEST_HOLD="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "held\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return cmd
}

func TestOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "apply.lock")
	l, err := Acquire(path, Owner{User: "me", Command: "benchgraph apply -target x"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Acquire(path, Owner{User: "me"})
	var held *HeldError
	if !errors.As(err, &held) {
		t.Fatalf("a second Acquire says %v, want a *HeldError", err)
	}
	if held.Owner.PID != os.Getpid() || held.Owner.Command != "benchgraph apply -target x" ||
		held.Owner.Since.IsZero() {
		t.Errorf("owner = %+v", held.Owner)
	}
	for _, want := range []string{fmt.Sprint(os.Getpid()), "of me on", "last heard of 0s ago",
		"benchgraph apply -target x"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if text := held.Remedy(); !strings.Contains(text, "or end it:") {
		t.Errorf("the remedy for a process of this host is %q", text)
	}
	held.Owner.Host = "container"
	if text := held.Remedy(); !strings.Contains(text, "its lock is free 1m15s after it was last heard of") {
		t.Errorf("the remedy for a process of another container is %q", text)
	}
	if o, ok := Holder(path); !ok || o.PID != os.Getpid() {
		t.Errorf("Holder = %+v, %v", o, ok)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if o, ok := Holder(path); ok {
		t.Errorf("Holder after Release = %+v", o)
	}
	again, err := Acquire(path, Owner{})
	if err != nil {
		t.Fatal(err)
	}
	again.Release()
}

func TestAKilledOwnersLockIsFreeAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "apply.lock")
	cmd := holder(t, path)
	var held *HeldError
	if _, err := Acquire(path, Owner{}); !errors.As(err, &held) || held.Owner.PID != cmd.Process.Pid ||
		held.Owner.User != "other" {
		t.Fatalf("while it lives: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if o, ok := Holder(path); ok {
		t.Errorf("Holder names the dead process: %+v", o)
	}
	l, err := Acquire(path, Owner{})
	if err != nil {
		t.Fatalf("after it was killed: %v", err)
	}
	l.Release()
}

func TestRecordsOfOthers(t *testing.T) {
	host, _ := os.Hostname()
	mine := family.This().Born
	dead := 1 << 30 // no process has such a number
	const day = 24 * time.Hour
	tests := []struct {
		name   string
		other  Owner
		age    time.Duration // of the last heartbeat, by this host's clock
		renews bool
		free   bool
	}{
		{"another host, alive", Owner{PID: 7, Host: "far", Flock: true}, 20 * time.Second, true, false},
		{"another host, alive, with a late clock", Owner{PID: 7, Host: "far", Flock: true}, day, true, false},
		{"another host, alive, with an early clock", Owner{PID: 7, Host: "far", Flock: true}, -day, true, false},
		{"another host, silent", Owner{PID: 7, Host: "far", Flock: true}, 2 * time.Minute, false, true},
		{"another host, silent, with an early clock", Owner{PID: 7, Host: "far", Flock: true}, -day, false, true},
		{"this host, had flock, record left over", Owner{PID: os.Getpid(), Born: mine, Host: host, Flock: true}, 0,
			false, true},
		{"this host, no flock, alive", Owner{PID: os.Getpid(), Born: mine, Host: host}, 0, false, false},
		{"this host, no flock, dead", Owner{PID: dead, Host: host}, 0, false, true},
		{"another container, had flock", Owner{PID: 1, Host: "container", Boot: family.Boot(), Flock: true}, 0, false,
			family.Boot() != ""},
		{"another container, no flock, its number is ours", Owner{PID: os.Getpid(), Born: mine + 1, Host: "container",
			Boot: family.Boot()}, 0, true, false},
		{"another machine of this name, alive", Owner{PID: dead, Host: host, Boot: "of another", Flock: true}, 0, true,
			family.Boot() == ""},
		{"this host before it was started again", Owner{PID: dead, Host: host, Boot: "before", Flock: true},
			2 * time.Minute, false, true},
		{"this host, no flock, the number is another's now", Owner{PID: os.Getpid(), Born: mine + 1, Host: host}, 0,
			false, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "apply.lock")
			synctest.Test(t, func(t *testing.T) {
				test.other.Beat = time.Now().Add(-test.age)
				put := func() {
					text, _ := json.Marshal(test.other)
					// in place, and never shorter: half a record is none
					f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := f.Write(text); err != nil {
						t.Fatal(err)
					}
					f.Close()
				}
				put()
				if test.renews {
					time.AfterFunc(beat, func() { test.other.Beat = test.other.Beat.Add(beat); put() })
				}
				l, err := Acquire(path, Owner{})
				var held *HeldError
				switch {
				case test.free && err != nil:
					t.Errorf("want the lock, got %v", err)
				case !test.free && !errors.As(err, &held):
					t.Errorf("want a *HeldError, got %v", err)
				}
				if l != nil {
					l.Release()
				}
			})
		})
	}
}

func TestAFileThatIsNoRecordIsNoOwner(t *testing.T) {
	for _, text := range []string{"", "{", `{"pid":-4}`, strings.Repeat("x", 3*size), `[]`} {
		path := filepath.Join(t.TempDir(), "apply.lock")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		l, err := Acquire(path, Owner{Command: strings.Repeat("ü", 3*size)})
		if err != nil {
			t.Fatalf("%.10q: %v", text, err)
		}
		l.Release()
	}
}

func TestALockThatSomebodyRemovedIsNotRenewed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "apply.lock")
	l, err := Acquire(path, Owner{})
	if err != nil {
		t.Fatal(err)
	}
	if !fs.IsAt(l.file, path) {
		t.Fatal("the lock's own file is not recognised")
	}
	os.Remove(path)
	if fs.IsAt(l.file, path) {
		t.Error("a removed file passes for the lock")
	}
	other, err := Acquire(path, Owner{})
	if err != nil {
		t.Fatal(err)
	}
	if fs.IsAt(l.file, path) {
		t.Error("a new file passes for the lock")
	}
	other.Release()
	l.Release()
}
