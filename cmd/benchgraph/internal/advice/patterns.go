package advice

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec"
)

// patterns warns of patterns that match no line or every line, and of rules that never decide.
func (a *adviser) patterns(spec *hclspec.Spec) {
	type lines struct {
		match   string
		wrapper bool
	}
	deciding := map[lines][]*hclspec.FailureRule{}
	for i := range spec.Failures {
		rule := &spec.Failures[i]
		a.pattern(rule.Range, rule.Address, "match", rule.Match, true)
		same := lines{rule.Match, rule.Wrapper}
		first := slices.IndexFunc(deciding[same], func(before *hclspec.FailureRule) bool {
			return covers(before.Stages, rule.Stages)
		})
		if first < 0 {
			deciding[same] = append(deciding[same], rule)
			continue
		}
		a.warn(rule.Range, rule.Address.String(), "Rule that never decides",
			"%s has the same pattern and comes first, so that %s never decides. Remove one of them.",
			deciding[same][first].Address, rule.Address)
	}
	for i := range spec.Fixes {
		a.pattern(spec.Fixes[i].Range, spec.Fixes[i].Address, "detect", spec.Fixes[i].Detect, true)
	}
	for i := range spec.Benchmarks {
		b := &spec.Benchmarks[i]
		of := hclspec.Address{Kind: b.Address.Kind, Name: b.Address.Name}
		if b.Server != nil {
			a.pattern(b.Range, of, "log", b.Server.Log, true)
		}
		if b.Canary != nil {
			a.pattern(b.Canary.Range, of, "match", b.Canary.Metric.Match, false)
		}
		for _, m := range b.Metrics.Custom {
			a.pattern(b.Range, of, "match", m.Match, false)
		}
	}
}

// covers reports whether a rule of some stages is tried at all others. No stage means all of them.
func covers(stages, others []string) bool {
	return len(stages) == 0 || len(others) > 0 && !slices.ContainsFunc(others, func(stage string) bool {
		return !slices.Contains(stages, stage)
	})
}

// pattern warns of a pattern that matches no line and, if a match alone counts, of one that matches every line.
func (a *adviser) pattern(at hcl.Range, of hclspec.Address, name, pattern string, counts bool) {
	id := fmt.Sprintf("%s %q %t", of, pattern, counts)
	if pattern == "" || a.said[id] {
		return
	}
	a.said[id] = true // the instances of a block have mostly one pattern
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return
	}
	if overLines(tree.Simplify()) {
		a.warn(at, of.String()+pattern, "Pattern that matches no line",
			"%s of %s matches only texts with a line break, and it is tried on every line by itself. Write the "+
				"pattern of one line, in quotes and not as a heredoc.", name, of)
		return
	}
	if re, err := regexp.Compile(pattern); counts && err == nil &&
		re.MatchString("") && re.MatchString("a") && re.MatchString("\t 0 ~") {
		a.warn(at, of.String()+pattern, "Pattern that matches every line",
			"%s of %s matches every line, whatever it says. Write what the meant line holds.", name, of)
	}
}

// overLines reports whether every match of a pattern has a line break.
func overLines(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return slices.Contains(re.Rune, '\n')
	case syntax.OpCharClass:
		return slices.Equal(re.Rune, []rune{'\n', '\n'})
	case syntax.OpCapture, syntax.OpPlus, syntax.OpConcat:
		return slices.ContainsFunc(re.Sub, overLines)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !overLines(sub) })
	default:
		return false
	}
}
