package hclspec

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
)

// Mistake is an error of one commit or one candidate: the others can be built and measured in spite of it.
type Mistake struct {
	Commit     string
	Candidate  string          // key; empty: every candidate of the commit
	At         Address         // instance with the mistake
	Check      string          // its name in a preflight: placeholder, patch or parent
	Diagnostic *hcl.Diagnostic // as an error, with its place
}

// Out is the reason why an instance is not made. Of such an instance, only Block is set.
type Out struct {
	Skipped bool // a skip or a known issue holds; false: the instance has a mistake
	Reason  string
}

// row identifies the candidate, or the commit in all variants, that an instance belongs to.
type row struct {
	commit    string
	candidate string // key; empty: the whole commit
}

// rowOf returns the row that the key of an instance names; zero: none.
func (l *loader) rowOf(key string) row {
	if i, ok := l.candidates().byKey[key]; ok && i < len(l.spec.Candidates) {
		return row{commit: l.spec.Candidates[i].Commit, candidate: key}
	}
	if _, ok := l.allCommits().byName[key]; ok {
		return row{commit: key}
	}
	return row{}
}

// fault holds the mistakes of one instance.
type fault struct {
	row
	block    Address // the block without its key; of a candidate, the variant; of a commit, the kind alone
	at       Address
	instance string // name of the instance in diagnostics
	diags    hcl.Diagnostics
}

// faults holds the mistakes of all rows.
type faults struct {
	list  []fault
	tried map[Address]int // number of instances that were read, by block
	out   map[row]*Out    // rows that a skip, a known issue or a mistake takes out
}

// attempt reads one instance. It keeps the mistakes of the instance, since other instances may not have them, and
// returns the reason why the instance is out; nil: it has no mistake.
func (l *loader) attempt(f fault, whole bool, read func()) *Out {
	if l.rows.tried == nil {
		l.rows.tried = map[Address]int{}
	}
	l.rows.tried[f.block]++
	f.diags = l.scope.Diags.Catch(whole, read)
	switch {
	case len(f.diags) == 0:
		return nil
	case l.shadow:
		l.scope.Diags.Add(f.instance, f.diags...) // a mistake of the block itself
		return nil
	}
	l.rows.list = append(l.rows.list, f)
	return &Out{Reason: reasonOf(f.diags[0])}
}

// reasonOf returns a diagnostic in one line.
func reasonOf(d *hcl.Diagnostic) string {
	text := diag.OneLine(d)
	if d.Subject != nil {
		text += fmt.Sprintf(" (%s:%d)", d.Subject.Filename, d.Subject.Start.Line)
	}
	return text
}

// leaveOut takes a row out. The first reason counts.
func (l *loader) leaveOut(r row, out *Out) {
	if l.rows.out == nil {
		l.rows.out = map[row]*Out{}
	}
	if l.rows.out[r] == nil {
		l.rows.out[r] = out
		if !out.Skipped {
			l.scope.Diags.LeaveOut(cmp.Or(r.candidate, r.commit), out.Reason)
		}
	}
}

// outOf returns the reason why a row is out; nil: it is not. A commit is out when all its candidates are.
func (l *loader) outOf(r row) *Out {
	if out := l.rows.out[r]; out != nil {
		return out
	}
	if r.candidate != "" {
		return l.rows.out[row{commit: r.commit}]
	}
	var last *Out
	for _, v := range l.variants().list {
		if last = l.rows.out[row{commit: r.commit, candidate: r.commit + "/" + v.Name}]; last == nil {
			return nil
		}
	}
	return last
}

// decodeInstance decodes an instance, unless its row is out. An instance with a mistake is removed again. Other
// instances of its row stay, but those that need it cannot be built.
func (l *loader) decodeInstance(k kind, r reader, b Block) {
	of := l.rowOf(r.Instance)
	if k.out == nil || l.shadow || of == (row{}) {
		k.decode(r, b)
		return
	}
	if out := l.outOf(of); out != nil && excluding(k.schema.Kind) && !out.Skipped {
		l.scope.Diags.Catch(false, func() { k.decode(r, b) }) // the mistake of its row was reported
		return
	} else if out != nil {
		b.Out = out
		k.out(l.spec, b)
		return
	}
	before := *l.spec
	block := Address{Kind: b.Address.Kind, Name: b.Address.Name}
	out := l.attempt(fault{row: of, block: block, at: b.Address, instance: r.Instance}, false, func() {
		k.decode(r, b)
	})
	if out == nil {
		return
	}
	l.spec.Wheels, l.spec.Images, l.spec.Fetches, l.spec.Tasks = before.Wheels, before.Images, before.Fetches,
		before.Tasks
	l.spec.Mounts = before.Mounts
	l.spec.Benchmarks, l.spec.Skips, l.spec.KnownIssues = before.Benchmarks, before.Skips, before.KnownIssues
	for n := len(l.uses); n > 0 && l.uses[n-1].from == b.Address; n-- {
		l.uses = l.uses[:n-1]
	}
	if excluding(k.schema.Kind) {
		l.leaveOut(of, out) // it is not known whether the row is skipped
	}
	b.Out = out
	k.out(l.spec, b)
}

