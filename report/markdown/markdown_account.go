package markdown

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
)

// variantsBeside writes the variants of each commit side by side, if there are several besides the baseline.
func variantsBeside(out *strings.Builder, p *document.Counted, compare string) {
	type cell struct{ benchmark, commit, variant string }
	type line struct{ benchmark, commit string }
	cells, seen := map[cell]stats.Comparison{}, map[line]bool{}
	var variants []string
	var lines []line
	for _, c := range p.Comparisons {
		if !c.Primary || c.Compare != compare {
			continue
		}
		v := variant(c)
		cells[cell{c.Benchmark, c.Commit, v}] = c
		l := line{c.Benchmark, c.Commit}
		if !seen[l] {
			seen[l] = true
			lines = append(lines, l)
		}
		if !slices.Contains(variants, v) {
			variants = append(variants, v)
		}
	}
	if len(variants) < 2 {
		return
	}
	slices.Sort(variants)
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(p.Places[a.commit], p.Places[b.commit]), cmp.Compare(a.benchmark, b.benchmark))
	})
	t := table{head: []column{{"Commit", false}, {"Title", false}, {"Benchmark", false}}}
	for _, v := range variants {
		t.head = append(t.head, column{codeCell(v), false})
	}
	for _, l := range lines {
		row := []string{codeCell(l.commit), prose(p.TitleOf(l.commit)), codeCell(l.benchmark)}
		for _, v := range variants {
			c, ok := cells[cell{l.benchmark, l.commit, v}]
			switch {
			case !ok:
				row = append(row, "—")
			case c.Blocks >= 1:
				row = append(row, outcome(c.Outcome)+" "+c.EffectText())
			default:
				row = append(row, outcome(c.Outcome))
			}
		}
		t.add(row...)
	}
	fmt.Fprintf(out, "### Variants beside each other\n\nEvery effect is against the baseline of its commit.\n\n")
	t.write(out)
}

