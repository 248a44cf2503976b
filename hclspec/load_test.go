package hclspec_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/benchgraph/benchgraph/hclspec"
)

// project writes the files of a txtar archive into a directory of its own.
func project(t testing.TB, archive []byte) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse(archive).Files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// told is the text of diagnostics as people see it.
func told(t testing.TB, files map[string]*hcl.File, diags hcl.Diagnostics) string {
	t.Helper()
	var out bytes.Buffer
	if err := hcl.NewDiagnosticTextWriter(&out, files, 100, false).WriteDiagnostics(diags); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWhole(t *testing.T) {
	spec := load(t, archive(t, "testdata/whole.txtar"))
	out, _ := json.MarshalIndent(spec, "", " ")
	t.Logf("%s", out)
}

func archive(t testing.TB, name string) []byte {
	t.Helper()
	src, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// load reads a project that has no mistakes.
func load(t testing.TB, archive []byte) *hclspec.Spec {
	t.Helper()
	spec, files, diags := hclspec.Load(hclspec.Options{Dir: project(t, archive), Version: "0.1.0"})
	if diags.HasErrors() {
		t.Fatal(told(t, files, diags))
	}
	for _, d := range diags {
		t.Log(d)
	}
	return spec
}
