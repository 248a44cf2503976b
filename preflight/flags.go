package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/benchgraph/benchgraph/internal/sh"
)

// know is what a parser says of one option of a command.
type know int

const (
	unknownFlag know = iota
	knownFlag
	ambiguousFlag
)

// match finds the options that an option of a command means: itself, its negation, an abbreviation, or part of it.
func (a *argParser) match(name string) ([]*option, know) {
	spell := func(s string) string { return s }
	if a.flexible {
		spell = canonical
	}
	name = spell(name)
	if name == "-h" || name == "--help" || a.flexible && name == "--config" {
		return nil, knownFlag
	}
	var exact, begun []*option
	full := map[string]bool{}
	for i := range a.options {
		o := &a.options[i]
		for _, n := range o.names {
			n = spell(n)
			negated := strings.HasPrefix(n, "--") && name == "--no-"+n[2:] &&
				(o.splat || o.action == "BooleanOptionalAction")
			dotted := a.flexible && strings.HasPrefix(n, "-") && strings.HasPrefix(name, n+".")
			attached := len(n) == 2 && n[0] == '-' && n[1] != '-' && strings.HasPrefix(name, n) &&
				!strings.HasPrefix(name, "--")
			switch {
			case n == name, negated, dotted, attached:
				exact = append(exact, o)
			case strings.HasPrefix(n, "--") && strings.HasPrefix(n, name) && len(name) > 2:
				begun = append(begun, o)
				full[n] = true
			}
		}
	}
	switch {
	case len(exact) > 0:
		return exact, knownFlag
	case len(full) == 1:
		return begun, knownFlag
	case len(full) > 1:
		return begun, ambiguousFlag
	}
	return nil, unknownFlag
}

// flags checks the options of a program against its parser; other is the parser of the benchmark's other side, nil for
// none.
func (c *checker) flags(p *program, a, other *argParser) {
	clean := true
	doubt := func(evidence, remedy string, certain bool) {
		clean = false
		if certain && a.unread == "" && !a.tolerates && !p.Maybe && !p.mended {
			c.add(Flag, Fail, evidence, remedy)
			return
		}
		if a.unread != "" {
			evidence += "; " + a.unread
		}
		c.add(Flag, Unverified, evidence, remedy)
	}
	given := flags(p.args)
	for _, f := range given {
		if strings.Contains(f.name, "$") || strings.Contains(f.name, sh.Ref) {
			continue
		}
		options, k := a.match(f.name)
		switch {
		case k == unknownFlag:
			doubt(fmt.Sprintf("%s does not know %s", p.title(), f.name), remedyFor(p, f.name, a, other), true)
		case k == ambiguousFlag && !a.flexible:
			doubt(fmt.Sprintf("%s: %s is ambiguous: it could be %s", p.title(), f.name, names(options)),
				"write the option in full", true)
		default:
			c.value(p, &f, options, a, doubt)
		}
	}
	for i := range a.options {
		if o := &a.options[i]; a.single && o.must && o.isOption() && !slices.ContainsFunc(given, func(f flag) bool {
			options, _ := a.match(f.name)
			return slices.Contains(options, o)
		}) {
			doubt(fmt.Sprintf("%s requires %s", p.title(), o.names[0]), "add it to the command", true)
		}
	}
	if w, ok := p.value("--speculative-model"); ok && w.Text == "[ngram]" && !p.has("--ngram-prompt-lookup-max") {
		clean = false
		remedy := "say how many tokens are looked up, such as --ngram-prompt-lookup-max 4"
		if _, k := a.match("--ngram-prompt-lookup-max"); k == unknownFlag {
			remedy = "measure by a server: this program does not have the option"
		}
		c.add(Flag, Warn,
			p.title()+": --speculative-model [ngram] goes with --ngram-prompt-lookup-max, which is not given", remedy)
	}
	switch {
	case a.unread != "" && clean && len(a.options) == 0:
		c.add(Flag, Unverified, p.title()+": "+a.unread, "")
	case clean:
		c.add(Flag, OK, fmt.Sprintf("%s knows all %d options", p.title(), len(given)), "")
	}
}