// pairSection writes how patched candidates compare with the variant without a patch, such as agents with a human.
func pairSection(out *strings.Builder, p *document.Counted, compare string) {
	var rows []stats.Comparison
	for _, c := range p.Pairs {
		if c.Compare == compare {
			rows = append(rows, c)
		}
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(out,
		"### Patches against the commit itself\n\nThe same blocks, held against the variant without a patch. These "+
			"rows are exploratory and in no total.\n\n")
	figures(out, rows)
}

// variant returns the variant of a row's candidate.
func variant(c stats.Comparison) string { return strings.TrimPrefix(c.Candidate, c.Commit+"/") }

// availabilitySection writes how many of the declared measurements exist.
func availabilitySection(out *strings.Builder, p *document.Counted) {
	counts := document.Availability(p.States)
	if len(counts) == 0 {
		return
	}
	fmt.Fprintf(out,
		"## Data that is there\n\nOf each benchmark of a commit, the variants that have a valid measurement.\n\n")
	t := table{head: []column{{"Measured", false}, {"Commits × benchmarks", true}, {"Share", false}}}
	for _, c := range counts {
		t.add(prose(c.Name), fmt.Sprint(c.Count), document.Share(c.Count, c.Of, "declared"))
	}
	t.write(out)
	devices := document.ByDevices(p.States)
	if len(devices) == 1 && devices[0].GPUs == 0 {
		return
	}
	t = table{head: []column{{"GPUs", true}, {"Measured", true}, {"Declared", true}, {"Share", false}}}
	for _, d := range devices {
		t.add(fmt.Sprint(d.GPUs), fmt.Sprint(d.Measured), fmt.Sprint(d.Of),
			document.Share(d.Measured, d.Of, "variants with that many GPUs"))
	}
	t.write(out)
}

func failureSection(out *strings.Builder, failures []document.Failed) {
	if len(failures) == 0 {
		return
	}
	fmt.Fprintf(out, "## Failures: %d\n\n", len(failures))
	t := table{head: []column{{"Class", false}, {"Stage", false}, {"Cause", false}, {"Failures", true},
		{"Commits", true}, {"Time", true}, {"Evidence of the first", false}, {"Remedy", false}}}
	for _, k := range document.FailureKinds(failures) {
		t.add(prose(string(k.Class)), optional(k.Stage, prose), cause(k.Rule), document.Share(k.Count, len(failures),
			"failures"), fmt.Sprint(len(k.Commits)), document.OptionalTime(k.Cost),
			optional(k.Evidence, func(s string) string {
				return codeCell(shorten(printable.Line(s)))
			}), optional(k.Remedy, prose))
	}
	t.write(out)
	t = table{head: []column{{"Node", false}, {"Candidate", false}, {"Class", false}, {"Stage", false},
		{"Cause", false}, {"What", false}, {"Evidence", false}, {"Time", true}, {"Log", false}}}
	for _, f := range failures {
		t.add(codeCell(f.Address), codeCell(f.Candidate), prose(string(f.Class)), prose(f.Stage), cause(&f.Rule),
			prose(shorten(printable.Line(f.Message))),
			codeCell(shorten(printable.Line(f.Evidence))),
			document.OptionalTime(document.Seconds(f.Took)), codeCell(f.Log))
	}
	t.write(out)
}

func cause(rule *string) string {
	if rule == nil || *rule == "" {
		return "undiagnosed"
	}
	return codeCell(*rule)
}

func optional(s *string, show func(string) string) string {
	if s == nil {
		return ""
	}
	return show(*s)
}

// recoverySection writes how rows without a verdict could get one.
func recoverySection(out *strings.Builder, p *document.Counted) {
	list := document.Recoveries(p)
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(out,
		"## What could be recovered\n\nTimes are estimates: the blocks that are missing, which the variants of a "+
			"commit share, each as long as the mean of those that were measured; those of an open row, as the mean of "+
			"its benchmark and commit.\n\n")
	t := table{head: []column{{"By", false}, {"Rows without a verdict", false}, {"Candidates", false},
		{"Estimated time", true}, {"Remedy", false}}}
	for _, r := range list {
		names := make([]string, len(r.Candidates))
		for i, name := range r.Candidates {
			names[i] = codeCell(name)
		}
		if len(names) > mostCandidates {
			names = append(names[:mostCandidates], fmt.Sprintf("%d more", len(names)-mostCandidates))
		}
		t.add(prose(r.Way), document.Share(r.Rows, r.Of, "rows"), strings.Join(names, ", "),
			document.OptionalTime(r.Cost),
			prose(shorten(printable.Line(strings.Join(r.Remedies, " ")))))
	}
	t.write(out)
}

const mostCandidates = 12 // in a cell

// commitSections writes a section for each commit, under its title.
func commitSections(out *strings.Builder, p *document.Counted) {
	if len(p.Commits) == 0 || len(p.States) == 0 {
		return
	}
	states, rows := map[string][]document.State{}, map[string][]stats.Comparison{}
	for _, s := range p.States {
		states[s.Commit] = append(states[s.Commit], s)
	}
	for _, c := range p.Comparisons {
		if c.Primary {
			rows[c.Commit] = append(rows[c.Commit], c)
		}
	}
	fmt.Fprintf(out, "\n## Commits: %d\n\n", len(p.Commits))
	for _, c := range p.Commits {
		heading := codeCell(c.Name)
		if c.Title != "" {
			heading += " " + prose(c.Title)
		}
		fmt.Fprintf(out, "### %s\n\n", heading)
		if c.Rev != "" {
			fmt.Fprintf(out, "Revision %s, parent %s.\n\n", code(c.Rev), cmp.Or(code(c.Parent), "unknown"))
		}
		commitTable(out, states[c.Name], rows[c.Name])
	}
}

func commitTable(out *strings.Builder, states []document.State, rows []stats.Comparison) {
	t := table{head: []column{{"Benchmark", false}, {"Variant", false}, {"GPUs", true}, {"State", false},
		{"Blocks", true}, {"Outcome", false}, {"Effect", true}, {"Compare", false}, {"Reason", false}}}
	for _, s := range states {
		cells := []string{codeCell(s.Benchmark), codeCell(s.Variant), "", prose(s.State), fmt.Sprint(s.Blocks), "", "",
			"", prose(shorten(printable.Line(s.Reason)))}
		if s.GPUs > 0 {
			cells[2] = fmt.Sprint(s.GPUs)
		}
		if s.Baseline {
			cells[5] = "baseline"
			t.add(cells...)
			continue
		}
		found := false
		for _, c := range rows {
			if c.Candidate == s.Candidate && c.Benchmark == s.Benchmark {
				row := slices.Clone(cells)
				row[5], row[7] = outcome(c.Outcome), codeCell(c.Compare)
				row[8] = prose(shorten(printable.Line(c.Reason)))
				if c.Blocks >= 1 {
					row[6] = c.EffectText()
				}
				t.add(row...)
				found = true
			}
		}
		if !found {
			t.add(cells...)
		}
	}
	for _, c := range rows { // candidates without a benchmark
		if c.Benchmark == "" {
			t.add("", codeCell(variant(c)), "", "", "0", outcome(c.Outcome), "", codeCell(c.Compare),
				prose(shorten(printable.Line(c.Reason))))
		}
	}
	if len(t.cells) == 0 {
		out.WriteString("Nothing measures it.\n\n")
		return
	}
	t.write(out)
}
