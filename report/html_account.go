package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/hclspec/recorded"
)

// pageTable is a table of the page whose cells are plain text.
type pageTable struct {
	ID, Title, Text string
	Head            []string
	Rows            [][]pageCell
}

// pageCell is a cell with the heading of its column, which narrow screens show beside it.
type pageCell struct{ Label, Text string }

func (t *pageTable) add(cells ...string) {
	row := make([]pageCell, len(cells))
	for i, text := range cells {
		row[i] = pageCell{t.Head[i], text}
	}
	t.Rows = append(t.Rows, row)
}

// pageTables are the tables that account for all that was declared; those without rows are left out.
func pageTables(p *prepared) []pageTable {
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

func availabilityTable(p *prepared) pageTable {
	t := pageTable{ID: "data", Title: "Data that is there",
		Text: "Of each benchmark of a commit, the variants that have a valid measurement.",
		Head: []string{"Measured", "Share"}}
	for _, c := range availability(p.States) {
		t.add(c.Name, share(c.Count, c.Of, "declared"))
	}
	return t
}

func deviceTable(p *prepared) pageTable {
	t := pageTable{ID: "gpus", Title: "Success by number of GPUs", Head: []string{"GPUs", "Measured"}}
	devices := byDevices(p.States)
	if len(devices) == 1 && devices[0].GPUs == 0 {
		return t
	}
	for _, d := range devices {
		t.add(fmt.Sprint(d.GPUs), share(d.Measured, d.Of, "variants with that many GPUs"))
	}
	return t
}

func kindTable(p *prepared) pageTable {
	t := pageTable{ID: "causes", Title: "Failures by class, stage and cause",
		Head: []string{"Class", "Stage", "Cause", "Failures", "Commits", "Time", "Remedy"}}
	text := func(s *string, unknown string) string {
		if s == nil {
			return unknown
		}
		return *s
	}
	for _, k := range kindsOfFailures(p.Failures) {
		t.add(string(k.Class), text(k.Stage, ""), text(k.Rule, "undiagnosed"), share(k.Count, len(p.Failures),
			"failures"), fmt.Sprint(len(k.Commits)), optionalTime(k.Cost), text(k.Remedy, ""))
	}
	return t
}

func recoveryTable(p *prepared) pageTable {
	t := pageTable{ID: "recover", Title: "What could be recovered",
		Text: "Times are estimates: the missing blocks, each as long as the mean of those that were measured; " +
			"those of an open row, as the mean of its benchmark and commit.",
		Head: []string{"By", "Rows without a verdict", "Candidates", "Estimated time", "Remedy"}}
	for _, r := range recoveries(p) {
		t.add(r.Way, share(r.Rows, r.Of, "rows"), strings.Join(r.Candidates, ", "), optionalTime(r.Cost),
			strings.Join(r.Remedies, " "))
	}
	return t
}

// recordedTables list and draw the results of other studies.
func recordedTables(b *recorded.Book) []pageTable {
	states := pageTable{ID: "recorded", Title: fmt.Sprintf("Recorded elsewhere: %d records of %d commits",
		len(b.Entries), len(b.Commits)),
		Text: "These results were imported. benchgraph did not measure them and compares them with nothing.",
		Head: []string{"State", "Share"}}
	for _, c := range b.ByState() {
		states.add(c.Name, share(c.Count, c.Of, "commits × variants"))
	}
	sides := pageTable{ID: "recorded-sides", Title: "Sides with a recorded value", Head: []string{"Sides", "Share"}}
	for _, c := range b.Availability() {
		sides.add(c.Name, share(c.Count, c.Of, "commits"))
	}
	refused := pageTable{ID: "refused", Title: "Refused statements", Head: []string{"Statement", "Source", "Why"}}
	for _, r := range b.Refused {
		refused.add(statement(r.Line), r.Line.Source, r.Why)
	}
	records := pageTable{ID: "records", Title: "Records",
		Text: "Bars compare nothing: each is a value beside the largest of its commit, metric and unit.",
		Head: []string{"Commit", "Variant", "Metric", "Value", "Drawn", "Counts", "Status", "Runner", "Source"}}
	most := largest(b)
	for _, e := range b.Entries {
		value, drawn := "", ""
		if e.Value != nil {
			value, drawn = number(*e.Value)+" "+e.Unit, bar(math.Abs(*e.Value), most[scaleOf(e)])
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

// scale is the key of values that share an axis.
type scale struct{ commit, metric, unit string }

func scaleOf(e recorded.Entry) scale { return scale{e.Commit, e.Metric, e.Unit} }

// largest is the largest value of each scale.
func largest(b *recorded.Book) map[scale]float64 {
	most := map[scale]float64{}
	for _, e := range b.Entries {
		if e.Value != nil {
			most[scaleOf(e)] = max(most[scaleOf(e)], math.Abs(*e.Value))
		}
	}
	return most
}

// took is how long an attempt took; empty when no record tells.
func took(d time.Duration) string { return optionalTime(seconds(d)) }