// value checks the value of an option.
func (c *checker) value(p *program, f *flag, options []*option, a *argParser,
	doubt func(evidence, remedy string, certain bool)) {
	all := func(is func(*option) bool) bool {
		return !slices.ContainsFunc(options, func(o *option) bool { return !is(o) })
	}
	if !f.given && len(options) > 0 && all(func(o *option) bool { return o.wantsValue(f.name) }) {
		doubt(fmt.Sprintf("%s: %s has no value", p.title(), f.name), "write its value, or leave the option out", true)
	}
	if !f.given || f.value.Partial || len(options) == 0 || strings.Contains(f.value.Text, sh.Ref) {
		return
	}
	switch {
	case all(func(o *option) bool { return o.choices != nil && !o.typed && !slices.Contains(o.choices, f.value.Text) }):
		doubt(fmt.Sprintf("%s: %s takes one of %s, not %q", p.title(), f.name, strings.Join(options[0].choices, ", "),
			f.value.Text), "write one of them", true)
	case !f.joined && all((*option).bare) && !slices.ContainsFunc(a.options, func(o option) bool {
		return !o.isOption()
	}):
		doubt(fmt.Sprintf("%s: %s takes no value, and is followed by %q", p.title(), f.name, f.value.Text),
			"leave the value out", true)
	}
}

// bare reports whether an option takes no value.
func (o *option) bare() bool {
	return !o.splat && slices.Contains([]string{"store_true", "store_false", "store_const", "count",
		"BooleanOptionalAction"}, o.action)
}

// wantsValue reports whether an option takes at least one value, and the name that is given does not hold it, as -n5
// does.
func (o *option) wantsValue(given string) bool {
	if o.splat || o.dynamic || !slices.Contains([]string{"", "store", "append"}, o.action) ||
		!slices.Contains([]string{"", "+", "1"}, o.nargs) {
		return false
	}
	return strings.HasPrefix(given, "--") || slices.Contains(o.names, given)
}

// isOption reports whether it is no positional argument.
func (o *option) isOption() bool { return len(o.names) == 0 || strings.HasPrefix(o.names[0], "-") }

func names(options []*option) string {
	var list []string
	for _, o := range options {
		if !slices.Contains(list, o.names[0]) {
			list = append(list, o.names[0])
		}
	}
	return strings.Join(list, ", ")
}

// remedyFor says where an unknown option belongs, or what it may have been meant to be.
func remedyFor(p *program, name string, a, other *argParser) string {
	if other != nil {
		if _, k := other.match(name); k == knownFlag {
			if p.side == server {
				return name + " belongs to the client: put it into the benchmark's command"
			}
			return name + " belongs to the server: put it into server.command"
		}
	}
	best, like := "", 0.75
	for _, o := range a.options {
		for _, n := range o.names {
			if m := levenshtein.Match(canonical(name), canonical(n), nil); strings.HasPrefix(n, "--") && m > like {
				best, like = n, m
			}
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %s? Else leave it out: this revision does not have it", best)
	}
	if p.side == client && engineFlags[canonical(name)] {
		return name + " belongs to the server: put it into server.command"
	}
	return "leave it out: this revision does not have it"
}

// engineFlags are options that every serving engine takes, for benchmarks whose server cannot be read.
var engineFlags = map[string]bool{
	"--tensor-parallel-size": true, "-tp": true, "--tp": true, "--dtype": true, "--quantization": true, "-q": true,
	"--max-model-len":          true,
	"--gpu-memory-utilization": true, "--enable-prefix-caching": true, "--enable-chunked-prefill": true,
	"--max-num-batched-tokens": true,
	"--max-num-seqs":           true, "--kv-cache-dtype": true, "--enforce-eager": true, "--load-format": true,
	"--use-v2-block-manager": true,
	"--speculative-model":    true, "--num-speculative-tokens": true, "--pipeline-parallel-size": true,
	"--guided-decoding-backend": true,
	"--multi-step":              true, "--num-scheduler-steps": true, "--trust-remote-code": true,
}
