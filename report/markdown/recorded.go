package markdown

import (
	"fmt"
	"math"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec/recorded"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/report/document"
)

// recordedSection lists the results of other studies, with bars.
func recordedSection(out *strings.Builder, p *document.Counted) {
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
		t.add(prose(c.Name), fmt.Sprint(c.Count), document.Share(c.Count, c.Of, "commits"))
	}
	t.write(out)
	t = table{head: []column{{"State", false}, {"Commits × variants", true}, {"Share", false}}}
	for _, c := range b.ByState() {
		t.add(prose(c.Name), fmt.Sprint(c.Count), document.Share(c.Count, c.Of, "commits × variants"))
	}
	t.write(out)
	if len(b.Refused) > 0 {
		fmt.Fprintf(out, "### Refused: %d\n\n", len(b.Refused))
		t = table{head: []column{{"Statement", false}, {"Source", false}, {"Why", false}}}
		for _, r := range b.Refused {
			t.add(prose(shorten(printable.Line(document.Statement(r.Line)))),
				prose(shorten(printable.Line(r.Line.Source))),
				prose(shorten(printable.Line(r.Why))))
		}
		t.write(out)
	}
	recordedRows(out, b)
}

func recordedRows(out *strings.Builder, b *recorded.Book) {
	most := document.Largest(b)
	t := table{head: []column{{"Commit", false}, {"Variant", false}, {"Metric", false}, {"Value", true},
		{"Unit", false}, {"", false}, {"Counts", false},
		{"Status", false}, {"Runner", false}, {"Model", false}, {"Source", false}}}
	for _, e := range b.Entries {
		value, drawn, counts := "", "", "yes"
		if e.Value != nil {
			value, drawn = document.Number(*e.Value), document.Bar(math.Abs(*e.Value), most[document.ScaleOf(e)])
		}
		if !e.Counts {
			counts = "no: " + prose(shorten(printable.Line(e.Why)))
		}
		status := e.Status
		if e.Diagnosis != "" {
			status += ": " + e.Diagnosis
		}
		t.add(codeCell(e.Commit), codeCell(e.Variant()), codeCell(e.Metric), value, prose(e.Unit), drawn, counts,
			prose(shorten(printable.Line(status))),
			codeCell(e.Runner), codeCell(e.Model), prose(shorten(printable.Line(e.Source))))
	}
	fmt.Fprintf(out,
		"### Records\n\nBars compare nothing: each is a value beside the largest of its commit, metric and unit.\n\n")
	t.write(out)
}
