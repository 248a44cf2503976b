package python

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/benchgraph/benchgraph/internal/sh"
	"github.com/benchgraph/benchgraph/preflight/program"
)

// Answer says whether a parser knows an option.
type Answer int

const (
	Unknown Answer = iota
	Known
	Ambiguous
)

// Match returns the options of the parser that an option of a command matches: by name, negation, abbreviation or part.
func (a *Parser) Match(name string) ([]*Option, Answer) {
	spell := func(s string) string { return s }
	if a.Flexible {
		spell = program.Canonical
	}
	name = spell(name)
	if name == "-h" || name == "--help" || a.Flexible && name == "--config" {
		return nil, Known
	}
	var exact, begun []*Option
	full := map[string]bool{}
	for i := range a.Options {
		o := &a.Options[i]
		for _, n := range o.Names {
			n = spell(n)
			negated := strings.HasPrefix(n, "--") && name == "--no-"+n[2:] &&
				(o.splat || o.action == "BooleanOptionalAction")
			dotted := a.Flexible && strings.HasPrefix(n, "-") && strings.HasPrefix(name, n+".")
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
		return exact, Known
	case len(full) == 1:
		return begun, Known
	case len(full) > 1:
		return begun, Ambiguous
	}
	return nil, Unknown
}

// bare reports whether an option takes no value.
func (o *Option) bare() bool {
	return !o.splat && slices.Contains([]string{"store_true", "store_false", "store_const", "count",
		"BooleanOptionalAction"}, o.action)
}

// wantsValue reports whether an option needs a value that the given name does not contain, as -n5 does.
func (o *Option) wantsValue(given string) bool {
	if o.splat || o.dynamic || !slices.Contains([]string{"", "store", "append"}, o.action) ||
		!slices.Contains([]string{"", "+", "1"}, o.nargs) {
		return false
	}
	return strings.HasPrefix(given, "--") || slices.Contains(o.Names, given)
}

// isOption reports whether o is an option, and no positional argument.
func (o *Option) isOption() bool { return len(o.Names) == 0 || strings.HasPrefix(o.Names[0], "-") }

// Missing returns the required options that are not given.
func (a *Parser) Missing(given []program.Flag) (names []string) {
	for i := range a.Options {
		if o := &a.Options[i]; a.single && o.required && o.isOption() && !slices.ContainsFunc(given,
			func(f program.Flag) bool {
				options, _ := a.Match(f.Name)
				return slices.Contains(options, o)
			}) {
			names = append(names, o.Names[0])
		}
	}
	return names
}

// Near returns the option with the most similar name; "" if none is similar.
func (a *Parser) Near(name string) string {
	best, like := "", 0.75
	for _, o := range a.Options {
		for _, n := range o.Names {
			m := levenshtein.Match(program.Canonical(name), program.Canonical(n), nil)
			if strings.HasPrefix(n, "--") && m > like {
				best, like = n, m
			}
		}
	}
	return best
}

// Refuses returns why the parser refuses a known option as it is given; "" if it accepts the option.
func (a *Parser) Refuses(f *program.Flag) (mistake, remedy string) {
	options, k := a.Match(f.Name)
	all := func(is func(*Option) bool) bool {
		return len(options) > 0 && !slices.ContainsFunc(options, func(o *Option) bool { return !is(o) })
	}
	switch {
	case k == Ambiguous && !a.Flexible:
		var list []string
		for _, o := range options {
			if !slices.Contains(list, o.Names[0]) {
				list = append(list, o.Names[0])
			}
		}
		return f.Name + " is ambiguous: it could be " + strings.Join(list, ", "), "write the option in full"
	case !f.Given && all(func(o *Option) bool { return o.wantsValue(f.Name) }):
		return f.Name + " has no value", "write its value, or leave the option out"
	case !f.Given || f.Value.Partial || strings.Contains(f.Value.Text, sh.Ref):
	case all(func(o *Option) bool { return o.choices != nil && !o.typed && !slices.Contains(o.choices, f.Value.Text) }):
		return fmt.Sprintf("%s takes one of %s, not %q", f.Name, strings.Join(options[0].choices, ", "), f.Value.Text),
			"write one of them"
	case !f.Joined && all((*Option).bare) && !slices.ContainsFunc(a.Options, func(o Option) bool {
		return !o.isOption()
	}):
		return fmt.Sprintf("%s takes no value, and is followed by %q", f.Name, f.Value.Text), "leave the value out"
	}
	return "", ""
}
