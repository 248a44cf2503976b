// Package fix says what a fix does: to keys, to a working directory, to what a failure means. Which fixes are due is
// decided elsewhere.
package fix

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/shell/input"
)

// Due is a fix that is to be applied, as evaluated for one candidate.
type Due struct {
	Fix *hclspec.Fix
	hclspec.FixCase
	Digests []string // of the project's files that Files come from; empty: not one, or not there
}

// Merge appends the fixes that are not there yet.
func Merge(list, more []Due) []Due {
	for _, f := range more {
		if !slices.ContainsFunc(list, f.is) {
			list = append(list, f)
		}
	}
	return list
}

// Without are the fixes of a list that are not in the other one.
func Without(list, other []Due) []Due {
	return slices.DeleteFunc(list, func(f Due) bool { return slices.ContainsFunc(other, f.is) })
}

func (f Due) is(other Due) bool { return f.Fix == other.Fix }

// Refer adds what the recipes refer to.
func Refer(r *input.Refs, fixes []Due) {
	for _, f := range fixes {
		r.AddText(f.Run...)
		r.AddCommand(f.Verify)
		r.AddEnv(f.Env)
		for _, file := range f.Files {
			r.AddText(file.From, file.To)
		}
	}
}

// Describe writes the recipes, not their names or reasons, into a key.
func Describe(d *cache.Description, r input.Refs, fixes []Due) {
	for _, f := range fixes {
		d.Add("fix", f.Fix.Effect)
		for _, run := range f.Run {
			d.Add("fix.run", run.Expand(r.Label))
		}
		for i, file := range f.Files {
			d.Add("fix.file", file.From.Expand(r.Label), f.Digests[i], file.Content, file.To.Expand(r.Label))
		}
		r.DescribeEnv(d, f.Env)
		d.Add("fix.pip", f.Pip...)
		r.DescribeCommand(d, "fix.verify", f.Verify)
	}
}

// Recipe is all that a fix does, as text. refer identifies what is behind a reference.
func (f Due) Recipe(refer func(hclspec.Address) string) string {
	var does []string
	for i, file := range f.Files {
		does = append(does, fmt.Sprintf("file %s = %q", file.To.Expand(refer), []string{file.From.Expand(refer),
			f.Digests[i], fmt.Sprintf("%x", sha256.Sum256([]byte(file.Content)))}))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		does = append(does, fmt.Sprintf("env %s = %q", name, f.Env[name].Expand(refer)))
	}
	for _, run := range f.Run {
		does = append(does, fmt.Sprintf("run %q", run.Expand(refer)))
	}
	if len(f.Pip) > 0 {
		does = append(does, fmt.Sprintf("pip %q", f.Pip))
	}
	return strings.Join(does, "; ")
}

// Source is the project's file that a fix puts in place; empty when it comes from somewhere else.
func Source(file hclspec.FixFile) string {
	if len(file.From) != 1 || strings.Contains(file.From[0].Literal, "$") || !filepath.IsLocal(file.From[0].Literal) {
		return ""
	}
	return path.Clean(file.From[0].Literal)
}

// Misplaced is the failure of a fix whose file cannot be put in place.
func (f Due) Misplaced(err error) error {
	if _, known := errors.AsType[*engine.Failure](err); known {
		return err
	}
	return &engine.Failure{Err: err, Failure: failure.Failure{Class: failure.Permanent, Rule: "fix_file",
		Stage: "build", Message: f.Fix.Address.String() + ": " + err.Error()}}
}

// About says of a failure which fix it is of.
func (f Due) About(err error) error {
	if failure, ok := errors.AsType[*engine.Failure](err); ok {
		failure.Message = f.Fix.Address.String() + ": " + failure.Message
	}
	return err
}

// failed is the failure of a command of the recipe: not of what the fix is applied to.
func (f Due) failed(err error, step string, command hclspec.Command) error {
	const most = 60
	text := command.Shell.String()
	for _, word := range command.Argv {
		text = strings.TrimPrefix(text+" "+word.String(), " ")
	}
	if first, _, more := strings.Cut(strings.TrimSpace(text), "\n"); more || len(first) > most {
		text = strings.ToValidUTF8(first[:min(len(first), most)], "") + " …"
	}
	if failure, ok := errors.AsType[*engine.Failure](err); ok {
		failure.Message = fmt.Sprintf("%s %q: %s", step, text, strings.TrimPrefix(failure.Message, failure.Stage+": "))
	}
	return f.About(err)
}

// Applied is the event of a fix that was applied.
func (f Due) Applied() engine.Event {
	return engine.Event{Type: engine.FixApplied, Reason: f.Fix.Description,
		Data: map[string]any{"fix": f.Fix.Address.Name, "effect": f.Fix.Effect}}
}

// rulePrefix is how a rule is named that is a fix's detect.
const rulePrefix = "fix."

// Cure is a fix whose detect is looked for in the output of what fails.
type Cure struct {
	Fix *hclspec.Fix
	At  string // block that it is then applied to, as kind.name; empty: a patch may be to blame, so nothing is learnt
	Rev string // of the commit that the block is for; empty: it has no code, or there is no commit
}

// Detectors are rules for the fixes that are not applied yet. Those that are not learnt come last, and have a remedy
// alone.
func Detectors(cures []Cure, applied []Due) []classify.Rule {
	var rules, last []classify.Rule
	for _, c := range cures {
		name := rulePrefix + c.Fix.Address.Name
		rule := classify.Rule{Pattern: regexp.MustCompile(c.Fix.Detect), Rule: failure.Rule{Name: name,
			Class: failure.Fixable}}
		switch {
		case c.Fix.Detect == "" || slices.ContainsFunc(applied, Due{Fix: c.Fix}.is):
		case c.At == "":
			rule.Rule = failure.Rule{Remedy: name + " matches, and is not learnt from a variant with a patch, since " +
				"the patch may be to blame: if it is not, set patches = true in that fix"}
			last = append(last, rule)
		default:
			rules = append(rules, rule)
		}
	}
	return append(rules, last...)
}

// Wanted is the name of the fix that a failure's rule asks for.
func Wanted(rule string) (string, bool) { return strings.CutPrefix(rule, rulePrefix) }
