package hclspec_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/benchgraph/benchgraph/hclspec"
)

// project writes the files of a txtar archive into a directory of its own.
func project(t testing.TB, archive []byte) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse(archive).Files {
		write(t, filepath.Join(dir, filepath.FromSlash(f.Name)), string(f.Data))
	}
	return dir
}

// told returns the text of diagnostics as people see it.
func told(t testing.TB, files map[string]*hcl.File, diags hcl.Diagnostics) string {
	t.Helper()
	var out bytes.Buffer
	if err := hcl.NewDiagnosticTextWriter(&out, files, 100, false).WriteDiagnostics(diags); err != nil {
		t.Fatal(err)
	}
	return out.String()
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
func load(t testing.TB, archive string, options ...func(*hclspec.Options)) *hclspec.Spec {
	t.Helper()
	o := hclspec.Options{Dir: project(t, []byte(archive)), Version: "0.1.0"}
	for _, set := range options {
		set(&o)
	}
	spec, files, diags := hclspec.Load(o)
	// whole.txtar has one
	diags = slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool { return d.Summary == "Executor not used" })
	if len(diags) > 0 {
		t.Fatal(told(t, files, diags))
	}
	return spec
}

// find returns the element of a Spec's list with an address.
func find[T any](t *testing.T, all []T, address func(T) hclspec.Address, want string) T {
	t.Helper()
	var have []string
	for _, v := range all {
		if address(v).String() == want {
			return v
		}
		have = append(have, address(v).String())
	}
	t.Fatalf("there is no %s among %v", want, have)
	panic("not reached")
}

func address(s string) hclspec.Address {
	a, err := hclspec.ParseAddress(s)
	if err != nil {
		panic(err)
	}
	return a
}

func TestTheExampleOfTheLanguage(t *testing.T) {
	spec := load(t, string(archive(t, "testdata/whole.txtar")))

	if got, want := spec.Files, []string{"benchmarks.hcl", "commits/2024/015069b0.hcl",
		"fixes/numpy.hcl"}; !slices.Equal(got, want) {
		t.Errorf("files: got %v, want %v", got, want)
	}
	var candidates []string
	for _, c := range spec.Candidates {
		candidates = append(candidates, c.Key+" "+c.Rev+" "+c.Patch+c.NoPatch)
	}
	if diff := cmp.Diff([]string{
		"22d33bac/baseline b0e96aae ", "22d33bac/human 22d33bac ",
		"22d33bac/claude b0e96aae patches/claude/22d33bac.diff",
		"015069b0/baseline 015069b0^ ", "015069b0/human 015069b0 ",
		"015069b0/claude 015069b0^ no patch: there is no file patches/claude/015069b0.diff",
	}, candidates); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}

	w := find(t, spec.Wheels, func(w hclspec.Wheel) hclspec.Address {
		return w.Address
	}, `wheel.vllm["22d33bac/claude"]`)
	if w.Candidate != "22d33bac/claude" || w.Source != address(`source.vllm["22d33bac/claude"]`) ||
		w.Build.Image != address("image.builder") || w.Build.CPUs != 16 || w.Build.Memory != 64<<30 ||
		w.Build.Timeout != 40*time.Minute {
		t.Errorf("wheel: got %+v", w)
	}

	b := find(t, spec.Benchmarks, func(b hclspec.Benchmark) hclspec.Address {
		return b.Address
	}, `benchmark.serving["22d33bac/human"]`)
	want := "python3 -m vllm.entrypoints.openai.api_server --model meta-llama/Llama-3.1-8B-Instruct --port $PORT"
	if got := b.Server.Command.Shell.String(); got != want {
		t.Errorf("server: got %s, want %s", got, want)
	}
	if b.Image != address(`image.runtime["22d33bac/human"]`) || b.Client != address("source.vllm[\"22d33bac\"]") ||
		!slices.Equal(b.Data, []hclspec.Data{{Name: "ShareGPT.json", Ref: address("fetch.sharegpt")}}) ||
		b.Server.HTTP != "/health" || !reflect.DeepEqual(b.Design,
		hclspec.Design{Samples: 7, Max: 15, Pairing: "blocked", Warmup: 1, Repeat: 1}) || !b.Quiet ||
		b.GPUs == nil || *b.GPUs != (hclspec.GPUs{Count: 1, Memory: 80 << 30, Model: "H100|H200"}) ||
		b.Env["VLLM_USE_V1"].String() != "1" {
		t.Errorf("benchmark: got %+v", b)
	}

	utils := find(t, spec.Fixes, func(f hclspec.Fix) hclspec.Address { return f.Address }, "fix.fa_utils")
	const from = `${source.vllm["22d33bac/human"]}/vllm/vllm_flash_attn/fa_utils.py`
	// the commit is skipped
	if len(utils.Cases) != 6 || utils.Cases["22d33bac/human"].When || utils.Cases["015069b0/human"].When ||
		utils.Cases["22d33bac/human"].Files[0].From.String() != from {
		t.Errorf("fix: got %+v", utils)
	}
	if learnt := find(t, spec.Fixes, func(f hclspec.Fix) hclspec.Address {
		return f.Address
	}, "fix.numpy1"); learnt.Cases["22d33bac/human"].When {
		t.Error("a fix that waits for its log line must not apply by itself")
	}

	var skips []string
	for _, s := range spec.Skips {
		skips = append(skips, s.Candidate)
	}
	if want := []string{"015069b0/baseline", "015069b0/claude", "015069b0/human"}; !slices.Equal(skips, want) {
		t.Errorf("skips: got %v, want %v", skips, want)
	}
	if len(spec.KnownIssues) != 0 {
		t.Errorf("known issues: got %v: the version fits, but the mode does not", spec.KnownIssues)
	}
	if got := spec.Compares[0]; len(got.Of) != 6 || got.Tie != 0.02 || got.Confidence != 0.95 {
		t.Errorf("compare: got %+v", got)
	}
	if got, want := spec.Tasks[0].Inputs, []string{"agents/a/result.json"}; !slices.Equal(got, want) {
		t.Errorf("inputs: got %v, want %v", got, want)
	}
	if got := spec.GPUHour["NVIDIA H100 80GB HBM3"]; got != 3.95 {
		t.Errorf("cost: got %v", got)
	}
	if got := string(spec.Executors[0].Settings); got != `{"partition":"gpu","work_dir":"/shared/benchgraph"}` {
		t.Errorf("executor: got %s", got)
	}
}

