package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/executor/slurm/slurmtest"
)

// A disk of a node is full before a block begins, or becomes full while the block is measured. The candidate is not to
// blame, and the failure names the node. Another node measures the block, and later blocks avoid the node. When there
// is room again, the next apply measures there, too.
func TestADiskOfANodeIsFull(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	fill := "cat /dev/zero >" + filepath.Join(disk, "fill") + " || "
	for name, of := range map[string]struct {
		nodes   int
		command string
	}{
		"before":     {2, "true"},
		"by command": {2, fill + "exit 1"},
		"by worker":  {2, fill + "true; head -c 100000 /dev/zero"},
		"alone":      {1, fill + "exit 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClusteredOf(t, slurmtest.Nodes{Count: of.nodes, Disk: disk}, strings.Replace(measuredFile,
				"    sample $(", "    ! [ $(hostname) = n1 ] || ! [ -e FULL ] || { COMMAND; }\n    sample $(", 1))
			text, err := os.ReadFile(c.path("benchmarks.hcl"))
			check(t, err)
			full := filepath.Join(filepath.Dir(c.hold), "full")
			c.write("benchmarks.hcl", strings.NewReplacer("FULL", full, "COMMAND", of.command).Replace(string(text)))
			check(t, os.WriteFile(full, nil, 0o644))
			n1 := func(command string) { c.Command("srun", "--nodelist=n1", "sh", "-c", command) }
			if of.command == "true" {
				n1(fill + "true")
			}

			o := c.run("apply")
			o.says(t, "a disk of n1 is full: ", "no space left on device", "[infra, disk_full]")
			if of.nodes == 1 {
				o.exits(t, 3)
				o.says(t, "remedy: free some space on n1, or have setup in the executor block name directories with "+
					"more: BENCHGRAPH_CACHE_DIR, now "+disk+"/store, and TMPDIR, now "+disk, "1 infra")
			} else {
				o.exits(t, 0)
				o.says(t, "win")
			}
			if n := strings.Count(o.stderr, "a disk of n1 is full"); of.nodes == 2 && n != 1 {
				t.Errorf("%d blocks met the disk of n1:\n%s", n, o.stderr)
			}
			if c.forget(t); of.nodes == 2 {
				c.Drain("n2")
			}
			n1("rm -rf " + disk + "/*")
			check(t, os.Remove(full))
			c.must(0, "apply").says(t, "win")
		})
	}
}