// complete sets Out of commits, candidates and their sources. It gives benchmarks that are out the design and the
// metrics of another instance of the same block, for their rows in reports.
func (l *loader) complete() {
	for i := range l.spec.Commits {
		c := &l.spec.Commits[i]
		c.Out = l.outOf(row{commit: c.Name})
	}
	for i := range l.spec.Candidates {
		c := &l.spec.Candidates[i]
		if out := l.outOf(row{c.Commit, c.Key}); out != nil && !out.Skipped {
			c.Out = out
		}
	}
	for i := range l.spec.Sources {
		if s := &l.spec.Sources[i]; s.Candidate != "" {
			s.Out = l.outOf(l.rowOf(s.Candidate))
		}
	}
	kin := map[string]*Benchmark{}
	for i := range l.spec.Benchmarks {
		if b := &l.spec.Benchmarks[i]; b.Out == nil && kin[b.Address.Name] == nil {
			kin[b.Address.Name] = b
		}
	}
	for i := range l.spec.Benchmarks {
		b := &l.spec.Benchmarks[i]
		if b.Out == nil {
			continue
		}
		if like := kin[b.Address.Name]; like != nil {
			b.Design, b.Metrics = like.Design, like.Metrics
		} else {
			b.Design = standardDesign()
		}
	}
}

// skipped reports whether a row is out for a reason that is no mistake.
func (l *loader) skipped(r row) bool {
	out := l.outOf(r)
	return out != nil && out.Skipped
}

// settle decides which mistakes of single rows are errors. Mistakes of skipped rows do not matter. A mistake of every
// instance of a block is a mistake of the file and an error; if Strict is set, each mistake is one. Any other mistake
// takes its row out with a warning.
func (l *loader) settle() {
	byBlock := map[Address][]fault{}
	for _, f := range l.rows.list {
		if l.skipped(f.row) {
			l.rows.tried[f.block]--
			continue
		}
		byBlock[f.block] = append(byBlock[f.block], f)
	}
	for _, f := range l.rows.list {
		if l.skipped(f.row) {
			continue
		}
		if all := byBlock[f.block]; l.options.Strict || len(all) >= l.rows.tried[f.block] &&
			(f.block.Kind == "commit" || common(all)) {
			l.scope.Diags.Add(f.instance, f.diags...)
			continue
		}
		if f.candidate != "" && l.rows.out[row{commit: f.commit}] != nil {
			continue // the mistake of its commit was reported
		}
		for _, d := range f.diags {
			warning := *d
			warning.Severity = hcl.DiagWarning
			l.scope.Diags.Add(cmp.Or(f.instance, f.commit), &warning)
			l.spec.Mistakes = append(l.spec.Mistakes, Mistake{Commit: f.commit, Candidate: f.candidate, At: f.at,
				Check: checkOf(d), Diagnostic: d})
		}
	}
}

// common reports whether all faults include the same mistake at the same place.
func common(all []fault) bool {
	same := func(a, b *hcl.Diagnostic) bool {
		return a.Summary == b.Summary && (a.Subject == nil) == (b.Subject == nil) &&
			(a.Subject == nil || *a.Subject == *b.Subject)
	}
	return slices.ContainsFunc(all[0].diags, func(d *hcl.Diagnostic) bool {
		return !slices.ContainsFunc(all, func(f fault) bool {
			return !slices.ContainsFunc(f.diags, func(other *hcl.Diagnostic) bool { return same(d, other) })
		})
	})
}

// Summaries of diagnostics that a preflight recognises.
const (
	unknownRevision = "Unknown revision"
	noPatch         = "No patch"
	unreadablePatch = "Patch not readable"
)

// checkOf returns the name of a mistake in a preflight. A missing or wrong value is a placeholder.
func checkOf(d *hcl.Diagnostic) string {
	switch d.Summary {
	case unknownRevision:
		return "parent"
	case noPatch, unreadablePatch:
		return "patch"
	}
	return "placeholder"
}
