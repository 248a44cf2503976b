// Package document defines the content of reports: a Document, the counts that must add up before it is shown, and
// the numbers and sentences that several formats share.
package document

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/benchgraph/benchgraph/hclspec/recorded"
	"github.com/benchgraph/benchgraph/stats"
)

// Format is the version of the JSON document. Readers ignore unknown fields.
const Format = "1.0"

// Document is the content of a report.
type Document struct {
	Title        string
	Snapshot     Snapshot
	Universe     int // number of (compare, benchmark, commit, candidate) in the file, counted there
	Commits      []Commit
	Comparisons  []stats.Comparison
	Pairs        []stats.Comparison // patched candidates against the variant without a patch; in no total
	States       []State            // of all variants
	Measurements []Measurement
	Recorded     *recorded.Book // results of other studies; nil: none
	Failures     []Failed
	Skips        []Skip
	Hardware     []string // class of each machine that measured: device name and memory, driver, CPU
	Cost         Cost
	Attempts     []Attempt // of the last apply that ran a node; only trace and otel show them
	Diagnostics  any       // warnings about the file, for report -json alone; nil: none
}

// Snapshot identifies the stored state of a report.
type Snapshot struct {
	ID string `json:"snapshot"`
	// time of the newest result, so that a report of unchanged results does not change
	Time     time.Time `json:"time"`
	Version  string    `json:"version"`  // of benchgraph
	Revision string    `json:"revision"` // revision of the project
}

// Measurement is one value of one run.
type Measurement struct {
	Benchmark   string    `json:"benchmark"`
	Commit      string    `json:"commit"`
	Candidate   string    `json:"candidate"` // commit/variant
	Block       int       `json:"block"`
	Order       int       `json:"order"` // position in the random order of the block, from 1
	Metric      string    `json:"metric"`
	Value       float64   `json:"value"` // in Unit
	Unit        string    `json:"unit"`
	Better      string    `json:"better,omitempty"` // higher or lower; empty: unknown
	Start       time.Time `json:"start"`
	Seed        uint64    `json:"seed"` // seed of the random order
	DeviceClass string    `json:"device_class,omitempty"`
	Devices     []string  `json:"devices,omitempty"` // UUIDs
	Phase       string    `json:"phase,omitempty"`   // "burn-in": the block is not judged; otherwise empty
}

// Skip is a declared exclusion.
type Skip struct {
	Address string `json:"address"`
	Reason  string `json:"reason"`
}

// Counted is a document whose counts add up, in the order of presentation.
type Counted struct {
	Document
	Total    stats.Totals
	Compares []stats.Totals
	Places   map[string]int // index of each commit
}

// Check counts and sorts the content of a document. It returns *stats.RefusedError if the counts do not add up or a
// measurement is not a finite number.
func Check(doc Document) (*Counted, error) {
	ledger := stats.Ledger{Universe: doc.Universe, Rows: slices.Clone(doc.Comparisons)}
	if err := ledger.Check(); err != nil {
		return nil, err
	}
	for _, m := range doc.Measurements {
		if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
			return nil, &stats.RefusedError{
				What: "a measurement is no number",
				Reasons: []string{fmt.Sprintf("%s of %s in block %d of benchmark %s is %v", m.Metric, m.Candidate,
					m.Block, m.Benchmark, m.Value)},
			}
		}
	}
	stats.SetQ(ledger.Rows)
	doc.Comparisons = ledger.Rows
	slices.SortStableFunc(doc.Comparisons, byImportance)
	doc.Measurements = slices.Clone(doc.Measurements)
	slices.SortStableFunc(doc.Measurements, func(a, b Measurement) int {
		return cmp.Or(cmp.Compare(a.Benchmark, b.Benchmark), cmp.Compare(a.Commit, b.Commit),
			cmp.Compare(a.Block, b.Block),
			cmp.Compare(a.Order, b.Order), cmp.Compare(a.Candidate, b.Candidate), cmp.Compare(a.Metric, b.Metric),
			a.Start.Compare(b.Start), cmp.Compare(a.Value, b.Value))
	})
	doc.Pairs = slices.Clone(doc.Pairs)
	slices.SortStableFunc(doc.Pairs, byImportance)
	doc.Commits = slices.Clone(doc.Commits)
	slices.SortStableFunc(doc.Commits, func(a, b Commit) int { return cmp.Compare(a.Name, b.Name) })
	doc.States = slices.Clone(doc.States)
	slices.SortStableFunc(doc.States, func(a, b State) int {
		return cmp.Or(cmp.Compare(a.Commit, b.Commit), cmp.Compare(a.Benchmark, b.Benchmark), baselineFirst(a, b),
			cmp.Compare(a.Variant, b.Variant))
	})
	doc.Failures = slices.Clone(doc.Failures)
	slices.SortStableFunc(doc.Failures, func(a, b Failed) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Candidate, b.Candidate),
			cmp.Compare(a.Log, b.Log), cmp.Compare(a.Message, b.Message))
	})
	doc.Skips = slices.Clone(doc.Skips)
	slices.SortStableFunc(doc.Skips, func(a, b Skip) int { return cmp.Compare(a.Address, b.Address) })
	hardware := slices.Clone(doc.Hardware)
	slices.Sort(hardware)
	doc.Hardware = slices.Compact(hardware)
	doc.Snapshot.Time = doc.Snapshot.Time.UTC()
	p := &Counted{Document: doc, Total: ledger.Total(), Compares: ledger.Totals(), Places: map[string]int{}}
	for i, c := range doc.Commits {
		p.Places[c.Name] = i
	}
	return p, nil
}

func baselineFirst(a, b State) int {
	switch {
	case a.Baseline == b.Baseline:
		return 0
	case a.Baseline:
		return -1
	}
	return 1
}

// byImportance sorts wins first and, among equal outcomes, larger effects first, so that the first screen shows who
// won.
func byImportance(a, b stats.Comparison) int {
	primary := func(c stats.Comparison) int {
		if c.Primary {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Compare, b.Compare), cmp.Compare(primary(a), primary(b)),
		cmp.Compare(rank(a.Outcome), rank(b.Outcome)),
		cmp.Compare(b.Effect, a.Effect), cmp.Compare(a.Commit, b.Commit), cmp.Compare(a.Candidate, b.Candidate),
		cmp.Compare(a.Benchmark, b.Benchmark), cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Against, b.Against))
}

// rank returns the position of an outcome in a table: verdicts first.
func rank(o stats.Outcome) int {
	i := slices.Index(stats.Outcomes(), o)
	if o.Judged() {
		i -= len(stats.Outcomes())
	}
	return i
}