// plain removes from a Spec the places and the order of blocks, in which two files of the same meaning may differ.
func plain(spec *hclspec.Spec) *hclspec.Spec {
	spec.Dir, spec.Files = "", nil
	slices.SortFunc(spec.Commits, func(a, b hclspec.Commit) int { return a.Address.Compare(b.Address) })
	slices.SortFunc(spec.Variants, func(a, b hclspec.Variant) int { return a.Address.Compare(b.Address) })
	slices.SortFunc(spec.Candidates, func(a, b hclspec.Candidate) int { return strings.Compare(a.Key, b.Key) })
	slices.SortFunc(spec.Sources, func(a, b hclspec.Source) int { return a.Address.Compare(b.Address) })
	slices.SortFunc(spec.Wheels, func(a, b hclspec.Wheel) int { return a.Address.Compare(b.Address) })
	spec.Declared = nil // the same may be said in other blocks
	slices.SortFunc(spec.Images, func(a, b hclspec.Image) int { return a.Address.Compare(b.Address) })
	slices.SortFunc(spec.Fixes, func(a, b hclspec.Fix) int { return a.Address.Compare(b.Address) })
	slices.SortFunc(spec.Benchmarks, func(a, b hclspec.Benchmark) int { return a.Address.Compare(b.Address) })
	slices.SortFunc(spec.Tasks, func(a, b hclspec.Task) int { return a.Address.Compare(b.Address) })
	return spec
}

func same(t *testing.T, a, b *hclspec.Spec) {
	t.Helper()
	if diff := cmp.Diff(plain(a), plain(b), cmpopts.IgnoreTypes(hcl.Range{}, hclspec.Reads{}, hclspec.Absolute{}),
		cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the two mean different things:\n%s", diff)
	}
}

const twoCommits = `
repo "r" { path = "." }
variant "base" {
  baseline = true
  rev      = each.commit.parent
}
variant "human" {}
benchmark "b" {
  for_each = candidates
  client   = each.commit.rev
  data     = { "src/" = each.source }
  command  = "run ${each.commit.params.model}"
  metrics { primary = "x" }
}
compare "c" { of = [benchmark.b] }
`

