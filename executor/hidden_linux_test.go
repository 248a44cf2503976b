package executor_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/benchgraph/benchgraph/executor"
)

const hiddenEnv = "EXECUTOR_TEST_HIDDEN"

// lookFor is the process of another user, which says of a process whether it is gone.
func lookFor(text string) {
	pid, err := strconv.Atoi(text)
	if err != nil || syscall.Setgroups(nil) != nil || syscall.Setresgid(65534, 65534, 65534) != nil ||
		syscall.Setresuid(65534, 65534, 65534) != nil {
		os.Exit(1)
	}
	fmt.Println(executor.IsGone(pid, 1))
	os.Exit(0)
}

// Where /proc hides what others run, their processes count neither as gone nor as known: their containers stay.
func TestAProcessThatIsHiddenIsNotGone(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a /proc that hides")
	}
	look := func(pid string) string {
		t.Helper()
		cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "sh", "-c",
			`mount -t proc -o hidepid=2 proc /proc && "$0"; exit $?`, os.Args[0]) // the shell stays process 1
		cmd.Env = append(os.Environ(), hiddenEnv+"="+pid)
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "ermission denied") || strings.Contains(string(out), "not permitted") {
			t.Skipf("no /proc that hides can be mounted: %s", out)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if said := look("1"); said != "true false" {
		t.Errorf("of a process that is hidden: %q", said)
	}
	if said := look("4000000"); said != "true true" {
		t.Errorf("of none: %q", said)
	}
}
