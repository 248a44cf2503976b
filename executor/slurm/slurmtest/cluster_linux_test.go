package slurmtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