func TestADataSetIsTheBlocksWrittenOut(t *testing.T) {
	blocks := load(t, "-- benchmarks.hcl --"+twoCommits+`
commit "c1" {
  title  = "first"
  params = { model = "a" }
}
commit "c2" {
  title  = "second"
  params = { model = "b" }
}
`)
	const declared = `
commit "all" {
  for_each = { for r in local.rows : r.commit => r }
  title    = each.value.title
  params   = { model = each.value.model }
}
`
	csv := load(t, "-- benchmarks.hcl --"+twoCommits+declared+`
locals { rows = csvdecode(file("data/commits.csv")) }
-- data/commits.csv --
commit,title,model
c1,first,a
c2,second,b
`)
	same(t, blocks, csv)
	lines := load(t, "-- benchmarks.hcl --"+twoCommits+declared+`
locals { rows = [for line in split("\n", trimspace(file("commits.jsonl"))) : jsondecode(line)] }
-- commits.jsonl --
{"commit": "c2", "title": "second", "model": "b"}
{"commit": "c1", "title": "first", "model": "a"}
`)
	same(t, blocks, lines)
}

func TestCosmeticEdits(t *testing.T) {
	before := load(t, "-- benchmarks.hcl --"+twoCommits+`
locals { flags = "-O2" }
commit "c1" { params = { model = "a" } }
commit "c2" { params = { model = "b" } }
task "t" {
  command = "make ${local.flags}"
  needs   = [task.u]
}
task "u" { command = "true" }
commit "caf`+"\u00e9"+`" { params = { model = "c" } }
`)
	after := load(t, `-- benchmarks.hcl --
// The order of blocks, comments, formatting, names of locals and the division into files mean nothing.
benchgraph { include = ["parts/*.hcl"] }
task "u" {
  command = "true"
     }
task "t" {
  needs   = [
    task.u, # trailing comma
  ]
  command = "make ${local.opt}"
}
-- parts/b.hcl --
locals { opt = "-O2" }
commit "c2" { params = { "model" = "b" } }
commit "c1" { params = { model : "a" } }
commit "caf`+"e\u0301"+`" { params = { model = "c" } } // of two characters: other editors write it so
-- parts/a.hcl --`+twoCommits)
	same(t, before, after)
}

// A variable of the root file chooses which files belong to the project.
func TestIncludeByVariable(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"benchmarks.hcl": `
variable "small" { default = false }
benchgraph { include = [var.small ? "small/*.hcl" : "whole/*.hcl"] }
`,
		"small/tasks.hcl": `
variable "of_small" { default = "x" }
task "one" { command = "true ${var.of_small}" }
`,
		"whole/tasks.hcl": `
task "one" { command = "true" }
task "two" { command = "true" }
`,
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for want, vars := range map[int]map[string]string{2: nil, 1: {"small": "true", "of_small": "y"}} {
		spec, _, diags := hclspec.Load(hclspec.Options{Dir: dir, Vars: vars})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if len(spec.Tasks) != want {
			t.Errorf("-var %v: %d tasks, want %d", vars, len(spec.Tasks), want)
		}
	}
	_, _, diags := hclspec.Load(hclspec.Options{Dir: dir, Vars: map[string]string{"of_small": "y"}})
	if !diags.HasErrors() || !strings.Contains(diags.Error(), "of_small") {
		t.Errorf("a variable of a file that is not included was accepted: %v", diags)
	}
}

