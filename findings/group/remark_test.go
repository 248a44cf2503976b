package group

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics"
)

// A benchmark is told once how much room its samples take, if it is much.
func TestSamplesThatTakeMuchRoom(t *testing.T) {
	b := &hclspec.Benchmark{Design: hclspec.Design{Samples: 4, Max: 9, BurnIn: 1}}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "trace"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	primary := metrics.Sample{Metric: "rate", Unit: "req/s"}
	if texts := Remarks(b, primary, dir, 2); texts != nil {
		t.Errorf("%q", texts)
	}
	if err := os.Truncate(filepath.Join(dir, "trace"), 100<<20); err != nil {
		t.Fatal(err)
	}
	texts := Remarks(b, primary, dir, 2)
	if len(texts) != 1 || !strings.Contains(texts[0],
		"keeps 100MiB of output, and the 20 samples of up to 10 blocks keep up to 1.953GiB") {
		t.Errorf("%q", texts)
	}
	if texts := Remarks(b, metrics.Sample{Metric: "unknown"}, dir, 1); len(texts) != 1 ||
		!strings.Contains(texts[0], "no verdict") {
		t.Errorf("%q", texts)
	}
}
