package page

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/hclspec/recorded"
	"github.com/benchgraph/benchgraph/report/document"
)

// pageTable is a table of plain text.
type pageTable struct {
	ID, Title, Text string
	Head            []string
	Rows            [][]pageCell
}

// pageCell is a cell with the heading of its column, for narrow screens.
type pageCell struct{ Label, Text string }

func (t *pageTable) add(cells ...string) {
	row := make([]pageCell, len(cells))
	for i, text := range cells {
		row[i] = pageCell{t.Head[i], text}
	}
	t.Rows = append(t.Rows, row)
}

// pageTables returns the non-empty tables that account for everything declared.
func pageTables(p *document.Counted) []pageTable {
	all := []pageTable{availabilityTable(p), deviceTable(p), kindTable(p), recoveryTable(p)}
	if p.Recorded != nil {
		all = append(all, recordedTables(p.Recorded)...)
	}
	var filled []pageTable
	for _, t := range all {
		if len(t.Rows) > 0 {
			filled = append(filled, t)
		}
	}
	return filled
}

func availabilityTable(p *document.Counted) pageTable {
	t := pageTable{ID: "data", Title: "Data that is there",
		Text: "Of each benchmark of a commit, the variants that have a valid measurement.",
		Head: []string{"Measured", "Share"}}
	for _, c := range document.Availability(p.States) {
		t.add(c.Name, document.Share(c.Count, c.Of, "declared"))
	}
	return t
}

func deviceTable(p *document.Counted) pageTable {
	t := pageTable{ID: "gpus", Title: "Success by number of GPUs", Head: []string{"GPUs", "Measured"}}
	devices := document.ByDevices(p.States)
	if len(devices) == 1 && devices[0].GPUs == 0 {
		return t
	}
	for _, d := range devices {
		t.add(fmt.Sprint(d.GPUs), document.Share(d.Measured, d.Of, "variants with that many GPUs"))
	}
	return t
}

func kindTable(p *document.Counted) pageTable {
	t := pageTable{ID: "causes", Title: "Failures by class, stage and cause",
		Head: []string{"Class", "Stage", "Cause", "Failures", "Commits", "Time", "Remedy"}}
	text := func(s *string, unknown string) string {
		if s == nil {
			return unknown
		}
		return *s
	}
	for _, k := range document.FailureKinds(p.Failures) {
		t.add(string(k.Class), text(k.Stage, ""), text(k.Rule, "undiagnosed"), document.Share(k.Count, len(p.Failures),
			"failures"), fmt.Sprint(len(k.Commits)), document.OptionalTime(k.Cost), text(k.Remedy, ""))
	}
	return t
}

func recoveryTable(p *document.Counted) pageTable {
	t := pageTable{ID: "recover", Title: "What could be recovered",
		Text: "Times are estimates: the missing blocks, each as long as the mean of those that were measured; " +
			"those of an open row, as the mean of its benchmark and commit.",
		Head: []string{"By", "Rows without a verdict", "Candidates", "Estimated time", "Remedy"}}
	for _, r := range document.Recoveries(p) {
		t.add(r.Way, document.Share(r.Rows, r.Of, "rows"), strings.Join(r.Candidates, ", "),
			document.OptionalTime(r.Cost),
			strings.Join(r.Remedies, " "))
	}
	return t
}

// recordedTables list the results of other studies, with bars.
func recordedTables(b *recorded.Book) []pageTable {
	states := pageTable{ID: "recorded", Title: fmt.Sprintf("Recorded elsewhere: %d records of %d commits",
		len(b.Entries), len(b.Commits)),
		Text: "These results were imported. benchgraph did not measure them and compares them with nothing.",
		Head: []string{"State", "Share"}}
	for _, c := range b.ByState() {
		states.add(c.Name, document.Share(c.Count, c.Of, "commits × variants"))
	}
	sides := pageTable{ID: "recorded-sides", Title: "Sides with a recorded value", Head: []string{"Sides", "Share"}}
	for _, c := range b.Availability() {
		sides.add(c.Name, document.Share(c.Count, c.Of, "commits"))
	}
	refused := pageTable{ID: "refused", Title: "Refused statements", Head: []string{"Statement", "Source", "Why"}}
	for _, r := range b.Refused {
		refused.add(document.Statement(r.Line), r.Line.Source, r.Why)
	}
	records := pageTable{ID: "records", Title: "Records",
		Text: "Bars compare nothing: each is a value beside the largest of its commit, metric and unit.",
		Head: []string{"Commit", "Variant", "Metric", "Value", "Drawn", "Counts", "Status", "Runner", "Source"}}
	most := document.Largest(b)
	for _, e := range b.Entries {
		value, drawn := "", ""
		if e.Value != nil {
			value, drawn = document.Number(*e.Value)+" "+e.Unit, document.Bar(math.Abs(*e.Value),
				most[document.ScaleOf(e)])
		}
		counts := "yes"
		if !e.Counts {
			counts = "no: " + e.Why
		}
		records.add(e.Commit, e.Variant(), e.Metric, value, drawn, counts,
			strings.Trim(e.Status+": "+e.Diagnosis, ": "), e.Runner, cmp.Or(e.Source, "unknown"))
	}
	return []pageTable{states, sides, refused, records}
}

// took returns how long an attempt took; empty if that was not recorded.
func took(d time.Duration) string { return document.OptionalTime(document.Seconds(d)) }