func TestJSONIsTheSameLanguage(t *testing.T) {
	native := load(t, "-- benchmarks.hcl --"+`
variable "tie" {
  type    = number
  default = 0.02
  validation {
    condition     = var.tie > 0
    error_message = "tie must be positive"
  }
}
locals { env = { A = "1" } }
repo "r" { path = "." }
commit "c1" { params = { mode = "serving" } }
variant "base" { baseline = true }
variant "human" { rev = each.commit.rev }
wheel "w" {
  for_each = candidates
  source   = each.source
  build {
    command = ["make", "DEST=$OUT"]
    env     = local.env
  }
}
image "i" {
  for_each = candidates
  from     = "example/${each.key}"
  install  = [wheel.w[each.key]]
}
benchmark "b" {
  for_each = { for k, c in candidates : k => c if c.commit.params.mode == "serving" && c.commit.params.hardware != "rocm" }
  image    = image.i[each.key]
  data     = { "w" = wheel.w[each.key] }
  command  = "run ${wheel.w[each.key]}/x"
  metrics {
    primary = "x"
    metric "x" {
      match = "x: ([0-9]+)"
    }
    metric "y" {
      json = "a.y"
    }
  }
}
compare "c" {
  of  = [benchmark.b]
  tie = var.tie
}
`)
	inJSON := load(t, "-- benchmarks.hcl.json --\n"+`{
  "//": "a comment",
  "variable": {"tie": {"type": "number", "default": 0.02,
    "validation": {"condition": "${var.tie > 0}", "error_message": "tie must be positive"}}},
  "locals": {"env": {"A": "1"}},
  "repo": {"r": {"path": "."}},
  "commit": {"c1": {"params": {"mode": "serving"}}},
  "variant": [{"base": {"baseline": true}}, {"human": {"rev": "${each.commit.rev}"}}],
  "wheel": {"w": {"for_each": "${candidates}", "source": "${each.source}",
    "build": {"command": ["make", "DEST=$OUT"], "env": "${local.env}"}}},
  "image": {"i": {"for_each": "${candidates}", "from": "example/${each.key}", "install": ["${wheel.w[each.key]}"]}},
  "benchmark": {"b": {
    "for_each": "${{ for k, c in candidates : k => c if c.commit.params.mode == \"serving\" && c.commit.params.hardware != \"rocm\" }}",
    "image": "${image.i[each.key]}", "data": {"w": "${wheel.w[each.key]}"}, "command": "run ${wheel.w[each.key]}/x",
    "metrics": {"primary": "x", "metric": {"x": {"match": "x: ([0-9]+)"}, "y": {"json": "a.y"}}}}},
  "compare": {"c": {"of": ["${benchmark.b}"], "tie": "${var.tie}"}}
}`)
	same(t, native, inJSON)
}

func TestVariablesFromOutside(t *testing.T) {
	src := `-- benchmarks.hcl --
variable "a" {
  type    = number
  default = 1
}
variable "b" { type = list(string) }
variable "c" { default = "c" }
variable "d" {
  type    = object({ x = optional(number, 5) })
  default = {}
}
task "t" { command = "echo ${var.a} ${join(",", var.b)} ${var.c} ${var.d.x}" }
-- values.hcl --
a = 2
c = "file"
`
	dir := project(t, []byte(src))
	options := hclspec.Options{
		Dir: dir, EnvVars: map[string]string{"a": "9", "b": `["x", "y"]`, "unknown": "1"},
		VarFiles: []string{filepath.Join(dir, "values.hcl")}, Vars: map[string]string{"c": "flag ${x}"},
	}
	spec, files, diags := hclspec.Load(options)
	if len(diags) > 0 {
		t.Fatal(told(t, files, diags))
	}
	if got, want := spec.Tasks[0].Command.Shell.String(), "echo 2 x,y flag ${x} 5"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	options.Vars = map[string]string{"a": "many", "b": "[", "cc": "1"}
	spec, files, diags = hclspec.Load(options)
	out := told(t, files, diags)
	for _, want := range []string{"number is required", "<-var b>",
		`"cc", which no variable block declares. Did you mean "c"`} {
		if spec != nil || !strings.Contains(out, want) {
			t.Errorf("want %s in\n%s", want, out)
		}
	}
}

func TestVariantsThatDifferByConfigurationAlone(t *testing.T) {
	spec := load(t, `-- benchmarks.hcl --
commit "redis" { title = "7.2" }
variant "one" {
  baseline = true
  params   = { threads = 1 }
}
variant "four" { params = { threads = 4, extra = "x" } }
benchmark "get" {
  for_each = candidates
  command  = "redis-benchmark -t SET,GET -p $PORT --threads ${each.variant.params.threads} ${each.variant.params.extra == "x" ? "-x" : ""}"
  server {
    command = "redis-server --port $PORT"
    ready { tcp = true }
  }
  metrics {
    format  = "redis"
    primary = "GET"
  }
}
compare "c" { of = [benchmark.get] }
`)
	if len(spec.Sources) != 0 || spec.Candidates[0].Rev != "" || spec.Candidates[0].Source != (hclspec.Address{}) {
		t.Errorf("without a repo there is no code: got %+v", spec.Candidates)
	}
	if got := spec.Benchmarks[0].Command.Shell.String(); got != "redis-benchmark -t SET,GET -p $PORT --threads 4 -x" {
		t.Errorf("got %s", got)
	}
}

