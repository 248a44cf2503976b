// Package diag collects diagnostics, one for each mistake, and improves their texts: it names the name that was
// probably meant, and the existing names.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
)

// maxReported bounds the number of reported mistakes: nobody reads more, and each takes a pass through the whole file.
const maxReported = 100

// Diagnostics collects mistakes. If many instances of a block make the same mistake at the same place, it is reported
// once with their number.
type Diagnostics struct {
	list  hcl.Diagnostics
	index map[position]*report
	more  int // mistakes beyond maxReported
	catch *catch
	rows  map[string]string          // by name of a commit or candidate: the mistake that leaves it out
	after map[*hcl.Diagnostic]string // errors about the absence of such a row: its mistake
}

// LeaveOut notes that a commit or a candidate has a mistake, and is in no collection. Errors about its absence then say
// why, and are not reported beside that mistake if it is an error of the file.
func (c *Diagnostics) LeaveOut(name, mistake string) {
	if c.rows == nil {
		c.rows, c.after = map[string]string{}, map[*hcl.Diagnostic]string{}
	}
	c.rows[name] = mistake
}

// catch receives the errors of one instance.
type catch struct {
	whole bool // also receives errors without an instance
	diags hcl.Diagnostics
}

// maxCaught bounds the errors of one instance that are kept.
const maxCaught = 10

// Catch calls f and returns the errors that f records for an instance, at most ten, instead of recording them; with
// whole, also errors without an instance.
func (c *Diagnostics) Catch(whole bool, f func()) hcl.Diagnostics {
	around := c.catch
	c.catch = &catch{whole: whole}
	f()
	caught := c.catch.diags
	c.catch = around
	return caught
}

type position struct {
	summary    string
	file       string
	start, end int
}

type report struct {
	diag      *hcl.Diagnostic
	instance  string
	instances map[string]bool
}

// Add records diagnostics. instance is the key of the instance that they came from; empty: none.
func (c *Diagnostics) Add(instance string, diags ...*hcl.Diagnostic) {
	if c.index == nil {
		c.index = map[position]*report{}
	}
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int { // diagnostics of a body are in the order of a map
		return cmp.Compare(RangeOf(a).Start.Byte, RangeOf(b).Start.Byte)
	})
	for _, d := range diags {
		if c.catch != nil && d.Severity == hcl.DiagError && (instance != "" || c.catch.whole) {
			if len(c.catch.diags) < maxCaught {
				c.catch.diags = append(c.catch.diags, c.tidy(d))
			}
			continue
		}
		r := RangeOf(d)
		at := position{d.Summary, r.Filename, r.Start.Byte, r.End.Byte}
		if instance == "" {
			at.summary += "\n" + d.Detail
		}
		known, ok := c.index[at]
		if !ok && c.Full() && (d.Severity == hcl.DiagWarning || c.HasErrors()) {
			c.more++
			continue
		}
		if !ok {
			known = &report{diag: c.tidy(d), instance: instance, instances: map[string]bool{}}
			c.index[at] = known
			c.list = append(c.list, known.diag)
		}
		if instance != "" {
			known.instances[instance] = true
		}
	}
}

// Error records one mistake.
func (c *Diagnostics) Error(instance string, at hcl.Range, summary, detail string) {
	c.Add(instance, New(hcl.DiagError, summary, detail, at)...)
}

// Warn records something that is probably not meant.
func (c *Diagnostics) Warn(instance string, at hcl.Range, summary, detail string) {
	c.Add(instance, New(hcl.DiagWarning, summary, detail, at)...)
}

// Full reports whether further mistakes are only counted, so that they need no improved text.
func (c *Diagnostics) Full() bool { return len(c.list) >= maxReported }

// HasErrors reports whether a mistake was recorded.
func (c *Diagnostics) HasErrors() bool { return c.list.HasErrors() }

// tidy returns a copy to be shown, with an improved text. It has no evaluation context, which would print references in
// their internal form.
func (c *Diagnostics) tidy(d *hcl.Diagnostic) *hcl.Diagnostic {
	mistake := c.improve(d)
	clean := *d
	clean.Expression, clean.EvalContext, clean.Extra = nil, nil, nil
	for _, text := range []*string{&clean.Summary, &clean.Detail} {
		*text = strings.NewReplacer(funcs.Mark, "", `\u0000`, "", `\x00`, "").Replace(*text)
	}
	if mistake != "" {
		c.after[&clean] = mistake
	}
	return &clean
}

// follows reports whether an error is only about the absence of a row whose mistake is an error, too.
func (c *Diagnostics) follows(d *hcl.Diagnostic) bool {
	mistake := c.after[d]
	return mistake != "" && slices.ContainsFunc(c.list, func(other *hcl.Diagnostic) bool {
		return other.Severity == hcl.DiagError && strings.HasPrefix(mistake, OneLine(other))
	})
}

// OneLine returns the text of a diagnostic in one line.
func OneLine(d *hcl.Diagnostic) string {
	if d.Detail == "" {
		return d.Summary
	}
	return d.Summary + ": " + strings.Join(strings.Fields(d.Detail), " ")
}

// All returns the diagnostics in the order of the files, and of the lines within a file.
func (c *Diagnostics) All(files []string) hcl.Diagnostics {
	sorted := slices.DeleteFunc(slices.Clone(c.list), c.follows)
	for _, t := range c.index {
		if t.instance == "" {
			continue
		}
		note := fmt.Sprintf(" (for each.key = %q", t.instance)
		if n := len(t.instances) - 1; n > 0 {
			note += fmt.Sprintf(" and %d more", n)
		}
		t.diag.Detail += note + ")"
		t.instance = ""
	}
	order := map[string]int{}
	for i, name := range files {
		order[name] = i + 1
	}
	slices.SortStableFunc(sorted, func(a, b *hcl.Diagnostic) int {
		ra, rb := RangeOf(a), RangeOf(b)
		return cmp.Or(cmp.Compare(order[ra.Filename], order[rb.Filename]), cmp.Compare(ra.Start.Byte, rb.Start.Byte))
	})
	if c.more > 0 {
		severity := hcl.DiagWarning
		if c.HasErrors() {
			severity = hcl.DiagError
		}
		sorted = append(sorted, New(severity, "More of the kind", fmt.Sprintf("%d more are not shown.", c.more),
			hcl.Range{})...)
	}
	return sorted
}

// RangeOf returns the place of a diagnostic; zero: it has none.
func RangeOf(d *hcl.Diagnostic) hcl.Range {
	if d.Subject == nil {
		return hcl.Range{}
	}
	return *d.Subject
}

// New returns a diagnostic at a place; zero: without a place.
func New(severity hcl.DiagnosticSeverity, summary, detail string, at hcl.Range) hcl.Diagnostics {
	d := &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: detail}
	if at != (hcl.Range{}) {
		d.Subject = &at
	}
	return hcl.Diagnostics{d}
}
