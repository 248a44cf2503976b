package hclspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

func skipSchema() *eval.Schema {
	return &eval.Schema{Kind: "skip", Label: true, Free: []string{"for_each", "when", "reason"}}
}

func knownIssueSchema() *eval.Schema {
	return &eval.Schema{Kind: "known_issue", Label: true, Key: []string{"probe", "sandbox"},
		Free: []string{"for_each", "when", "reason"}}
}

// excluding reports whether blocks of the kind take rows out.
func excluding(kind string) bool { return kind == "skip" || kind == "known_issue" }

// exclude finds the rows that are skipped, before anything else of them is evaluated.
func (l *loader) exclude() {
	for _, kind := range []string{"skip", "known_issue"} {
		for _, d := range l.of(kind) {
			if d.Attrs["reason"] == nil && !d.Meant("reason") { // a mistake of the block, not of a row
				l.scope.Diags.Error("", d.Range, "Missing reason", fmt.Sprintf(
					"%s %q needs reason: a sentence that plan and every report show.", kind, d.Name))
			}
			l.decodeAll(l.kinds[kind], d, 1)
			l.unmet(d)
		}
	}
	for _, c := range l.spec.Candidates {
		if out := l.rows.out[row{commit: c.Commit}]; out != nil && out.Skipped {
			l.leaveOut(row{c.Commit, c.Key}, out)
		}
	}
}

// unmet warns of a for_each whose condition nothing meets. A condition on more than candidates and commits, such as on
// a variable, may be false at times.
func (l *loader) unmet(d *declaration) {
	if !d.known || len(d.instances)+len(l.rows.list) > 0 {
		return
	}
	root, condition := eval.Filter(d.Attrs["for_each"].Expr)
	if root == "candidates" && len(l.spec.Candidates) > 0 || root == "commit" && len(l.spec.Commits) > 0 {
		l.scope.Diags.Warn("", condition, "Condition never met", fmt.Sprintf(
			"No %s meets this condition: %s is about nothing. Correct the condition, or remove the block.",
			strings.TrimSuffix(root, "s"), d.address))
	}
}

// withFaulty adds the instances with a mistake to those of a skip over all commits or all candidates: the skip may be
// the answer to the mistake.
func (l *loader) withFaulty(d *declaration, instances []instance) []instance {
	if !excluding(d.address.Kind) || len(l.rows.list) == 0 || d.Attrs["for_each"] == nil {
		return instances
	}
	t, diags := hcl.AbsTraversalForExpr(d.Attrs["for_each"].Expr)
	if diags.HasErrors() || len(t) != 1 {
		return instances
	}
	all := slices.Clone(instances)
	for _, c := range l.spec.Commits {
		if t.RootName() == "commit" && c.Out != nil {
			all = append(all, instance{c.Name, l.allCommits().byName[c.Name]})
		}
	}
	for i, c := range l.spec.Candidates {
		if t.RootName() == "candidates" && c.Out != nil {
			all = append(all, instance{c.Key, l.candidates().values[i]})
		}
	}
	slices.SortFunc(all, func(a, b instance) int { return strings.Compare(a.key, b.key) })
	return all
}

func decodeSkip(r reader, b Block) {
	all := r.excluded(b)
	if len(all) == 0 && !r.l.shadow || !r.Has("reason") {
		return // the reason may use attributes that only skipped commits have
	}
	r.Need("reason", "a sentence that plan and every report show")
	reason := r.Str("reason")
	for _, b := range all {
		r.l.spec.Skips = append(r.l.spec.Skips, Skip{Block: b, Reason: reason})
		r.l.skip(r.Instance, b.Candidate, reason)
	}
}

func decodeKnownIssue(r reader, b Block) {
	if r.Has("reason") {
		r.Need("reason", "what is broken")
	}
	issue := KnownIssue{Probe: r.command("probe"), Sandbox: r.sandbox(), Reason: r.Str("reason")}
	for _, b := range r.excluded(b) {
		issue.Block = b
		r.l.spec.KnownIssues = append(r.l.spec.KnownIssues, issue)
		if issue.Probe.Shell == nil && issue.Probe.Argv == nil {
			r.l.skip(r.Instance, b.Candidate, "known issue: "+issue.Reason)
		}
	}
}

// skip takes a row out, with or without a mistake. key is the key of the instance of the skip.
func (l *loader) skip(key, candidate, reason string) {
	r := row{commit: key}
	if key == candidate {
		r = l.rowOf(candidate)
	}
	if l.shadow || l.rows.out[r] != nil && l.rows.out[r].Skipped {
		return
	}
	if l.rows.out == nil {
		l.rows.out = map[row]*Out{}
	}
	l.rows.out[r] = &Out{Skipped: true, Reason: reason}
}

// excluded returns the candidates of the instance, if its condition holds: the one that its key names, or all
// candidates of the commit that its key names.
func (r reader) excluded(b Block) []Block {
	holds := r.When("when")
	switch {
	case !r.Has("for_each"):
		r.Fail(b.Range, "Missing for_each", "%s must say what it is about: for_each = candidates, or a part of them.",
			r.Title())
		return nil
	case r.l.shadow:
		return nil
	case b.Candidate != "":
		if holds {
			return []Block{b}
		}
		return nil
	}
	var all []Block
	for _, c := range r.l.spec.Candidates {
		if c.Commit == r.Instance {
			b.Address.Key, b.Candidate = c.Key, c.Key
			all = append(all, b)
		}
	}
	if _, ok := r.l.allCommits().byName[r.Instance]; !ok && r.l.candidates().value.IsKnown() {
		r.Fail(r.At("for_each"), "Not a candidate", "%q names neither a candidate (commit/variant) nor a commit.",
			r.Instance)
	}
	if !holds {
		return nil
	}
	return all
}