func TestExclusionsOfWholeCommits(t *testing.T) {
	spec := load(t, `-- benchmarks.hcl --
repo "r" { path = "." }
commit "a" { params = { broken = true } }
commit "b" {}
variant "x" {}
variant "y" {}
skip "s" {
  for_each = commit
  when     = each.commit.params.broken
  reason   = "broken ${each.commit.name}"
}
known_issue "k" {
  for_each = { for k, c in candidates : k => c if c.variant.name == "y" }
  when     = pep440_match(each.commit.params.version, ">=1")
  reason   = "none has a version"
}
`)
	var got []string
	for _, s := range spec.Skips {
		got = append(got, s.Address.String()+" "+s.Candidate+" "+s.Reason)
	}
	if want := []string{`skip.s["a/x"] a/x broken a`, `skip.s["a/y"] a/y broken a`}; !slices.Equal(got, want) ||
		len(spec.KnownIssues) != 0 {
		t.Errorf("got %v, %v", got, spec.KnownIssues)
	}
}

func TestADivisionByZeroMattersOnlyWhereItIsUsed(t *testing.T) {
	spec := load(t, `-- benchmarks.hcl --
variable "n" {
  type    = number
  default = 0
}
task "t" {
  command = "true"
  env = {
    TRY    = try(1 / var.n, "none")
    CAN    = "${can(1 / var.n)} ${can(1 % var.n)} ${can(0 / 0)} ${can(1 / 2)}"
    CHOSEN = var.n == 0 ? 1 : 10 / var.n
    REST   = 7 % 4
  }
}
`)
	for name, want := range map[string]string{"TRY": "none", "CAN": "false false false true", "CHOSEN": "1",
		"REST": "3"} {
		if got := spec.Tasks[0].Env[name].String(); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

func TestReferencesPassThroughExpressions(t *testing.T) {
	spec := load(t, `-- benchmarks.hcl --
locals {
  data = { for name, f in { a = fetch.a, b = fetch.b } : "${name}.json" => f }
  all  = concat([fetch.a], values(wheel.w), [task.u])
}
fetch "a" { url = "https://example.com/a" }
fetch "b" { url = "https://example.com/b" }
wheel "w" {
  for_each = toset(["x", "y\"z"])
  prebuilt = ["https://example.com/${each.key}"]
}
task "u" { command = "true" }
task "t" {
  for_each = wheel.w
  data     = local.data
  needs    = local.all
  command  = ["cp", each.value, "${fetch.a}/x", format("%s/y", task.u)]
  env      = { W = try(wheel.w["none"], wheel.w["x"]) }
}
task "all" {
  needs   = [wheel.w, task.t, [fetch.a]]
  command = "true"
}
`)
	task := find(t, spec.Tasks, func(t hclspec.Task) hclspec.Address { return t.Address }, `task.t["y\"z"]`)
	if got,
		want := task.Command.Argv[1].String()+" "+task.Command.Argv[2].String()+" "+task.Command.Argv[3].String()+
		" "+task.Env["W"].String(),
		`${wheel.w["y\"z"]} ${fetch.a}/x ${task.u}/y ${wheel.w["x"]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(task.Data) != 2 || task.Data[1] != (hclspec.Data{Name: "b.json", Ref: address("fetch.b")}) ||
		len(task.Needs) != 4 {
		t.Errorf("got %+v", task)
	}
	all := find(t, spec.Tasks, func(t hclspec.Task) hclspec.Address { return t.Address }, "task.all")
	if len(all.Needs) != 5 {
		t.Errorf("a block with for_each stands for all its instances: got %v", all.Needs)
	}
}

func TestClientsAndFixesShareWhatIsAlike(t *testing.T) {
	spec := load(t, "-- benchmarks.hcl --"+twoCommits+`
commit "c1" { params = { model = "m" } }
commit "c2" {
  rev    = "feature/long-name-1"
  params = { model = "m" }
}
commit "c3" {
  rev    = "feature/long-name-2"
  params = { model = "m" }
}
fix "same" {
  run = ["true"]
}
fix "never" {
  when = each.commit.params.never
  run  = ["echo ${each.key}"]
}
`)
	var clients []string
	for _, s := range spec.Sources {
		if s.Candidate == "" {
			clients = append(clients, s.Address.Key+" "+s.Rev)
		}
	}
	if diff := cmp.Diff([]string{"c1 c1", "feature/long feature/long-name-1",
		"feature/long-name-2 feature/long-name-2"}, clients); diff != "" {
		t.Errorf("client sources (-want +got):\n%s", diff)
	}
	keys := slices.Sorted(maps.Keys(spec.Fixes[0].Cases))
	if len(keys) != 7 || !spec.Fixes[0].Cases["c1/base"].When || spec.Fixes[1].Cases["c1/base"].When ||
		spec.Fixes[1].Cases["c1/base"].Run[0].String() != "echo c1/base" {
		t.Errorf("got %+v", spec.Fixes)
	}
}

func TestLinksThatLeaveTheProject(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret"), "secret")
	dir := project(t, []byte("-- benchmarks.hcl --\n"+`
locals {
  a = file("link")
  b = fileset(".", "*")
}
task "t" {
  inputs  = ["li*"]
  command = "true"
}
task "u" {
  inputs  = ["dir/secret"]
  command = "true"
}
variant "v" { patch = "link" }
commit "c" {}
repo "r" { path = "." }
`))
	for name, target := range map[string]string{"link": filepath.Join(outside, "secret"), "dir": outside} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	spec, files, diags := hclspec.Load(hclspec.Options{Dir: dir})
	out := told(t, files, diags)
	if spec != nil || len(diags) != 5 || strings.Count(out, "a link leads out of the project") != 5 {
		t.Errorf("want five refusals, got\n%s", out)
	}
}

func TestEveryAttributeIsOnOneSide(t *testing.T) {
	seen := map[string]bool{}
	var free []string
	for _, a := range hclspec.Attributes() {
		name := a.Block + "." + a.Attribute
		if seen[name] {
			t.Errorf("%s is listed twice", name)
		}
		seen[name] = true
		if !a.InKey {
			free = append(free, name)
		}
	}
	slices.Sort(free)
	if *update {
		write(t, "testdata/free_attributes.txt", strings.Join(free, "\n")+"\n")
	}
	if diff := cmp.Diff(strings.Fields(string(archive(t, "testdata/free_attributes.txt"))), free); diff != "" {
		t.Errorf("attributes that are in no key (-want +got):\n%s", diff)
	}
}

// A block whose for_each is empty is no mistake, and the other blocks named beside it still count.
func TestReferencesToNothingLoseNoOthers(t *testing.T) {
	spec := load(t, `-- benchmarks.hcl --
task "none" {
  for_each = toset([])
  command  = "true"
}
task "some" { command = "true" }
task "all" {
  command = "true"
  needs   = { a = task.none, b = task.some, c = [task.none] }
}
`)
	for _, task := range spec.Tasks {
		if task.Address == address("task.all") && (len(task.Needs) != 1 || task.Needs[0] != address("task.some")) {
			t.Errorf("needs %v", task.Needs)
		}
	}
}

func TestParamsAreWrittenAsDeclared(t *testing.T) {
	spec := load(t, `-- benchmarks.hcl --
fetch "f" { url = "https://example.com/f" }
commit "c" { params = { n = 1.5, big = 12345678901234567890, l = [true, null], data = fetch.f } }
variant "v" {}
task "t" {
  for_each = candidates
  command  = "cat ${each.commit.params.data}"
  env      = { X = each.commit.params.missing }
}
`)
	var params map[string]json.RawMessage
	if err := json.Unmarshal(spec.Commits[0].Params, &params); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"n": "1.5", "big": "12345678901234567890", "l": "[true,null]", "data": `"fetch.f"`}
	for name, value := range params {
		if string(value) != want[name] {
			t.Errorf("%s: got %s, want %s", name, value, want[name])
		}
	}
	if got := spec.Tasks[0].Command.Shell.String(); len(params) != 4 || got != "cat ${fetch.f}" ||
		len(spec.Tasks[0].Env) != 0 {
		t.Errorf("got %s, %v", got, spec.Tasks[0])
	}
}

// A file may have an empty list of prebuilt sources, for a machine that can reach none: nearest then has no effect.
func TestNearestWithoutSources(t *testing.T) {
	spec := load(t, "-- benchmarks.hcl --"+`
repo "r" { path = "." }
commit "c" {}
variant "base" { baseline = true }
wheel "w" {
  for_each = candidates
  source   = each.source
  prebuilt = [for host in [] : "${host}/${each.rev}.whl"]
  overlay  = ["*.py"]
  nearest  = 50
  build { command = "make" }
}
`)
	if w := spec.Wheels[0]; len(w.Prebuilt) != 0 || w.PrebuiltOf != nil {
		t.Errorf("%+v", w)
	}
}
