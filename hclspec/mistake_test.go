package hclspec_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
)

const oneBadRow = `
repo "r" { url = "https://git.example/r.git" }
locals { weights = { small = 1 } }
commit "good" { params = { model = "small" } }
commit "bad" { params = { model = "unheard-of" } }
commit "left" { params = { model = "unheard-of" } }
commit "wrong" {
  rev    = ""
  params = { model = "small" }
}
variant "base" {
  baseline = true
  rev      = each.commit.parent
}
variant "agent" { patch = each.commit.name == "good" ? "none.diff" : null }
skip "left" {
  for_each = commit
  when     = each.key == "left"
  reason   = "not wanted: ${local.weights[each.key == "left" ? "small" : "none"]}"
}
wheel "w" {
  for_each = candidates
  source   = each.source
  build { command = "make SIZE=${local.weights[each.commit.params.model]}" }
}
task "all" {
  needs   = [wheel.w]
  command = "true"
}
`

// TestOneBadRowStopsNoOther shows the states of rows with mistakes, of skipped rows, and of the others.
func TestOneBadRowStopsNoOther(t *testing.T) {
	dir := project(t, []byte("-- benchmarks.hcl --"+oneBadRow))
	spec, files, diags := hclspec.Load(hclspec.Options{Dir: dir})
	if diags.HasErrors() {
		t.Fatal(told(t, files, diags))
	}
	var got []string
	for _, m := range spec.Mistakes {
		got = append(got, strings.Join([]string{m.Commit, m.Candidate, m.At.String(), m.Check, m.Diagnostic.Summary},
			"|"))
		if m.Diagnostic.Severity != hcl.DiagError || m.Diagnostic.Subject == nil {
			t.Errorf("%+v: a mistake is an error with a place", m.Diagnostic)
		}
	}
	if want := []string{
		`wrong||commit.wrong|placeholder|Empty revision`,
		`good|good/agent|variant.agent["good"]|patch|No patch`,
		`bad|bad/agent|wheel.w["bad/agent"]|placeholder|Invalid index`,
		`bad|bad/base|wheel.w["bad/base"]|placeholder|Invalid index`,
	}; !slices.Equal(got, want) {
		t.Errorf("mistakes:\n%s", strings.Join(got, "\n"))
	}
	outs := map[string]string{}
	for _, w := range spec.Wheels {
		switch {
		case w.Out == nil:
			outs[w.Address.Key] = "made"
		case w.Out.Skipped:
			outs[w.Address.Key] = w.Out.Reason
		default:
			outs[w.Address.Key], _, _ = strings.Cut(w.Out.Reason, ":")
		}
	}
	for key, want := range map[string]string{
		"good/base": "made", "bad/base": "Invalid index", "bad/agent": "Invalid index", "left/base": "not wanted: 1",
		"left/agent": "not wanted: 1",
		"good/agent": "", "wrong/base": "", // candidates leaves them out
	} {
		if outs[key] != want {
			t.Errorf("wheel.w[%q]: got %q, want %q", key, outs[key], want)
		}
	}
	for _, c := range spec.Candidates {
		if out := c.Out != nil; out != (c.Key == "good/agent" || c.Commit == "wrong") {
			t.Errorf("%s: out is %v", c.Key, c.Out)
		}
	}
	if _, _, diags := hclspec.Load(hclspec.Options{Dir: dir, Strict: true}); !diags.HasErrors() || len(diags) != 3 {
		t.Errorf("a strict reading tells %v", diags)
	}
}

// TestARevisionThatIsNotThere shows that a missing revision takes out the rows that need it, and no other row.
func TestARevisionThatIsNotThere(t *testing.T) {
	dir := project(t, []byte(`-- benchmarks.hcl --
repo "r" { url = "https://git.example/r.git" }
commit "good" {}
commit "first" {}
commit "gone" {}
variant "base" {
  baseline = true
  rev      = each.commit.parent
}
variant "after" {}
task "t" {
  for_each = candidates
  source   = each.source
  command  = "true"
}
`))
	lock := &lockfile.Lock{Repos: map[string]lockfile.Repo{"r": {Revs: map[string]lockfile.Rev{
		"gone": {Unknown: "it is gone"}, "gone^": {Unknown: "it is gone"}, "first^": {Unknown: "it has no parent"},
	}}}}
	spec, files, diags := hclspec.Load(hclspec.Options{Dir: dir, Lock: lock})
	if diags.HasErrors() {
		t.Fatal(told(t, files, diags))
	}
	out := map[string]string{}
	for _, c := range spec.Candidates {
		if c.Out != nil {
			out[c.Key] = c.Out.Reason
		}
	}
	if len(out) != 3 || !strings.Contains(out["first/base"], "it has no parent") ||
		!strings.Contains(out["gone/after"], "it is gone") || out["gone/base"] == "" {
		t.Errorf("out: %v", out)
	}
	if len(spec.Mistakes) != 2 || len(spec.Tasks) != 3 {
		t.Errorf("mistakes %v, %d tasks", spec.Mistakes, len(spec.Tasks))
	}
	if strings.Contains(string(lock.Bytes()), "gone") {
		t.Error("what is not there was written into the lock file")
	}
}

