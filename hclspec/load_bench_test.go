package hclspec_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/hclspec"
)

// BenchmarkLoadTasks reads many task blocks, each written in the file.
func BenchmarkLoadTasks(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			var src strings.Builder
			for i := range n {
				fmt.Fprintf(&src,
					"task \"t%d\" {\n  env     = { N = \"%d\" }\n  command = \"echo $N > $OUT/x\"\n  outputs = "+
						"[\"x\"]\n}\n", i, i)
			}
			loadTasks(b, src.String(), n)
		})
	}
}

// BenchmarkLoadTasksWithInputs reads task blocks each of which names a file.
func BenchmarkLoadTasksWithInputs(b *testing.B) {
	const n = 10_000
	var src strings.Builder
	dir := b.TempDir()
	for i := range n {
		fmt.Fprintf(&src,
			"task \"t%d\" {\n  inputs  = [\"in/%d.txt\"]\n  command = \"cat in/%d.txt > $OUT/x\"\n  outputs = "+
				"[\"x\"]\n}\n", i, i, i)
		write(b, filepath.Join(dir, "in", fmt.Sprintf("%d.txt", i)), "x")
	}
	write(b, filepath.Join(dir, "benchmarks.hcl"), src.String())
	loadDir(b, dir, tasks, n)
}

// BenchmarkLoadInstances reads one task block with for_each and as many instances.
func BenchmarkLoadInstances(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			loadTasks(b, fmt.Sprintf(`
task "t" {
  for_each = toset([for i in range(%d) : "key${i}"])
  env      = { N = each.key }
  command  = "echo ${each.key} > $OUT/x"
  outputs  = ["x"]
}
`, n), n)
		})
	}
}

func loadTasks(b *testing.B, src string, n int) {
	dir := b.TempDir()
	write(b, filepath.Join(dir, "benchmarks.hcl"), src)
	loadDir(b, dir, tasks, n)
}

func tasks(spec *hclspec.Spec) int { return len(spec.Tasks) }

// loadDir measures the reading of a project, and checks what count returns for it.
func loadDir(b *testing.B, dir string, count func(*hclspec.Spec) int, want int) {
	b.ReportAllocs()
	before := processor(b)
	defer func() { b.ReportMetric(float64(processor(b)-before)/float64(b.N), "cpu-ns/op") }()
	for b.Loop() {
		spec, files, diags := hclspec.Load(hclspec.Options{Dir: dir})
		if diags.HasErrors() {
			b.Fatal(told(b, files, diags))
		}
		if got := count(spec); got != want {
			b.Fatal(got)
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
	loadDir(b, dir, func(spec *hclspec.Spec) int { return len(spec.Benchmarks) }, 20_000)
}

// processor returns the processor time of this process. It tells more than wall time if other processes use the
// machine, too.
func processor(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
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
