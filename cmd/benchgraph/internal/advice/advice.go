// Package advice warns of declarations that are valid and probably not meant.
package advice

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/names"
	"github.com/benchgraph/benchgraph/metrics/units"
)

// adviser collects warnings, each once.
type adviser struct {
	diags hcl.Diagnostics
	said  map[string]bool

	written map[string]string // spellings of names and parameters; nil: not gathered yet
}

// Of returns warnings about a spec and the files that declare it, by name. A faulty spec may lack what they are about,
// and has none.
func Of(spec *hclspec.Spec, files map[string]*hcl.File, faulty bool) hcl.Diagnostics {
	a := &adviser{said: map[string]bool{}}
	if faulty {
		return nil
	}
	a.files(spec, files)
	a.candidates(spec)
	a.commands(spec)
	a.patterns(spec)
	a.patches(spec)
	a.unjudged(spec)
	for i := range spec.Benchmarks {
		b := &spec.Benchmarks[i]
		a.env(b.Block, b.Env)
		if b.Server != nil {
			a.env(b.Block, b.Server.Env)
		} else if b.Canary == nil && b.Check == nil {
			a.estimate(b.Range, b.Address, b.Limits, b.Design.Warmup+b.Design.Passes())
		}
		for _, m := range b.Metrics.Custom {
			a.direction(b.Block, m)
		}
	}
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		a.env(t.Block, t.Env)
		a.estimate(t.Range, t.Address, t.Limits, 1)
	}
	for i := range spec.Wheels {
		if w := &spec.Wheels[i]; w.Build != nil {
			a.env(w.Block, w.Build.Env)
			a.estimate(w.Range, w.Address, w.Build.Limits, 1)
		}
	}
	return a.diags
}

// env warns of values of environment variables.
func (a *adviser) env(b hclspec.Block, env map[string]hclspec.Text) {
	a.secrets(b, env)
	a.endings(b, env)
}

func (a *adviser) warn(at hcl.Range, id, summary, format string, args ...any) {
	if id = summary + " " + id; !a.said[id] {
		a.said[id] = true
		a.diags = append(a.diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Subject: &at, Summary: summary,
			Detail: fmt.Sprintf(format, args...)})
	}
}

// unjudged warns of benchmarks of candidates that no compare judges. In a file without a compare, all are measured for
// their numbers alone.
func (a *adviser) unjudged(spec *hclspec.Spec) {
	judged := judged(spec)
	for i := range spec.Benchmarks {
		b := &spec.Benchmarks[i]
		if name := b.Address.Name; len(spec.Compares) > 0 && !judged[name] && b.Candidate != "" && b.Out == nil {
			a.warn(b.Range, name, "Benchmark that no compare judges",
				"apply measures benchmark.%[1]s, and its numbers give no verdict. Write of = [benchmark.%[1]s] in a "+
					"compare, or remove the benchmark.", name)
		}
	}
}

// judged returns the names of the benchmarks that a compare judges.
func judged(spec *hclspec.Spec) map[string]bool {
	names := map[string]bool{}
	for _, c := range spec.Compares {
		for _, of := range c.Of {
			names[of.Name] = true
		}
	}
	return names
}

// secrets warns of values in the file that look like secrets: they are in keys, logs and results.
func (a *adviser) secrets(b hclspec.Block, env map[string]hclspec.Text) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if value := env[name]; len(value) == 1 && isSecret(name, value[0].Literal) {
			a.warn(b.Range, name, "Secret in the file",
				"The value of %[1]s in env of %[2]s.%[3]s is part of keys, and everybody who has the file or the "+
					"store can read it. Write secrets = [%[1]q] instead, and set %[1]s in the environment of apply.",
				name, b.Address.Kind, b.Address.Name)
		}
	}
}

// isSecret reports whether the name of a variable means a secret and the value may be one. A value that is short, a
// path, a shell variable or a word for nothing is none, such as EMPTY for servers that check no key.
func isSecret(name, value string) bool {
	words := names.Words(name)
	last := len(words) - 1
	switch {
	case last < 0:
		return false
	case slices.Contains([]string{"token", "secret", "password", "passwd", "apikey"}, words[last]):
	case words[last] == "key" && last > 0 &&
		slices.Contains([]string{"api", "access", "secret", "private"}, words[last-1]):
	default:
		return false
	}
	if len(value) < 8 || strings.ContainsAny(value[:1], "<$/.~") || strings.ContainsAny(value, " \n") {
		return false
	}
	for _, word := range names.Words(value) {
		if slices.Contains([]string{"empty", "none", "dummy", "fake", "test", "example", "placeholder", "unused",
			"changeme"}, word) {
			return false
		}
	}
	return true
}

// direction warns of a metric that improves in another direction than its name and unit tell.
func (a *adviser) direction(b hclspec.Block, m hclspec.Metric) {
	unit := units.Canonical(m.Unit)
	words := names.Words(m.Name)
	named := slices.ContainsFunc(words, func(word string) bool {
		return slices.Contains([]string{"latency", "ttft", "tpot", "itl", "e2el", "throughput"}, word)
	})
	higher, known := metrics.Better(m.Name+" "+m.Unit, m.Unit)
	usual := map[bool]string{true: "higher", false: "lower"}[higher]
	if !known || m.Better == "" || m.Better == usual || !named && !units.IsTime(unit) && !strings.Contains(unit, "/") {
		return
	}
	what := fmt.Sprintf("%q", m.Name)
	if m.Unit != "" {
		what += " in " + m.Unit
	}
	a.warn(b.Range, b.Address.Name+" "+m.Name, "Unusual direction",
		"The metric %s of benchmark.%s says better = %q, so that each verdict is the reverse of the usual one. If "+
			"that is not meant, write better = %q.", what, b.Address.Name, m.Better, usual)
}
