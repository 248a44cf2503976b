package fix_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/executortest"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
	"github.com/benchgraph/benchgraph/shell/fix"
)

func named(name, detect string) *hclspec.Fix {
	return &hclspec.Fix{Block: hclspec.Block{Address: hclspec.Address{Kind: "fix", Name: name}}, Detect: detect,
		Description: "puts a header there", Effect: "neutral"}
}

func text(s string) hclspec.Text { return hclspec.Text{{Literal: s}} }

// bench returns a shell in an empty directory, whose commands print their last word and fail.
func bench(t *testing.T, project string, allowed ...*hclspec.Fix) (s *fix.Shell, work string, told func() string) {
	fake := executortest.NewFake().
		On("fails", func(cmd executor.Command) executortest.FakeRun {
			return executortest.FakeRun{Stdout: cmd.Argv[len(cmd.Argv)-1], Status: executor.Status{Code: 1}}
		}).
		On("sh", func(executor.Command) executortest.FakeRun { return executortest.FakeRun{} })
	work = filepath.Join(t.TempDir(), "work")
	var log bytes.Buffer
	env := &engine.Env{Scratch: t.TempDir(), Log: &log, Emit: func(e engine.Event) {
		fmt.Fprintln(&log, e.Type, e.Data["fix"])
	}}
	cures := make([]fix.Cure, len(allowed))
	for i, f := range allowed {
		cures[i] = fix.Cure{Fix: f, At: "wheel.w"}
	}
	config := shell.Config{Host: fake, Rules: func() (diagnosis.Rules, error) { return diagnosis.NewRules(nil, nil) }}
	s, err := fix.Open(config, env, nil, shell.Place{Dir: work, Out: t.TempDir()}, project, cures, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, work, log.String
}

func ruleOf(err error) string {
	if f, ok := errors.AsType[*engine.Failure](err); ok {
		return f.Rule
	}
	return ""
}

// A fix does all that it says, and is not asked for again; another fix still is.
func TestAFixIsAppliedOnceAndOthersAreLearnt(t *testing.T) {
	project := t.TempDir()
	if err := os.WriteFile(filepath.Join(project, "header.h"), []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	one, other := named("header", "no header"), named("flag", "no flag")
	s, work, told := bench(t, project, one, other)
	fails := func(with string) string {
		return ruleOf(s.Run(t.Context(), "run", hclspec.Command{Argv: []hclspec.Text{text("fails"), text(with)}}, 0,
			nil))
	}
	if got := fails("no header"); got != "fix.header" {
		t.Errorf("before it is applied: %q", got)
	}
	err := s.Apply(t.Context(), []fix.Due{{Fix: one, Digests: []string{fmt.Sprintf("%x", sha256.Sum256([]byte("new")))},
		FixCase: hclspec.FixCase{
			Files:  []hclspec.FixFile{{From: text("header.h"), To: text("include/header.h")}},
			Run:    []hclspec.Text{text("make headers")},
			Verify: hclspec.Command{Shell: text("test -f include/header.h")},
		}}})
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(work, "include/header.h")); err != nil || string(content) != "new" {
		t.Errorf("%q, %v", content, err)
	}
	if got := told(); !strings.Contains(got, "make headers") || !strings.Contains(got, "test -f include") ||
		!strings.Contains(got, string(engine.FixApplied)+" header") {
		t.Errorf("%q", got)
	}
	if got := fails("no header"); got == "fix.header" {
		t.Error("it is asked for again")
	}
	if got := fails("no flag"); got != "fix.flag" {
		t.Errorf("the other one: %q", got)
	}
	if name, ok := fix.Wanted("fix.flag"); !ok || name != "flag" {
		t.Errorf("%q, %t", name, ok)
	}
}

// A fix must stay in its directory and use the planned files, or it fails.
func TestAFixThatCannotBeAppliedHasFailed(t *testing.T) {
	project := t.TempDir()
	if err := os.WriteFile(filepath.Join(project, "header.h"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	put := func(from, to string) hclspec.FixCase {
		return hclspec.FixCase{Files: []hclspec.FixFile{{From: text(from), To: text(to)}}}
	}
	for rule, c := range map[string]hclspec.FixCase{
		"fix_file":        put("missing.h", "header.h"),
		"input_changed":   put("header.h", "header.h"),
		"fix_needs_image": {Pip: []string{"torch==2"}},
	} {
		s, _, _ := bench(t, project)
		err := s.Apply(t.Context(), []fix.Due{{Fix: named("header", ""), FixCase: c,
			Digests: []string{"of another one"}}})
		if ruleOf(err) != rule {
			t.Errorf("want %s: %v", rule, err)
		}
	}
	s, work, _ := bench(t, project)
	err := s.Apply(t.Context(), []fix.Due{{Fix: named("header", ""), FixCase: put("header.h", "../header.h"),
		Digests: []string{"of another one"}}})
	if _, outside := os.Stat(filepath.Join(work, "../header.h")); ruleOf(err) != "fix_file" || outside == nil {
		t.Errorf("outside of its directory: %v", err)
	}
}