// history answers from a map, and records its questions.
type history struct {
	answers map[hclspec.Question]hclspec.Answer
	asked   []hclspec.Question
}

func (h *history) Ask(q hclspec.Question) (hclspec.Answer, bool) {
	h.asked = append(h.asked, q)
	a, ok := h.answers[q]
	return a, ok
}

// TestHistoriesAreAskedByCommits shows that only questions about known commits are asked.
func TestHistoriesAreAskedByCommits(t *testing.T) {
	dir := project(t, []byte(`-- benchmarks.hcl --
repo "r" { url = "https://git.example/r.git" }
repo "other" { url = "https://git.example/other.git" }
commit "one" { repo = repo.r }
commit "two" { repo = repo.other }
variant "base" {}
skip "s" {
  for_each = commit
  when     = length(git_changed(each.commit)) == 2
  reason   = join(" ", git_changed(each.commit))
}
task "t" {
  for_each = candidates
  command  = "echo ${git_exists(each.rev, "x")} ${git_file(each.commit, "dir/../setup.py")} ${git_describe(each.commit)}"
}
`))
	one, parent := strings.Repeat("1", 40), strings.Repeat("2", 40)
	h := &history{}
	if _, files, diags := hclspec.Load(hclspec.Options{Dir: dir, History: h}); diags.HasErrors() || len(h.asked) > 0 {
		t.Fatal(told(t, files, diags), h.asked)
	}
	lock := &lockfile.Lock{Repos: map[string]lockfile.Repo{"r": {
		Revs:      map[string]lockfile.Rev{"one": {Commit: one, Tree: one}, "one^": {Commit: parent, Tree: one}},
		Described: map[string]string{one: "v1-0-g1111"},
	}}}
	ask := func() *hclspec.Spec {
		t.Helper()
		h.asked = nil
		spec, files, diags := hclspec.Load(hclspec.Options{Dir: dir, History: h, Lock: lock})
		if diags.HasErrors() {
			t.Fatal(told(t, files, diags))
		}
		return spec
	}
	spec := ask()
	changed := hclspec.Question{Repo: "r", About: hclspec.Changed, Commit: one, Parent: parent}
	exists := hclspec.Question{Repo: "r", About: hclspec.Exists, Commit: one, Path: "x"}
	file := hclspec.Question{Repo: "r", About: hclspec.Content, Commit: one, Path: "setup.py"}
	for _, q := range []hclspec.Question{changed, exists, file} {
		if !slices.Contains(h.asked, q) {
			t.Errorf("nobody asked %+v", q)
		}
	}
	if len(spec.Revisions) == 0 || spec.Revisions[0] != (hclspec.Revision{Repo: address("repo.other"), Rev: "two"}) {
		t.Errorf("revisions to be looked up: %v", spec.Revisions)
	}
	h.answers = map[hclspec.Question]hclspec.Answer{changed: {}, exists: {Exists: true},
		file: {Text: []byte("version")}}
	spec = ask()
	if i := slices.IndexFunc(spec.Tasks, func(b hclspec.Task) bool {
		return b.Candidate == "one/base"
	}); spec.Tasks[i].Command.Shell.String() != "echo true version v1-0-g1111" {
		t.Errorf("got %s", spec.Tasks[i].Command.Shell)
	}
	h.answers[changed] = hclspec.Answer{Paths: []string{"a\xff", "b"}}
	if spec = ask(); len(spec.Skips) != 1 || spec.Skips[0].Reason != "a\ufffd b" {
		t.Errorf("skips: %v", spec.Skips)
	}
	h.answers[changed] = hclspec.Answer{Err: "it is gone"}
	if spec = ask(); len(spec.Mistakes) == 0 || !strings.Contains(spec.Mistakes[0].Diagnostic.Detail, "it is gone") {
		t.Errorf("mistakes: %v", spec.Mistakes)
	}
}

// TestFirstMistakesAreTold shows that of many mistakes, always the same ones are reported: the first in the file.
func TestFirstMistakesAreTold(t *testing.T) {
	var file strings.Builder
	file.WriteString("task \"t\" {\n")
	for i := range 300 {
		fmt.Fprintf(&file, "  wrong%d = 1\n", i)
	}
	file.WriteString("}\n")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "benchmarks.hcl"), []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, diags := hclspec.Load(hclspec.Options{Dir: dir})
	if len(diags) < 100 {
		t.Fatalf("%d mistakes", len(diags))
	}
	for i, d := range diags[:99] {
		if d.Subject != nil && d.Subject.Start.Line > 102 {
			t.Errorf("mistake %d is told in line %d", i, d.Subject.Start.Line)
		}
	}
}

// TestAReferenceToARowThatIsLeftOut shows that an error about a row that is missing for its own mistake names that
// mistake.
func TestAReferenceToARowThatIsLeftOut(t *testing.T) {
	dir := project(t, archive(t, "testdata/mistakes/left_out.txtar"))
	_, files, diags := hclspec.Load(hclspec.Options{Dir: dir})
	want := `"bad/agent" is left out until its own mistake is corrected. No patch: There is no file`
	if got := told(t, files, diags); !diags.HasErrors() || !strings.Contains(got, want) {
		t.Error(got)
	}
}
