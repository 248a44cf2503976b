package repro

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/hclspec"
)

func literal(text string) hclspec.Text { return hclspec.Text{{Literal: text}} }

// run runs a script and returns what it prints on stdout.
func run(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-s")
	cmd.Stdin = strings.NewReader(script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, &problem, script)
	}
	return string(out)
}

func TestAScriptDoesWhatTheFileSaysAndNothingElse(t *testing.T) {
	at := hclspec.Address{Kind: "task", Name: "t"}
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		hostile := rapid.StringOf(rapid.SampledFrom([]rune("a '\"\\$`(){};&|<>*?#!~\n-=OUT"))).Draw(rt, "value")
		spec := &hclspec.Spec{Dir: dir, Tasks: []hclspec.Task{{
			Block: hclspec.Block{Address: at},
			Env:   map[string]hclspec.Text{"VALUE": literal(hostile)},
			Command: hclspec.Command{Argv: []hclspec.Text{literal("printf"), literal("%s\x01%s"),
				literal(strings.ReplaceAll(hostile, "$", "")), literal("$OUT")}},
		}}}
		p := Project{Spec: spec, Lock: &hclspec.Lock{}, Stored: func(hclspec.Address) (string, bool) {
			return "", false
		}}
		script, err := p.Script(at)
		if err != nil {
			rt.Fatal(err)
		}
		got, out, _ := strings.Cut(run(t, script), "\x01")
		if got != strings.ReplaceAll(hostile, "$", "") || !filepath.IsAbs(out) {
			rt.Fatalf("printed %q and %q, want %q", got, out, hostile)
		}
		spec.Tasks[0].Command = hclspec.Command{Shell: literal(`printf %s "$VALUE"`)}
		if script, err = p.Script(at); err != nil {
			rt.Fatal(err)
		}
		if got := run(t, script); got != hostile {
			rt.Fatalf("the environment holds %q, want %q", got, hostile)
		}
	})
}

func TestWhatANodeNeedsIsCopiedOrMade(t *testing.T) {
	at, dep := hclspec.Address{Kind: "task", Name: "t"}, hclspec.Address{Kind: "task", Name: "d"}
	stored := t.TempDir()
	if err := os.WriteFile(filepath.Join(stored, "result"), []byte("from the store"), 0o644); err != nil {
		t.Fatal(err)
	}
	spec := &hclspec.Spec{Dir: t.TempDir(), Tasks: []hclspec.Task{
		{Block: hclspec.Block{Address: dep},
			Command: hclspec.Command{Shell: literal("printf 'made by hand' > $OUT/result")}},
		{Block: hclspec.Block{Address: at}, Data: []hclspec.Data{{Name: "in/put", Ref: dep}},
			Command: hclspec.Command{Shell: hclspec.Text{{Literal: "cat in/put; ls "}, {Ref: dep}}}},
	}}
	for _, there := range []bool{true, false} {
		p := Project{Spec: spec, Lock: &hclspec.Lock{}, Stored: func(hclspec.Address) (string, bool) {
			return stored, there
		}}
		script, err := p.Script(at)
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{true: "from the storeresult\n", false: "made by handresult\n"}[there]
		if got := run(t, script); got != want {
			t.Errorf("stored %v: %q, want %q", there, got, want)
		}
	}
	p := Project{Spec: spec, Lock: &hclspec.Lock{}}
	if _, err := p.Script(hclspec.Address{Kind: "compare", Name: "c"}); err == nil {
		t.Error("a compare has nothing to do by hand, and no error says so")
	}
}

func TestACanaryRunsBeforeEachMemberAndAfterTheLast(t *testing.T) {
	says := func(text string) hclspec.Command { return hclspec.Command{Shell: literal("echo " + text)} }
	member := func(variant string) hclspec.Benchmark {
		return hclspec.Benchmark{
			Block: hclspec.Block{Address: hclspec.Address{Kind: "benchmark", Name: "b", Key: "c/" + variant,
				Keyed: true}, Candidate: "c/" + variant},
			Command: says(variant), Canary: &hclspec.Canary{Command: says("canary for $FOR")},
			Env: map[string]hclspec.Text{"FOR": literal(variant)},
		}
	}
	p := Project{Lock: &hclspec.Lock{}, Stored: func(hclspec.Address) (string, bool) {
		return "", false
	}, Spec: &hclspec.Spec{
		Dir: t.TempDir(), Benchmarks: []hclspec.Benchmark{member("new"), member("old")},
		Variants: []hclspec.Variant{{Name: "new"}, {Name: "old", Baseline: true}},
	}}
	script, err := p.Script(hclspec.Address{Kind: "trial", Name: "b", Key: "c#1", Keyed: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := run(t, script), "canary for old\nnew\ncanary for old\nold\ncanary for old\n"; got != want {
		t.Errorf("it printed %q, want %q", got, want)
	}
}
