// Package packs has the knowledge of benchgraph about engines, in the language of benchmarks.hcl: failure rules, which
// every project has, and packs, which a project names to use their blocks.
package packs

import (
	"embed"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2/hclsimple"

	"github.com/benchgraph/benchgraph/failure"
)

// FS has the files as they are written: a directory for each pack, and failure rules beside them.
//
//go:embed *.hcl vllm/*.hcl sglang/*.hcl
var FS embed.FS

// failureFiles are the files of failure rules in the order in which the rules are tried.
var failureFiles = [...]string{"machine.hcl", "vllm/failures.hcl", "sglang/failures.hcl", "failures.hcl"}

// file is a file of failure rules.
type file struct {
	Failures []struct {
		Name    string        `hcl:"name,label"`
		Match   string        `hcl:"match"`
		Stages  []string      `hcl:"stage,optional"`
		Class   failure.Class `hcl:"class"`
		Remedy  string        `hcl:"remedy"`
		Wrapper bool          `hcl:"wrapper,optional"`
		Retry   *struct {
			Attempts int    `hcl:"attempts"`
			Backoff  string `hcl:"backoff"`
		} `hcl:"retry,block"`
	} `hcl:"failure,block"`
}

// Rules returns the built-in rules in their order. Callers must not change them. An error is a mistake in the files.
func Rules() ([]failure.Rule, error) { return builtin() }

// builtin reads the files once, since they are part of this program.
var builtin = sync.OnceValues(func() ([]failure.Rule, error) {
	var rules []failure.Rule
	for _, name := range failureFiles {
		some, err := rulesOf(name)
		if err != nil {
			return nil, err
		}
		rules = append(rules, some...)
	}
	return rules, nil
})

func rulesOf(name string) ([]failure.Rule, error) {
	src, err := FS.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var f file
	if err := hclsimple.Decode(name, src, nil, &f); err != nil {
		return nil, err
	}
	rules := make([]failure.Rule, len(f.Failures))
	for i, b := range f.Failures {
		rules[i] = failure.Rule{Name: b.Name, Match: b.Match, Stages: b.Stages, Class: b.Class, Remedy: b.Remedy,
			Wrapper: b.Wrapper}
		if b.Retry == nil {
			continue
		}
		rules[i].Attempts = b.Retry.Attempts
		if rules[i].Backoff, err = time.ParseDuration(b.Retry.Backoff); err != nil {
			return nil, fmt.Errorf("%s: failure %q: backoff: %w", name, b.Name, err)
		}
	}
	return rules, nil
}
