// Package packs holds what every project is given: rules that say what a failure means, written in the language of
// benchmarks.hcl.
package packs

import (
	"embed"
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2/hclsimple"
)

// FS holds the packs as they are written, for whoever wants to show or copy them.
//
//go:embed *.hcl
var FS embed.FS

// Failure is one failure block. Its fields are those of the block; the zero value of Attempts and Backoff is the default
// of the class.
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

// file is failures.hcl.
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

// Failures returns the built-in rules in their order. An error is a mistake in the pack.
func Failures() ([]Failure, error) {
	const name = "failures.hcl"
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
		rules[i] = Failure{Name: b.Name, Match: b.Match, Stages: b.Stages, Class: b.Class, Remedy: b.Remedy, Wrapper: b.Wrapper}
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
