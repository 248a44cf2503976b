package standstill

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestMain is also the process of these tests that is stopped: it watches until its standard input ends.
func TestMain(m *testing.M) {
	if os.Getenv("STANDSTILL_TEST") != "" {
		w := Begin(func() {})
		os.Stdout.WriteString("begun\n")
		os.Stdin.Read(make([]byte, 1))
		os.Stdout.WriteString(w.Stop() + "\n")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestStood(t *testing.T) {
	const second = time.Second
	threads := func(ready ...time.Duration) map[int]time.Duration {
		all := map[int]time.Duration{}
		for i, r := range ready {
			all[i+1] = r
		}
		return all
	}
	idle := threads(5*second, 0)
	for name, test := range map[string]struct {
		gap, slept    time.Duration
		took          time.Duration // for the first look
		before, after map[int]time.Duration
		want          time.Duration
	}{
		"a tick in time":                {second / 2, 0, 0, idle, idle, 0},
		"stopped":                       {5 * second, 0, 0, idle, idle, 9 * second / 2},
		"waited for a core":             {5 * second, 0, 0, threads(0, 0), threads(0, 9*second/2), 0},
		"was busy with a new thread":    {5 * second, 0, 0, threads(0), threads(0, 9*second/2), 0},
		"many were busy, then stopped":  {5 * second, 0, 0, threads(0, 0), threads(second, second), 7 * second / 2},
		"suspended":                     {second / 2, 60 * second, 0, threads(0), threads(0), 60 * second},
		"late, nothing is counted":      {5 * second, 0, 0, nil, nil, 0},
		"too late for a busy machine":   {15 * second, 0, 0, nil, nil, 29 * second / 2},
		"suspended, nothing is counted": {second / 2, 60 * second, 0, nil, nil, 60 * second},
		"waited while looking":          {5 * second / 2, 0, 2 * second, idle, idle, 0},
		"looked, then stopped":          {7 * second, 0, 2 * second, idle, idle, 9 * second / 2},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			first := look{now, test.took, second, test.before}
			got := stood(first, look{now.Add(test.gap), 0, second + test.slept, test.after}, every)
			if got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestAStopIsNoticed(t *testing.T) {
	for name, test := range map[string]struct {
		stop time.Duration
		want string
	}{
		"stopped":     {2500 * time.Millisecond, "stood still for"},
		"not stopped": {0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "STANDSTILL_TEST=1")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line := make([]byte, 200)
			if n, err := out.Read(line); err != nil || string(line[:n]) != "begun\n" {
				t.Fatalf("%q, %v", line[:n], err)
			}
			if test.stop > 0 {
				cmd.Process.Signal(syscall.SIGSTOP)
				time.Sleep(test.stop)
				cmd.Process.Signal(syscall.SIGCONT)
			}
			time.Sleep(100 * time.Millisecond)
			in.Close()
			n, _ := out.Read(line)
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			if said := strings.TrimSpace(string(line[:n])); !strings.Contains(said, test.want) ||
				(said == "") != (test.want == "") {
				t.Errorf("it says %q, want %q", said, test.want)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	late := errors.New("late")
	for _, after := range []time.Duration{0, 10 * time.Millisecond, 700 * time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			ctx, cancel := Timeout(t.Context(), after, late)
			defer cancel()
			<-ctx.Done()
			if took := time.Since(begun); took != after || context.Cause(ctx) != late {
				t.Errorf("%v after %s, want %s", context.Cause(ctx), took, after)
			}
		})
	}
}
