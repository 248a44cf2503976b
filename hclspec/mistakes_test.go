package hclspec_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/benchgraph/benchgraph/hclspec"
)

var update = flag.Bool("update", false, "write what is told now into testdata")

// TestMistakes loads every archive of testdata/mistakes and compares the diagnostics with the file "want" in it.
func TestMistakes(t *testing.T) {
	names, err := filepath.Glob("testdata/mistakes/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			src := archive(t, name)
			dir := project(t, src)
			spec, files, diags := hclspec.Load(hclspec.Options{Dir: dir, Version: "0.1.0", Strict: true})
			if diags.HasErrors() != (spec == nil) {
				t.Errorf("spec is nil: %v; diagnostics have errors: %v", spec == nil, diags.HasErrors())
			}
			got := bytes.ReplaceAll([]byte(told(t, files, diags)), []byte(dir), []byte("$DIR"))
			a := txtar.Parse(src)
			for i, f := range a.Files {
				if f.Name != "want" {
					continue
				}
				if *update {
					a.Files[i].Data = got
					if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
						t.Fatal(err)
					}
				} else if diff := cmp.Diff(string(f.Data), string(got)); diff != "" {
					t.Errorf("what is told differs (-want +got):\n%s", diff)
				}
				return
			}
			t.Errorf("there is no file want in the archive, which would say:\n%s", got)
		})
	}
}
