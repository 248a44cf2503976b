package hclspec_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/benchgraph/benchgraph/hclspec"
)

// known are packs of a program.
var known = fstest.MapFS{
	"engine/fixes.hcl": {Data: []byte(`fix "one" { run = ["known"] }
fix "two" {
  run   = ["${local.engine_word}"]
  after = [fix.one]
}
locals {
  engine_word  = "known"
  engine_other = local.engine_word
}
`)},
	"engine/failures.hcl": {Data: []byte(`failure "known" {
  match = "x"
  class = "permanent"
}
`)},
	"broken/fixes.hcl": {Data: []byte("fix \"bad\" { run = [local.nothing] }\n")},
}

func loadWithPacks(t *testing.T, src string) (*hclspec.Spec, string) {
	t.Helper()
	spec, files, diags := hclspec.Load(hclspec.Options{Dir: project(t, []byte(src)), Version: "0.1.0", Packs: known})
	return spec, told(t, files, diags)
}

// The blocks of a pack are part of the file. Blocks that the project declares itself replace them.
func TestAPackIsPartOfTheFile(t *testing.T) {
	for name, c := range map[string]struct{ src, one, two string }{
		"as it is": {"-- benchmarks.hcl --\nbenchgraph { packs = [\"engine\"] }\n", "known", "known"},
		"a block of one's own": {"-- benchmarks.hcl --\nbenchgraph { packs = [\"engine\"] }\nfix \"one\" { run = " +
			"[\"own\"] }\n", "own", "known"},
		"a value of one's own": {"-- benchmarks.hcl --\nbenchgraph { packs = [\"engine\"] }\nlocals { engine_word = " +
			"\"own\" }\n", "known", "own"},
		"a directory of one's own": {"-- benchmarks.hcl --\nbenchgraph { packs = [\"engine\"] }\n-- " +
			"packs/engine/a.hcl --\nfix \"one\" { run = [\"dir\"] }\n" +
			"-- packs/engine/b.hcl --\nfix \"two\" { run = [\"dir2\"] }\n", "dir", "dir2"},
		"a pack of one's own": {"-- benchmarks.hcl --\nbenchgraph { packs = [\"mine\"] }\n-- packs/mine/a.hcl " +
			"--\nfix \"one\" { run = [\"a\"] }\nfix \"two\" { run = [\"b\"] }\n", "a", "b"},
		"included as well": {"-- benchmarks.hcl --\nbenchgraph {\n  include = [\"packs/**/*.hcl\"]\n  packs = " +
			"[\"mine\"]\n}\n-- packs/mine/a.hcl --\n" +
			"fix \"one\" { run = [\"a\"] }\nfix \"two\" { run = [\"b\"] }\n", "a", "b"},
	} {
		spec, text := loadWithPacks(t, c.src)
		if spec == nil || text != "" {
			t.Errorf("%s: %s", name, text)
			continue
		}
		runs := map[string]string{}
		for _, f := range spec.Fixes {
			runs[f.Address.Name] = f.Cases[""].Run[0].Expand(hclspec.Address.String)
		}
		if runs["one"] != c.one || runs["two"] != c.two || len(spec.Failures) > 0 {
			t.Errorf("%s: %v, %d failures", name, runs, len(spec.Failures))
		}
		if spec.Files[0] != "benchmarks.hcl" || strings.Contains(strings.Join(spec.Files, " "), "pack:") {
			t.Errorf("%s: files %v", name, spec.Files)
		}
	}
}

// Mistakes name their place, also in a file of the program.
func TestMistakesWithPacks(t *testing.T) {
	for src, want := range map[string]string{
		`benchgraph { packs = ["engin"] }`:            `Did you mean "engine"?`,
		`benchgraph { packs = ["../engine"] }`:        `There is no pack "../engine"`,
		`benchgraph { packs = ["engine", "engine"] }`: `named twice`,
		`benchgraph { packs = ["broken"] }`:           "on pack:broken/fixes.hcl line 1",
		`benchgraph { packs = ["engine", "other"] }`: "fix.one is declared already at " +
			"pack:engine/fixes.hcl:1",
		`benchgraph { packs = [local.names] }`:                               "",
		"benchgraph { packs = [\"engine\"] }\nlocals { x = fix.onee }\n":     `Did you mean "one"?`,
		"benchgraph { packs = [\"engine\"] }\nlocals { x = local.engine_x }": "engine_word",
	} {
		spec, text := loadWithPacks(t,
			"-- benchmarks.hcl --\n"+src+"\n-- packs/other/a.hcl --\nfix \"one\" { run = [\"x\"] }\n")
		if spec != nil || !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("%s: %s", src, text)
		}
	}
}
