//go:build linux && faults

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// filling has a node that fills the disk on demand, except for some bytes, and nodes that come after it. One of these
// prints more than the disk holds, and one makes more files than it holds.
const filling = `
benchgraph { sandbox = "none" }
variable "small" {}
task "first" { command = "echo 1 > $OUT/n" }
task "filler" {
  data    = { "n" = task.first }
  command = "cp n $OUT/n; if [ -e ${var.small}/leave ]; then cat /dev/zero > ${var.small}/fill || true; truncate -s -$(cat ${var.small}/leave) ${var.small}/fill; fi"
}
task "last" {
  for_each = toset(["1", "2", "3", "4"])
  data     = { "n" = task.filler }
  command  = "cat n n > $OUT/n; head -c 20000 /dev/zero > $OUT/zeros; echo ${each.key}"
}
task "all" {
  data    = { for name, part in task.last : "${name}/" => part }
  command = "cat */n > $OUT/all; if [ -e ${var.small}/print ]; then head -c 9000000 /dev/zero | tr '\\0' x; fi; if [ -e ${var.small}/write ]; then mkdir $OUT/s; head -c 9000000 /dev/zero > $OUT/s/large; fi"
}
`

// smallDisk mounts a file system of 4 MiB.
func smallDisk(t *testing.T) string {
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=4m,mode=0755"); err != nil {
		t.Skip("a small file system cannot be mounted here:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestFaultDiskFull fills the disk with the store, the state, or both, during an apply: the failure blames this machine
// and has a remedy, nothing is corrupt, and once there is space the next apply comes to the end.
func TestFaultDiskFull(t *testing.T) {
	for _, where := range []string{"STATE_DIR", "CACHE_DIR"} {
		for _, leave := range []string{"0", "4K", "8K", "12K", "20K", "32K", "48K", "64K", "128K"} {
			t.Run(where+" "+leave+" left", func(t *testing.T) { t.Parallel(); fillDisk(t, where, "leave", leave) })
		}
		t.Run(where+" by what is printed", func(t *testing.T) { t.Parallel(); fillDisk(t, where, "print", "") })
		t.Run(where+" by what is made", func(t *testing.T) { t.Parallel(); fillDisk(t, where, "write", "") })
	}
}

// TestFaultDiskFullJournal puts only the journal on a full disk. The apply ends, since a forgotten record may have cost
// hours.
func TestFaultDiskFullJournal(t *testing.T) {
	small := smallDisk(t)
	w := newWorld(t, made)
	w.write("in", "input 1\n")
	w.write(".benchgraph/journal", "")
	page := bytes.Repeat([]byte("\n"), os.Getpagesize()) // empty lines: the first record needs another page
	check(t, os.WriteFile(small+"/journal", page, 0o644),
		syscall.Mount(small+"/journal", w.path(".benchgraph/journal"), "", syscall.MS_BIND, ""))
	t.Cleanup(func() { check(t, syscall.Unmount(w.path(".benchgraph/journal"), syscall.MNT_DETACH)) })
	cmd := exec.Command("sh", "-c", "cat /dev/zero > fill")
	cmd.Dir = small
	_ = cmd.Run() // it ends when the disk is full
	w.must(1, "apply").says(t, "Error: journal: ", "no space left on device", "Free some space")
	check(t, os.Remove(small+"/fill"))
	w.verify()
	w.must(0, "apply").says(t, "1 done, 1 cached")
}

func fillDisk(t *testing.T, where, how, leave string) {
	t.Helper()
	small := smallDisk(t)
	w := newWorld(t, filling)
	w.env = append(w.env, "BENCHGRAPH_"+where+"="+small+"/bg", "BENCHGRAPH_VAR_small="+small)
	check(t, os.WriteFile(small+"/"+how, []byte(leave), 0o644))
	o := w.run("apply")
	t.Log(o.code, o.stdout, o.stderr)
	if o.code != 0 || how != "leave" { // what is left may suffice
		if o.code != 1 && o.code != 3 {
			t.Errorf("exit code %d", o.code)
		}
		said := strings.ToLower(o.stdout + o.stderr)
		for _, want := range []string{"no space left on device", "free some space"} {
			if !strings.Contains(said, want) {
				t.Errorf("nothing says %q", want)
			}
		}
		if strings.Contains(said, "permanent") || strings.Contains(said, "invalid") {
			t.Error("the failure is not infra")
		}
	}
	check(t, os.RemoveAll(small+"/fill"), os.Remove(small+"/"+how))
	w.verify()
	w.must(0, "apply")
	if _, file := w.result("task.all"); file("all") != strings.Repeat("1\n", 8) {
		t.Errorf("all is %q", file("all"))
	}
	w.must(0, "apply").says(t, "0 done, 7 cached")
}

// TestFaultDiskFullSource has a full disk before a repository is fetched, or before a commit's files are written.
func TestFaultDiskFullSource(t *testing.T) {
	for _, leave := range []string{"256K", "1M", "1500K", "2M"} {
		t.Run(leave+" left", func(t *testing.T) {
			t.Parallel()
			small := smallDisk(t)
			w := newWorld(t, "")
			w.write("benchmarks.hcl", fmt.Sprintf(`
repo "prog" { url = "file://%s" }
commit "a" {
  repo = repo.prog
  rev  = "main"
}
variant "baseline" { baseline = true }
task "size" {
  for_each = candidates
  data     = { "src/" = each.source }
  command  = "wc -c <src/random"
}
`, w.path("prog")))
			script := `git init -q -b main prog; cd prog; head -c 1000000 /dev/urandom >random; git add -A; git ` +
				`commit -q -m first`
			cmd := exec.Command("sh", "-euc", script)
			cmd.Dir, cmd.Env = w.dir, w.env
			out, err := cmd.CombinedOutput()
			check(t, err)
			w.env = append(w.env, "BENCHGRAPH_STATE_DIR="+small+"/bg")
			fill := exec.Command("sh", "-euc", "cat /dev/zero >fill || true; truncate -s -"+leave+" fill")
			fill.Dir = small
			check(t, fill.Run())
			o := w.run("apply")
			t.Log(string(out), o.code, o.stdout, o.stderr)
			said := strings.ToLower(o.stdout + o.stderr)
			if o.code != 1 && o.code != 3 || !strings.Contains(said, "no space left on device") ||
				!strings.Contains(said, "free some space") {
				t.Errorf("exit code %d, and this is said: %s", o.code, said)
			}
			if strings.Contains(said, "permanent") || strings.Contains(said, "invalid") {
				t.Error("the failure is not infra")
			}
			check(t, os.Remove(small+"/fill"))
			w.must(0, "apply")
			w.verify()
		})
	}
}

// TestFaultDiskFullProject fills the disk with the project: the lock file and the report are the old ones or the new
// ones, never half of one.
func TestFaultDiskFullProject(t *testing.T) {
	small := smallDisk(t)
	w := newWorld(t, "")
	state := w.path(".benchgraph")
	script := `git init -q -b main prog; cd prog; echo 100 > value; git add -A; git commit -q -m first
echo 120 > value; git commit -q -a -m second; git tag a`
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir, cmd.Env = w.dir, w.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	prog := w.path("prog")
	w.dir = small
	w.env = append(w.env, "BENCHGRAPH_STATE_DIR="+state)
	w.write("benchmarks.hcl", fmt.Sprintf(`
repo "prog" { path = %q }
commit "a" { repo = repo.prog }
variant "baseline" {
  baseline = true
  rev      = each.commit.parent
}
variant "human" { rev = each.commit.rev }
benchmark "b" {
  for_each = candidates
  data     = { "src/" = each.source }
  command  = "echo speed $(cat src/value)"
  design { samples = 4 }
  metrics {
    primary = "speed"
    metric "speed" {
      match  = "speed ([0-9.]+)"
      better = "higher"
    }
  }
}
compare "b" { of = [benchmark.b] }
report "b" {
  of      = [compare.b]
  formats = ["markdown", "json"]
}
`, prog))
	fill := func(leave int64) {
		cmd := exec.Command("sh", "-c", "cat /dev/zero > fill")
		cmd.Dir = small
		_ = cmd.Run() // it ends when the disk is full
		info, err := os.Stat(small + "/fill")
		check(t, err, os.Truncate(small+"/fill", info.Size()-leave))
	}
	fill(0)
	o := w.must(1, "apply")
	o.says(t, "lock file", "no space left on device", "Free some space")
	if exists(w.path("benchgraph.lock.hcl")) {
		t.Error("there is a lock file")
	}
	check(t, os.Remove(small+"/fill"))
	fill(8 << 10) // enough for the lock file
	o = w.must(1, "apply")
	o.says(t, "report", "no space left on device", "Free some space")
	check(t, os.Remove(small+"/fill"))
	if left, _ := filepath.Glob(w.path("report", ".*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	w.must(0, "apply").says(t, "0 done")
	text, err := os.ReadFile(w.path("report", "report.md"))
	check(t, err)
	if !strings.Contains(string(text), "human") {
		t.Errorf("the report is %q", text)
	}
}
