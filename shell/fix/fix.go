// Package fix implements fixes: their part in keys, in working directories and in the diagnosis of failures. The caller
// decides which fixes are due.
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

// Due is a fix to be applied, evaluated for one candidate.
type Due struct {
	Fix *hclspec.Fix
	hclspec.FixCase
	Digests []string // of the project's files in Files; empty: not a file of the project, or missing
}

// Merge appends those fixes that the list does not have.
func Merge(list, more []Due) []Due {
	for _, f := range more {
		if !slices.ContainsFunc(list, f.is) {
			list = append(list, f)
		}
	}
	return list
}

// Without returns the fixes of a list that are not in the other list.
func Without(list, other []Due) []Due {
	return slices.DeleteFunc(list, func(f Due) bool { return slices.ContainsFunc(other, f.is) })
}

func (f Due) is(other Due) bool { return f.Fix == other.Fix }

// Refer adds the references of the recipes.
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

// Describe adds the recipes to a key, without their names and reasons.
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

// Recipe returns all that a fix does, as text. refer identifies a referenced result.
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

// Source returns the path of the project's file that a fix puts in place; "" if the content comes from elsewhere.
func Source(file hclspec.FixFile) string {
	if len(file.From) != 1 || strings.Contains(file.From[0].Literal, "$") || !filepath.IsLocal(file.From[0].Literal) {
		return ""
	}
	return path.Clean(file.From[0].Literal)
}

// Misplaced returns the failure of a fix whose file cannot be put in place.
func (f Due) Misplaced(err error) error {
	if _, known := errors.AsType[*engine.Failure](err); known {
		return err
	}
	return &engine.Failure{Err: err, Failure: failure.Failure{Class: failure.Permanent, Rule: "fix_file",
		Stage: "build", Message: f.Fix.Address.String() + ": " + err.Error()}}
}

// About adds the fix to the message of a failure.
func (f Due) About(err error) error {
	if failure, ok := errors.AsType[*engine.Failure](err); ok {
		failure.Message = f.Fix.Address.String() + ": " + failure.Message
	}
	return err
}

// failed changes the failure of a recipe's command, so that it names the fix and the command.
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

// Applied returns the event of an applied fix.
func (f Due) Applied() engine.Event {
	return engine.Event{Type: engine.FixApplied, Reason: f.Fix.Description,
		Data: map[string]any{"fix": f.Fix.Address.Name, "effect": f.Fix.Effect}}
}

// rulePrefix begins the name of a rule that is the detect pattern of a fix.
const rulePrefix = "fix."

// Cure is a fix whose detect pattern is matched with the output of failed commands.
type Cure struct {
	Fix *hclspec.Fix
	At  string // block that would get the fix, as kind.name; empty: not learnt, since a patch may be to blame
	Rev string // revision of the block's commit; empty: no commit, or one without code
}

// Detectors returns rules for the fixes that are not applied yet. Fixes that must not be learnt come last, with only a
// remedy.
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

// Wanted returns the name of the fix that a failure's rule asks for.
func Wanted(rule string) (string, bool) { return strings.CutPrefix(rule, rulePrefix) }
