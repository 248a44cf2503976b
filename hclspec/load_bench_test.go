package hclspec_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/hclspec"
)

func BenchmarkLoadTasks(b *testing.B) {
	dir := b.TempDir()
	var src strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&src, "task \"t%d\" {\n  inputs  = [\"in/%d.txt\"]\n  command = \"cat in/%d.txt > $OUT/x\"\n  outputs = [\"x\"]\n}\n", i, i, i)
		write(b, filepath.Join(dir, "in", fmt.Sprintf("%d.txt", i)), "x")
	}
	write(b, filepath.Join(dir, "benchmarks.hcl"), src.String())
	for b.Loop() {
		spec, files, diags := hclspec.Load(hclspec.Options{Dir: dir})
		if diags.HasErrors() {
			b.Fatal(told(b, files, diags))
		}
		if len(spec.Tasks) != 10_000 {
			b.Fatal(len(spec.Tasks))
		}
	}
}

func BenchmarkLoadCandidates(b *testing.B) {
	dir := b.TempDir()
	var rows strings.Builder
	rows.WriteString("commit,model,mode\n")
	for i := range 10_000 {
		fmt.Fprintf(&rows, "c%d,m,serving\n", i)
	}
	write(b, filepath.Join(dir, "commits.csv"), rows.String())
	write(b, filepath.Join(dir, "benchmarks.hcl"), `
locals { rows = csvdecode(file("commits.csv")) }
repo "r" { path = "." }
commit "all" {
  for_each = { for r in local.rows : r.commit => r }
  params   = { model = each.value.model, mode = each.value.mode }
}
variant "baseline" {
  baseline = true
  rev      = each.commit.parent
}
variant "human" {}
wheel "w" {
  for_each = candidates
  source   = each.source
  build { command = "make ${each.rev}" }
}
image "i" {
  for_each = candidates
  from     = "example/${each.key}"
  install  = [wheel.w[each.key]]
}
benchmark "b" {
  for_each = { for k, c in candidates : k => c if c.commit.params.mode == "serving" }
  image    = image.i[each.key]
  client   = each.commit.rev
  command  = "run ${each.commit.params.model}"
  metrics { primary = "x" }
}
compare "c" { of = [benchmark.b] }
`)
	for b.Loop() {
		spec, files, diags := hclspec.Load(hclspec.Options{Dir: dir})
		if diags.HasErrors() {
			b.Fatal(told(b, files, diags))
		}
		if len(spec.Benchmarks) != 20_000 {
			b.Fatal(len(spec.Benchmarks))
		}
	}
}

func write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
