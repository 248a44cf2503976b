//go:build linux && faults

package campaign_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/failure"
)

// A campaign of twelve commits goes through a disk that has no room for three of their images.
func TestFaultTwelveImagesOnADiskForTwo(t *testing.T) { throughDisk(t, 12) }

// A step of unknown size finds the disk full: images that are not needed go, and the step runs once more. If that does
// not help, the failure has a remedy.
func TestFaultFullDiskOfTheEngine(t *testing.T) {
	n := onDisk(t, 118)
	n.publish("c00", 24)
	n.publish("c01", 24)
	n.write("benchmarks.hcl", n.commits(2))
	n.apply()
	writes := func(mib int) string {
		return n.commits(1) + fmt.Sprintf(`
image "large" {
  from  = image.c["c00"]
  fixes = [fix.more]
}
fix "more" { run = ["dd if=/dev/urandom of=/more bs=1M count=%d"] }
`, mib)
	}
	n.write("benchmarks.hcl", writes(35))
	if r := n.apply().Result; r.Failed > 0 {
		t.Errorf("%+v", r.Failures)
	}
	if log := n.log("image.large"); !strings.Contains(log, "was removed to make space") {
		t.Error(log)
	}
	n.write("benchmarks.hcl", writes(200))
	r := n.apply().Result
	if len(r.Failures) != 1 {
		t.Fatalf("%+v", r)
	}
	if f := r.Failures[0].Failure; f.Rule != "disk_full" || f.Class != failure.Infra ||
		!strings.Contains(f.Remedy, "larger disk") {
		t.Errorf("%+v", f)
	}
}
