package advice

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec"
)

const sound = `
repo "r" { url = "https://git.example/r.git" }
variable "margin" {
  default = 0.02
  validation {
    condition     = var.margin > 0
    error_message = "too small."
  }
}
commit "4f2a91c" { params = { suite = "a" } }
variant "before" {
  baseline = true
  rev      = each.commit.parent
}
variant "after" {}
skip "never" {
  for_each = commit
  when     = each.commit.params.suite == "a" && var.margin > 1
  reason   = "a variable says so"
}
failure "port" {
  match = "port in use"
  stage = ["start"]
  class = "transient"
}
failure "port_later" {
  match = "port in use"
  class = "permanent"
}
wheel "w" {
  for_each = candidates
  source   = each.source
  build {
    command  = "make # a build — slow"
    timeout  = "20m"
    estimate = "10m"
  }
}
benchmark "b" {
  for_each = candidates
  data     = { "w/" = wheel.w[each.key] }
  env      = { A = "1", C = "2", "B" = "one\ntwo\n" }
  server {
    command = "echo starting && ./w/serve --port $PORT"
    ready { log = "listening" }
  }
  command = "./w/ask --port $PORT 'bonjour\u00a0!'"
  metrics {
    metric "rate" { match = "rate:\\s+([0-9.]+)" }
  }
}
compare "all" {
  of  = [benchmark.b]
  tie = var.margin
}
`

// TestSlipsAreFound shows that a file without a slip has no warning, and that each slip has exactly one.
func TestSlipsAreFound(t *testing.T) {
	for _, tt := range []struct{ old, slip, want string }{
		{"", "", ""},
		{`variable "margin" {`, `variable "unread" {
  default = 1
  validation {
    condition     = var.unread > 0
    error_message = "too small."
  }
}
variable "margin" {`, "Variable that nothing reads"},
		{`{ A = "1", `, `{ A = "1", A = "3", `, "Key that is there twice"},
		{`{ A = "1", `, `{ A = "1", "A" = "3", `, "Key that is there twice"},
		{` == "a" && var.margin > 1`, ` == "A"`, "Condition never met"},
		{` == "a" && var.margin > 1`, ` == "a"`, ""},
		{` == "a" && var.margin > 1`, ` == "none"`, ""},
		{`["start"]`, `["run", "start"]`, ""},
		{"  stage = [\"start\"]\n", "", "Rule that never decides"},
		{`"port in use"`, "<<EOT\nport in use\nEOT", "Pattern that matches no line"},
		{`"rate:\\s+([0-9.]+)"`, `"rate:\n([0-9.]+)"`, "Pattern that matches no line"},
		{`"rate:\\s+([0-9.]+)"`, `"rate:[ \n]+([0-9.]+)"`, ""},
		{`"listening"`, `".*"`, "Pattern that matches every line"},
		{`"listening"`, `"^$|listening"`, ""},
		{`"listening"`, `"start"`, "Ready before the server starts"},
		{"echo starting && ./w", "./w/prepare && echo starting && ./w", ""},
		{`serve --port $PORT`, `serve --port 8000`, "Fixed port"},
		{`serve --port $PORT`, `serve --nccl-port 29500`, ""},
		{`ask --port $PORT`, `ask http://localhost:8000`, "Fixed port"},
		{"make #", "make\u00a0-j4 #", "Unusual character in a command"},
		{"make #", "make —jobs #", "Unusual character in a command"},
		{`A = "1"`, `A = "1\n"`, "Line break at the end of a value"},
		{`timeout  = "20m"`, `timeout  = "2m"`, "Timeout below the estimate"},
		{"each.commit.parent", `"4f2a91c"`, "Variant that is the baseline"},
		{"each.commit.parent", "\"4f2a91c\"\n  params = { cores = 1 }", "Variant that is the baseline"},
		{"  for_each = candidates\n  data ",
			"  for_each = { for k, c in candidates : k => c if !c.variant.baseline }\n  data ",
			"Benchmark without the baseline"},
	} {
		if !strings.Contains(sound, tt.old) {
			t.Fatalf("%q is not in the file", tt.old)
		}
		got := warnings(t, strings.Replace(sound, tt.old, tt.slip, 1))
		if strings.Join(got, "|") != tt.want {
			t.Errorf("%q instead of %q: %q", tt.slip, tt.old, got)
		}
	}
}

// TestPatchesElsewhere has an optional patch that is at another path than the file says.
func TestPatchesElsewhere(t *testing.T) {
	for path, want := range map[string]string{
		"patches/agent/4f2a91c.diff": "Variant without patches", // the file says patchs/agent
		"patchs/agents/4f2a91c.diff": "Variant without patches",
		"patchs/agent/4f2a91c.dif":   "Variant without patches",
		"patchs/agent/4f2a91c.diff":  "",
		"patchs/agent/4f2a92c.diff":  "", // of another commit
		"patches/agent/other.diff":   "",
		"notes.diff":                 "",
	} {
		file := sound + "variant \"agent\" {\n  rev = each.commit.parent\n" +
			"  patch = \"patchs/agent/${each.commit.name}.diff\"\n  optional = true\n}\n"
		if got := strings.Join(warnings(t, file, path), "|"); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// A skip of all commits gets a warning, unless a variable switches it or the file has only one commit.
func TestSkipOfEverything(t *testing.T) {
	second := sound + "commit \"5f2a91c\" { params = { suite = \"a\" } }\n"
	skip := func(when string) string {
		return "skip \"all\" {\n  for_each = candidates\n  when = " + when + "\n  reason = \"r\"\n}\n"
	}
	for file, want := range map[string]string{
		second + skip(`each.commit.params.suite == "a"`): "Skip of everything",
		second + skip(`each.commit.name == "4f2a91c"`):   "",
		second + skip("var.margin < 1"):                  "",
		sound + skip(`each.commit.params.suite == "a"`):  "",
	} {
		if got := strings.Join(warnings(t, file), "|"); got != want {
			t.Errorf("%s\n%q", file[len(sound):], got)
		}
	}
}

// TestVariantsThatDifferInCommands shows that variants of one revision may differ in the commands that build them.
func TestVariantsThatDifferInCommands(t *testing.T) {
	file := strings.Replace(sound, "each.commit.parent", `"4f2a91c"`, 1)
	for _, command := range []string{"make ${each.key} #", "make ${each.variant.baseline ? 0 : 1} #"} {
		if got := warnings(t, strings.Replace(file, "make #", command, 1)); len(got) > 0 {
			t.Errorf("%s: %q", command, got)
		}
	}
}

// warnings returns the summaries of the advice about a file, beside which there are others.
func warnings(t *testing.T, text string, others ...string) []string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range others {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700),
			os.WriteFile(name, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "benchmarks.hcl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	_, _, diags := hclspec.Load(hclspec.Options{Dir: dir,
		Check: func(spec *hclspec.Spec, files map[string]*hcl.File, faulty bool) hcl.Diagnostics {
			for _, d := range Of(spec, files, faulty) {
				got = append(got, d.Summary)
			}
			return nil
		}})
	if len(diags) > 0 {
		t.Fatal(diags, text)
	}
	return got
}
