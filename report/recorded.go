package report

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec/recorded"
)

// recordedDocument is the results of other studies, as JSON.
type recordedDocument struct {
	Universe     int                `json:"universe"` // commits × variants
	States       []recorded.State   `json:"states"`
	ByState      []recorded.Count   `json:"by_state"`     // partition of the universe
	Availability []recorded.Count   `json:"availability"` // partition of the commits
	Counts       map[string]int     `json:"counts"`       // against which claims are checked
	Records      []recorded.Entry   `json:"records"`
	Refused      []recorded.Refusal `json:"refused"`
}

func recordedOf(p *prepared) *recordedDocument {
	b := p.Recorded
	if b == nil {
		return nil
	}
	return &recordedDocument{len(b.States), present(b.States), present(b.ByState()), present(b.Availability()),
		b.Counts(), present(b.Entries), present(b.Refused)}
}

// recordedSection lists and draws the results of other studies.
func recordedSection(out *strings.Builder, p *prepared) {
	b := p.Recorded
	if b == nil {
		return
	}
	fmt.Fprintf(out, "## Recorded elsewhere: %d records of %d commits\n\n"+
		"These results were imported. benchgraph did not measure them and compares them with nothing: how they were "+
		"measured is not known as "+
		"well as it is of its own. Counts are those of the records.\n\n", len(b.Entries), len(b.Commits))
	t := table{head: []column{{"Sides with a value", false}, {"Commits", true}, {"Share", false}}}
	for _, c := range b.Availability() {
		t.add(prose(c.Name), fmt.Sprint(c.Count), share(c.Count, c.Of, "commits"))
	}
	t.write(out)
	t = table{head: []column{{"State", false}, {"Commits × variants", true}, {"Share", false}}}
	for _, c := range b.ByState() {
		t.add(prose(c.Name), fmt.Sprint(c.Count), share(c.Count, c.Of, "commits × variants"))
	}
	t.write(out)
	if len(b.Refused) > 0 {
		fmt.Fprintf(out, "### Refused: %d\n\n", len(b.Refused))
		t = table{head: []column{{"Statement", false}, {"Source", false}, {"Why", false}}}
		for _, r := range b.Refused {
			t.add(prose(shorten(clean(statement(r.Line)))), prose(shorten(clean(r.Line.Source))),
				prose(shorten(clean(r.Why))))
		}
		t.write(out)
	}
	recordedRows(out, b)
}

func statement(l recorded.Line) string {
	parts := []string{l.Commit, l.Variant(), cmp.Or(l.Claim, l.Verdict, l.Metric, l.Status)}
	if l.Count != nil {
		parts = append(parts, fmt.Sprint(*l.Count))
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

func recordedRows(out *strings.Builder, b *recorded.Book) {
	most := largest(b)
	t := table{head: []column{{"Commit", false}, {"Variant", false}, {"Metric", false}, {"Value", true},
		{"Unit", false}, {"", false}, {"Counts", false},
		{"Status", false}, {"Runner", false}, {"Model", false}, {"Source", false}}}
	for _, e := range b.Entries {
		value, drawn, counts := "", "", "yes"
		if e.Value != nil {
			value, drawn = number(*e.Value), bar(math.Abs(*e.Value), most[scaleOf(e)])
		}
		if !e.Counts {
			counts = "no: " + prose(shorten(clean(e.Why)))
		}
		status := e.Status
		if e.Diagnosis != "" {
			status += ": " + e.Diagnosis
		}
		t.add(codeCell(e.Commit), codeCell(e.Variant()), codeCell(e.Metric), value, prose(e.Unit), drawn, counts,
			prose(shorten(clean(status))),
			codeCell(e.Runner), codeCell(e.Model), prose(shorten(clean(e.Source))))
	}
	fmt.Fprintf(out,
		"### Records\n\nBars compare nothing: each is a value beside the largest of its commit, metric and unit.\n\n")
	t.write(out)
}

// bar draws a value beside the largest one.
func bar(value, most float64) string {
	const width = 10
	if most == 0 {
		return ""
	}
	return strings.Repeat("█", int(math.Round(width*value/most)))
}

func recordedRecords(p *prepared) [][]string {
	records := [][]string{{"snapshot", "commit", "title", "variant", "side", "agent", "runner", "metric", "value",
		"unit", "model", "gpus", "methodology",
		"status", "diagnosis", "counts", "why", "flags", "source"}}
	for _, e := range p.Recorded.Entries {
		value, gpus := "", ""
		if e.Value != nil {
			value = exactly(*e.Value)
		}
		if e.GPUs > 0 {
			gpus = strconv.Itoa(e.GPUs)
		}
		records = append(records, []string{cell(p.Snapshot.ID), cell(e.Commit), cell(p.title(e.Commit)),
			cell(e.Variant()), cell(e.Side), cell(e.Agent),
			cell(e.Runner), cell(e.Metric), value, cell(e.Unit), cell(e.Model), gpus, cell(e.Methodology),
			cell(e.Status), cell(e.Diagnosis),
			strconv.FormatBool(e.Counts), cell(e.Why), cell(strings.Join(e.Flags, "; ")), cell(e.Source)})
	}
	return records
}
