// Package packs holds what benchgraph knows of engines, written in the language of benchmarks.hcl: rules that say what
// a failure means, which every project has, and packs, which a project names to use their blocks.
package packs

import (
	"embed"
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2/hclsimple"
)

// FS holds the files as they are written: a directory for each pack, and failure rules beside them.
//
//go:embed *.hcl vllm/*.hcl sglang/*.hcl
var FS embed.FS

// failureFiles are the files of failure rules in the order in which the rules are tried.
var failureFiles = [...]string{"machine.hcl", "vllm/failures.hcl", "sglang/failures.hcl", "failures.hcl"}

// Failure is one failure block. Its fields are those of the block; the zero value of Attempts and Backoff is the
// default of the class.
type Failure struct {
	Name     string
	Match    string   // RE2, tried on every line of a log
	Stages   []string // fetch, build, start, run, stop, parse, verify; empty: everywhere
	Class    string   // transient, permanent, fixable, invalid or infra
	Remedy   string   // what the user can do
	Wrapper  bool     // it only says that something failed: any other rule goes before it
	Attempts int
	Backoff  time.Duration
}

// file is a file of failure rules.
type file struct {
	Failures []struct {
		Name    string   `hcl:"name,label"`
		Match   string   `hcl:"match"`
		Stages  []string `hcl:"stage,optional"`
		Class   string   `hcl:"class"`
		Remedy  string   `hcl:"remedy"`
		Wrapper bool     `hcl:"wrapper,optional"`
		Retry   *struct {
			Attempts int    `hcl:"attempts"`
			Backoff  string `hcl:"backoff"`
		} `hcl:"retry,block"`
	} `hcl:"failure,block"`
}

// Failures returns the built-in rules in their order. An error is a mistake in the files.
func Failures() ([]Failure, error) {
	var rules []Failure
	for _, name := range failureFiles {
		some, err := failuresOf(name)
		if err != nil {
			return nil, err
		}
		rules = append(rules, some...)
	}
	return rules, nil
}

func failuresOf(name string) ([]Failure, error) {
	src, err := FS.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var f file
	if err := hclsimple.Decode(name, src, nil, &f); err != nil {
		return nil, err
	}
	rules := make([]Failure, len(f.Failures))
	for i, b := range f.Failures {
		rules[i] = Failure{Name: b.Name, Match: b.Match, Stages: b.Stages, Class: b.Class, Remedy: b.Remedy,
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
