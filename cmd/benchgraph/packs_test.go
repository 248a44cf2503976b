package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/packs"
)

// Each pack of the program may be copied into a project, as docs/packs.md says, failure rules included.
func TestPacksCanBeCopied(t *testing.T) {
	for _, name := range []string{"vllm", "sglang"} {
		dir := t.TempDir()
		if err := os.CopyFS(filepath.Join(dir, "packs"), packs.FS); err != nil {
			t.Fatal(err)
		}
		root := "benchgraph { packs = [\"" + name + "\"] }\n" +
			"commit \"c\" { params = {} }\nvariant \"v\" { baseline = true }\n"
		if err := os.WriteFile(filepath.Join(dir, "benchmarks.hcl"), []byte(root), 0o644); err != nil {
			t.Fatal(err)
		}
		spec, _, diags := hclspec.Load(hclspec.Options{Dir: dir})
		if diags.HasErrors() {
			t.Errorf("%s: %v", name, diags)
		} else if len(spec.Failures) == 0 || len(spec.Fixes) == 0 {
			t.Errorf("%s: %d failure rules and %d fixes were read", name, len(spec.Failures), len(spec.Fixes))
		}
	}
}
