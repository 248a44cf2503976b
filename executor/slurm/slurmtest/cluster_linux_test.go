package slurmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The next test program removes the leftovers of a killed one.
func TestSweep(t *testing.T) {
	Start(t, Nodes{})
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	name := "bg" + digits(gone.Process.Pid, 5) + "zzn1"
	own := "bg" + digits(os.Getpid(), 5) + "zzn1"
	for _, name := range []string{name, own} {
		if err := ip("netns", "add", name); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if _, err := os.Stat("/run/netns/" + name); err == nil {
		t.Error("the namespace of a process that has ended is there")
	}
	if err := ip("netns", "del", own); err != nil {
		t.Error(err)
	}
}

// A job gets its devices and the variables of its node.
func TestCluster(t *testing.T) {
	begin := time.Now()
	c := Start(t, Nodes{Count: 2, GPUs: 4})
	t.Logf("idle after %s", time.Since(begin))
	c.Profile("n2", "WHO=it is n2")
	out := filepath.Join(t.TempDir(), "out")
	c.Command("sbatch", "--wait", "--nodelist=n2", "--gpus=2", "--output="+out, "--wrap",
		`echo $CUDA_VISIBLE_DEVICES; echo "$WHO"; hostname`)
	text, err := os.ReadFile(out)
	if err != nil || !strings.HasPrefix(string(text), "0,1\nit is n2\nn2\n") {
		c.Logs()
		t.Errorf("%v: %s", err, text)
	}
}
