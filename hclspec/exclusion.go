package hclspec

import (
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

func skipSchema() *eval.Schema {
	return &eval.Schema{Kind: "skip", Label: true, Free: []string{"for_each", "when", "reason"}}
}

func knownIssueSchema() *eval.Schema {
	return &eval.Schema{Kind: "known_issue", Label: true, Key: []string{"probe"}, Free: []string{"for_each", "when", "reason"}}
}

func decodeSkip(r reader, b Block) {
	r.Need("reason", "a sentence that plan and every report show")
	reason := r.Str("reason")
	for _, b := range r.excluded(b) {
		r.l.spec.Skips = append(r.l.spec.Skips, Skip{Block: b, Reason: reason})
	}
}

func decodeKnownIssue(r reader, b Block) {
	r.Need("reason", "what is broken")
	issue := KnownIssue{Probe: r.command("probe"), Reason: r.Str("reason")}
	for _, b := range r.excluded(b) {
		issue.Block = b
		r.l.spec.KnownIssues = append(r.l.spec.KnownIssues, issue)
	}
}

// excluded are the candidates that the instance is about, when its condition holds: the one that its key names, or all
// of the commit that its key names.
func (r reader) excluded(b Block) []Block {
	holds := r.When("when")
	switch {
	case !r.Has("for_each"):
		r.Fail(b.Range, "Missing for_each", "%s must say what it is about: for_each = candidates, or a part of them.", r.Title())
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
		r.Fail(r.At("for_each"), "Not a candidate", "%q names neither a candidate (commit/variant) nor a commit.", r.Instance)
	}
	if !holds {
		return nil
	}
	return all
}
