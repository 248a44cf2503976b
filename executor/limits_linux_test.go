package executor_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/executortest"
)

// needLimits skips a test where nothing is enforced. TestInAMachineWithControlGroups runs these tests where all is.
func needLimits(t *testing.T) {
	t.Helper()
	e, err := executor.Enforced()
	if err == nil && (!e.Memory || !e.CPUs || !e.Processes) {
		t.Skipf("only some limits are enforced: %+v", e)
	}
	if err != nil {
		t.Skip(err)
	}
}

// runner runs a script under limits, and returns what it printed.
type runner func(script string, l executor.Limits) (executor.Status, string)

// confined are the ways in which a command with limits can run.
func confined(t *testing.T, each func(t *testing.T, run runner)) {
	needLimits(t)
	for name, sandbox := range map[string]*executor.Sandbox{"on the host": nil, "in a sandbox": {}} {
		t.Run(name, func(t *testing.T) {
			if sandbox != nil {
				needSandbox(t)
			}
			each(t, func(script string, l executor.Limits) (executor.Status, string) {
				cmd := executortest.Shell(t, script)
				cmd.Limits, cmd.Sandbox, cmd.Grace = &l, sandbox, 50*time.Millisecond
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				s, err := executor.Run(t.Context(), executor.NewHost(executor.HostOptions{}), cmd)
				if err != nil {
					t.Fatalf("%v\n%s", err, &out)
				}
				return s, out.String()
			})
		})
	}
}

// A command that uses more memory than it may is ended, with all that it has started, and that is told; one that uses
// less is not.
func TestLimitOfMemory(t *testing.T) {
	confined(t, func(t *testing.T, run runner) {
		const grows = "sleep 1000 & text=$(head -c 60000000 /dev/zero | tr '\\0' x); echo survived ${#text}"
		if s, out := run(grows, executor.Limits{Memory: 32 << 20}); s.OK() || !s.OOM ||
			strings.Contains(out, "survived") {
			t.Errorf("%+v, %q", s, out)
		}
		if s, out := run("echo little", executor.Limits{Memory: 32 << 20}); !s.OK() || s.OOM || out != "little\n" {
			t.Errorf("%+v, %q", s, out)
		}
		if s, out := run("kill -9 $$", executor.Limits{Memory: 32 << 20}); s.OOM || s.Signal != "SIGKILL" {
			t.Errorf("ended by another: %+v, %q", s, out)
		}
	})
}

// A command is in a control group of its own, with its cores and a bound of processes, and cannot change that in a
// sandbox.
func TestLimitOfCores(t *testing.T) {
	confined(t, func(t *testing.T, run runner) {
		const group = "cd /sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup); "
		s, out := run(group+"cat pids.max cpu.max memory.max", executor.Limits{CPUs: 2, Memory: 64 << 20})
		if want := "32768\n200000 100000\n67108864\n"; !s.OK() || out != want {
			t.Errorf("%+v, %q", s, out)
		}
		if e, err := executor.Enforced(); err == nil && e.Cores {
			s, out := run("grep Cpus_allowed_list /proc/self/status", executor.Limits{Cores: "0", CPUs: 1})
			if !s.OK() || out != "Cpus_allowed_list:\t0\n" {
				t.Errorf("%+v, %q", s, out)
			}
		}
		if strings.HasSuffix(t.Name(), "in_a_sandbox") {
			if s, _ := run(group+"echo max >pids.max", executor.Limits{}); s.OK() {
				t.Error("the command raised its limit")
			}
		}
	})
}

// Whatever a command leaves, however it hides, ends with its control group, and the groups are gone.
func TestLimitsEndWhatIsLeft(t *testing.T) {
	confined(t, func(t *testing.T, run runner) {
		length := "1000" + time.Now().Format("05.000000")
		if s, out := run("(env -i setsid sleep "+length+" &) ; exit 0", executor.Limits{}); !s.OK() {
			t.Errorf("%+v, %q", s, out)
		}
		dirs, err := os.ReadDir("/proc")
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dirs {
			if text, _ := os.ReadFile("/proc/" + d.Name() + "/cmdline"); strings.Contains(string(text), length) {
				t.Errorf("process %s is left", d.Name())
			}
		}
	})
	if groups, _ := os.ReadDir("/sys/fs/cgroup"); os.Getenv(inMachine) != "" {
		for _, g := range groups {
			if strings.HasPrefix(g.Name(), "benchgraph-") {
				t.Errorf("the group %s is left", g.Name())
			}
		}
	}
}
