package hclspec_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// maxInput is the largest input that is tried.
const maxInput = 64 << 10

func seeds(f *testing.F) [][]byte {
	var all [][]byte
	names, err := filepath.Glob("testdata/mistakes/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range append(names, "testdata/whole.txtar") {
		for _, file := range txtar.Parse(archive(f, name)).Files {
			if strings.HasSuffix(file.Name, ".hcl") && len(file.Data) < 20_000 {
				all = append(all, file.Data)
			}
		}
	}
	return all
}

// placed fails if a diagnostic has no text, or a place that the files do not have.
func placed(t *testing.T, files map[string]*hcl.File, diags hcl.Diagnostics) {
	t.Helper()
	for _, d := range diags {
		if d.Summary == "" || d.Detail == "" {
			t.Fatalf("a diagnostic says nothing: %v", d)
		}
		for _, r := range []*hcl.Range{d.Subject, d.Context} {
			if r == nil {
				continue
			}
			if f := files[r.Filename]; f == nil || r.Start.Line < 1 || r.Start.Byte < 0 || r.Start.Byte > r.End.Byte ||
				r.Start.Byte > len(f.Bytes) {
				t.Fatalf("%v is about %#v, which is not in the file", d, *r)
			}
		}
	}
}

// FuzzLoad looks for input that crashes, exceeds the bounds, or is both accepted and refused.
func FuzzLoad(f *testing.F) {
	for _, src := range seeds(f) {
		f.Add(src, false)
	}
	f.Add([]byte(`{"task": {"t": {"for_each": "${toset([\"a\"])}", "command": "echo ${each.key}"}}}`), true)
	f.Add([]byte(`{"variable": {"v": {"type": "list(string)", "default": ["${1}", {"a": [true, null, 1e3]}]}}, `+
		`"locals": [{"x": {"${var.v[0]}": 1}}]}`), true)
	native, json := f.TempDir(), f.TempDir()
	writeNative, writeJSON := fuzzing.Place(f, filepath.Join(native, "benchmarks.hcl")),
		fuzzing.Place(f, filepath.Join(json, "benchmarks.hcl.json"))
	f.Fuzz(func(t *testing.T, src []byte, inJSON bool) {
		if len(src) > maxInput {
			return
		}
		dir, write := native, writeNative
		if inJSON {
			dir, write = json, writeJSON
		}
		write(src)
		fuzzing.Contained(t, func() {
			spec, files, diags := hclspec.LoadSoon(hclspec.Options{Dir: dir, Version: "0.1.0"})
			if (spec == nil) != diags.HasErrors() {
				t.Fatalf("spec %v, diagnostics %v", spec, diags)
			}
			placed(t, files, diags)
		})
	})
}

// FuzzEval evaluates an expression in a small project.
func FuzzEval(f *testing.F) {
	for _, expr := range []string{
		`[for i in range(3) : "${i}-${local.list[0]}" if i > 1]`, `{ for k, v in { a = 1 } : k => v... }`,
		`local.list[*]`, `fetch.f`, `wheel.w["x"]`,
		`"%{ for x in local.list ~}${x}%{ endfor }"`, "<<-X\n  a ${1 + 1}\n  X\n", `try(local.none.x, can(1), "d")`,
		`true ? [1] : ["a", 2]`,
		`jsondecode("{\"a\": [1, {}]}").a`, `yamldecode("a: &x [1]\nb: *x")`, `csvdecode("a,b\n1,2")`,
		`format("%05.1f %[1]v", 1.5)`,
		`regexall("(a+)(b|c)*", "aabac")`, `replace("aba", "/b(.)/", "$1$1")`, `setproduct(["a"], ["b", "c"])`,
		`toset([1, "a", true])`, `merge({ a = 1 }, { b = 2 })`,
		`flatten([[1, [2]], 3])`, `zipmap(["a"], [1])`, `substr("añb", 1, -1)`, `fileset(".", "**/*.{hcl,txt}")`,
		`file("a.txt")`, `distinct([1, 1.0, 2])`,
		`pep440_match("1.0rc1", ">=0.9")`, `-1e10 * 1e-3 % 7`, `sort(["b", "a"])`, `chunklist(range(10), 3)`,
		`indent(2, "a\nb")`, `formatlist("%s", ["a"])`,
	} {
		f.Add(expr)
	}
	dir := f.TempDir()
	write(f, filepath.Join(dir, "benchmarks.hcl"),
		"locals { list = [\"b\", \"a\"] }\nfetch \"f\" { url = \"https://example.com/f\" }\n"+
			"wheel \"w\" {\n  for_each = toset([\"x\"])\n  prebuilt = [\"https://example.com\"]\n}\n")
	write(f, filepath.Join(dir, "a.txt"), "text\n")
	f.Fuzz(func(t *testing.T, expr string) {
		if len(expr) > maxInput {
			return
		}
		fuzzing.Contained(t, func() {
			_, files, diags := hclspec.EvalSoon(hclspec.Options{Dir: dir}, expr)
			placed(t, files, diags)
		})
	})
}

// FuzzMatchAddress looks for patterns that take long.
func FuzzMatchAddress(f *testing.F) {
	f.Add(`benchmark.*["22d33bac/{a,b}*"]`, `benchmark.serving["22d33bac/human"]`)
	f.Add(`{a,b}{a,b}.*`, `aa.x`)
	f.Fuzz(func(t *testing.T, pattern, address string) {
		if len(pattern)+len(address) > 1<<10 {
			return
		}
		fuzzing.Contained(t, func() {
			matches, err := hclspec.MatchAddress(pattern, address)
			if matches && err != nil {
				t.Fatalf("%q matches %q, and %v", pattern, address, err)
			}
		})
	})
}
