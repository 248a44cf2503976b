package hclspec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Mistake is an error that belongs to one commit or to one candidate alone: the others can be built and measured
// without it.
type Mistake struct {
	Commit     string
	Candidate  string          // key; empty: every candidate of the commit
	At         Address         // the instance that has the mistake
	Check      string          // what a preflight calls it: placeholder, patch or parent
	Diagnostic *hcl.Diagnostic // as an error, with its place
}

// Out says why an instance is not made. Of such an instance, nothing but its Block is meant.
type Out struct {
	Skipped bool // a skip or a known issue holds; false: it has a mistake
	Reason  string
}

// row is the line of the campaign that an instance belongs to: a candidate, or a commit in all variants.
type row struct {
	commit    string
	candidate string // key; empty: the whole commit
}

// rowOf is the row that the key of an instance names; the zero row where it names none.
func (l *loader) rowOf(key string) row {
	if i, ok := l.candidates().byKey[key]; ok && i < len(l.spec.Candidates) {
		return row{commit: l.spec.Candidates[i].Commit, candidate: key}
	}
	if _, ok := l.allCommits().byName[key]; ok {
		return row{commit: key}
	}
	return row{}
}

// fault is what is wrong with one instance.
type fault struct {
	row
	block    Address // the block without its key; of a candidate, the variant; of a commit, the kind alone
	at       Address
	instance string // by which diagnostics name it
	diags    hcl.Diagnostics
}

// faults are those of all rows.
type faults struct {
	list  []fault
	tried map[Address]int // by block: the instances that were read
	out   map[row]*Out    // rows that a skip, a known issue or a mistake takes out
}

// attempt reads one instance. The mistakes that it has are kept apart, since they may be its own. It returns why the
// instance is out; nil: it is sound.
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
		l.scope.Diags.Add(f.instance, f.diags...) // of all rows together
		return nil
	}
	l.rows.list = append(l.rows.list, f)
	return &Out{Reason: reasonOf(f.diags[0])}
}

// reasonOf is a diagnostic in one line.
func reasonOf(d *hcl.Diagnostic) string {
	text := d.Summary
	if d.Detail != "" {
		text += ": " + strings.Join(strings.Fields(d.Detail), " ")
	}
	if d.Subject != nil {
		text += fmt.Sprintf(" (%s:%d)", d.Subject.Filename, d.Subject.Start.Line)
	}
	return text
}

// leaveOut notes that a row is out. The first reason counts.
func (l *loader) leaveOut(r row, out *Out) {
	if l.rows.out == nil {
		l.rows.out = map[row]*Out{}
	}
	if l.rows.out[r] == nil {
		l.rows.out[r] = out
	}
}

// outOf says why a row is out; nil: it is not. A commit is out when all its candidates are.
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

// decodeInstance decodes an instance, unless its row is out. One with a mistake takes no more than its own place out:
// what needs it has nothing to begin with.
func (l *loader) decodeInstance(k kind, r reader, b Block) {
	of := l.rowOf(r.Instance)
	if k.out == nil || l.shadow || of == (row{}) {
		k.decode(r, b)
		return
	}
	if out := l.outOf(of); out != nil && excluding(k.schema.Kind) && !out.Skipped {
		l.scope.Diags.Catch(false, func() { k.decode(r, b) }) // its mistake was told
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
	delete(l.edges, b.Address)
	if excluding(k.schema.Kind) {
		l.leaveOut(of, out) // nobody knows whether it is to be measured
	}
	b.Out = out
	k.out(l.spec, b)
}

// complete tells commits, candidates and their sources that they are out, and gives benchmarks that are the design and
// the metric of their kin, by which they are reported.
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

// skipped says whether a row is out for a reason that is no mistake.
func (l *loader) skipped(r row) bool {
	out := l.outOf(r)
	return out != nil && out.Skipped
}

// settle decides what the mistakes of single rows mean. Those of a row that is skipped do not matter. One that every
// instance of a block has is a mistake of the file, and so is each when the reader is strict. Any other takes its row
// out with a warning.
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
			continue // the mistake of its commit was told
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

// common says whether all of the faults are, among others, the same mistake at the same place.
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

// The summaries of diagnostics by which a preflight knows them.
const (
	unknownRevision = "Unknown revision"
	noPatch         = "No patch"
	unreadablePatch = "Patch not readable"
)

// checkOf is what a preflight calls a mistake. What is not filled in, or wrongly, is a placeholder.
func checkOf(d *hcl.Diagnostic) string {
	switch d.Summary {
	case unknownRevision:
		return "parent"
	case noPatch, unreadablePatch:
		return "patch"
	}
	return "placeholder"
}
