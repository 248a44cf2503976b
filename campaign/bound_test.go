package campaign_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/failure"
)

// A command that writes more than the disk of its block is ended, on the host and in a container, also if its server
// writes. A command that was too quick for that fails, too.
func TestWritesAreBounded(t *testing.T) {
	t.Parallel()
	const fills = `"head -c 16000000 /dev/zero > DIR/much; sleep 1000"`
	s := contained(t, `
task "host" {
  disk    = "4MB"
  command = `+strings.Replace(fills, "DIR", "$OUT", 1)+`
}
task "inside" {
  image   = image.WORD
  disk    = "4MB"
  command = `+strings.Replace(fills, "DIR", "$HOME", 1)+`
}
task "temporary" {
  image   = image.WORD
  disk    = "4MB"
  command = `+strings.Replace(fills, "DIR", "/tmp", 1)+`
}
task "quick" {
  disk    = "4MB"
  command = "head -c 16000000 /dev/zero > $OUT/much"
}
task "prints" {
  disk    = "4MB"
  command = "yes"
}
task "small" {
  image   = image.WORD
  disk    = "100MB"
  command = "head -c 1000000 /dev/zero > $OUT/little"
}
`+beside(strings.Replace(fills, "DIR", "$OUT", 1), `log = "never"`, get, `disk = "4MB"`))
	failed := map[string]bool{}
	for _, f := range s.apply().Result.Failures {
		failed[f.Address] = true
		if f.Failure.Rule != "disk_exceeded" || f.Failure.Class != failure.Permanent ||
			!strings.Contains(f.Failure.Text(), "more than ") {
			t.Errorf("%s: %+v", f.Address, f.Failure)
		}
	}
	if f := s.failureOf("run"); f == nil || f.Rule != "disk_exceeded" || f.Stage != "start" {
		t.Errorf("the server: %+v", f)
	}
	for _, name := range []string{"task.host", "task.inside", "task.temporary", "task.quick", "task.prints"} {
		if !failed[name] {
			t.Errorf("%s did not fail: %v", name, failed)
		}
	}
	if got := s.result("task.small", "little"); len(got) != 1_000_000 {
		t.Errorf("%d bytes", len(got))
	}
}

// The root of a container is read-only, and the failure of a command that tries to write there has a remedy. Temporary
// directories belong to the container, on the disk.
func TestTheRootOfAContainerIsReadOnly(t *testing.T) {
	t.Parallel()
	s := picture(t, map[string]string{"benchmarks.hcl": `
image "WORD" {
  from  = "BASE"
  fixes = [fix.mine]
}
fix "mine" {
  run    = ["mkdir -m 777 /open-WORD"]
  effect = "neutral"
}
mount "kept" {
  source    = "DIR"
  target    = "/open-WORD"
  read_only = false
  identity  = "empty"
}
task "mounted" {
  image   = image.WORD
  mounts  = [mount.kept]
  command = "echo x > /open-WORD/file; cp /open-WORD/file $OUT/"
}
task "fails" {
  image   = image.WORD
  command = "echo x > /open-WORD/file"
}
task "works" {
  image   = image.WORD
  command = <<-EOT
    for d in /tmp /var/tmp /run /dev/shm $HOME; do echo x > $d/file; done
    cat /var/tmp/file /run/file > $OUT/read
    df -P /tmp | tail -n 1 > $OUT/where
  EOT
}
`})
	text, err := os.ReadFile(filepath.Join(s.dir, "benchmarks.hcl"))
	must(t, err)
	s.write("benchmarks.hcl", strings.ReplaceAll(string(text), "DIR", t.TempDir()))
	r := s.apply()
	if len(r.Result.Failures) != 1 {
		t.Fatalf("%+v", r.Result.Failures)
	}
	f := r.Result.Failures[0]
	if f.Address != "task.fails" || !strings.Contains(f.Failure.Remedy, "the root of a container is read-only") ||
		!strings.Contains(f.Failure.Evidence, "Read-only file system") {
		t.Errorf("%s: %+v", f.Address, f.Failure)
	}
	if got := s.result("task.works", "read"); got != "x\nx\n" {
		t.Errorf("%q", got)
	}
	if got := s.result("task.works", "where"); strings.HasPrefix(got, "tmpfs") || strings.HasPrefix(got, "overlay") {
		t.Errorf("its /tmp is %s", got)
	}
	if _, err := os.Stat("/tmp/file"); err == nil {
		t.Error("its /tmp is that of the host")
	}
}
