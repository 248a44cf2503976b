package results

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

const knownFile = `
variant "base" { baseline = true }
variant "other" {}
commit "c" {}
benchmark "b" {
  for_each = candidates
  command  = "echo v: 1"
  metrics {
    primary = "v"
    metric "v" {
      match  = "v: ([0-9.]+)"
      better = "higher"
    }
  }
}
compare "all" { of = [benchmark.b] }
`

// The groups, nodes and attempts of a bundle come from strangers: whatever they are, they are judged or refused.
func FuzzKnown(f *testing.F) {
	dir := f.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	write("benchmarks.hcl", knownFile)
	write("result/record.json",
		`{"block": 1, "order": ["other", "base"], "members": {"base": {"start": "2026-01-01T00:00:00Z"}, "other": `+
			`{"start": "2026-01-01T00:00:00Z"}}}`)
	write("result/base/stdout", "v: 1\n")
	write("result/other/stdout", "v: 2\n")
	spec, _, diags := hclspec.Load(hclspec.Options{Dir: dir})
	if diags.HasErrors() {
		f.Fatal(diags)
	}
	f.Add([]byte(`{"nodes": [{"address": "trial.b[\"c#1\"]", "kind": "trial", "action": "cached", "result": {}}],
		"groups": [{"commit": "c", "members": [{"name": "base", "benchmark": "benchmark.b[\"c/base\"]",
			"baseline": true},
			{"name": "other", "benchmark": "benchmark.b[\"c/other\"]"}],
			"blocks": [{"trial": "trial.b[\"c#1\"]", "members": ["base", "other"]}],
			"rule": [{"name": "samples", "value": "7"}]}],
		"compares": [{"compare": "all", "spent": [{"attempt": "a", "took_ns": 5}]}]}`))
	f.Add([]byte(`{"groups": [{"members": [{"name": "x"}], "blocks": [{"trial": "x", "members": ["y"]}]}], ` +
		`"compares": [{"compare": "all"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		fuzzing.Frugal(t, len(text), func() {
			var k Known
			if json.Unmarshal(text, &k) != nil {
				return
			}
			found, err := k.Judge(spec, func(*KnownNode) string { return filepath.Join(dir, "result") })
			if err == nil && len(found) != len(k.Compares) {
				t.Fatalf("%d findings of %d compares", len(found), len(k.Compares))
			}
		})
	})
}

// The raw output of a block may be gone on one class of machines alone.
func TestLostBlocks(t *testing.T) {
	known := func(block *cache.Meta) *Known {
		return &Known{Nodes: []KnownNode{{Address: "trial.b", Result: block},
			{Address: "benchmark.b", Result: &cache.Meta{}}},
			Groups: []KnownGroup{{Blocks: []KnownBlock{{Trial: "trial.b", Members: []string{"m"}}},
				Members: []KnownMember{{Name: "m", Benchmark: "benchmark.b"}}}}}
	}
	whole := known(&cache.Meta{})
	if err := whole.Lost(); err != nil {
		t.Error(err)
	}
	whole.Replicas = []Replica{{}, {Class: "other", Known: known(nil)}}
	want := &LostError{Block: "trial.b", Benchmark: "benchmark.b"}
	if lost, _ := errors.AsType[*LostError](whole.Lost()); lost == nil || *lost != *want ||
		!strings.Contains(whole.Lost().Error(), `class "other"`) {
		t.Error(whole.Lost())
	}
}
