package sample

import (
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/counters"
	"github.com/benchgraph/benchgraph/metrics/invalid"
)

// Evidence describes how the numbers of a member in one block came about. It comes from the block's record and from the
// output.
type Evidence struct {
	Block     int                 `json:"block"`
	Run       string              `json:"run,omitempty"`   // the apply that measured the block
	Start     time.Time           `json:"start"`           // start of the member's lifecycle
	Took      time.Duration       `json:"took,omitempty"`  // by the measured command; 0: not known
	Ready     time.Duration       `json:"ready,omitempty"` // time until the server was ready; 0: not known
	Rule      []methodology.Field `json:"rule,omitempty"`
	Tries     []Try               `json:"tries,omitempty"`
	Warnings  []metrics.Warning   `json:"warnings,omitempty"`
	Over      map[string][]string `json:"over,omitempty"` // by metric: its parts, if it is a mean
	Artefacts []Artefact          `json:"artefacts,omitempty"`
	Machine   map[string]string   `json:"machine,omitempty"`  // known properties of the machine's instance
	Canary    float64             `json:"canary,omitempty"`   // number before the member; 0: not known
	Counts    map[string]float64  `json:"counts,omitempty"`   // stated by the output beside its metrics
	Counters  counters.Counters   `json:"counters,omitempty"` // of the server, while the measured command ran
	Settings  map[string]string   `json:"settings,omitempty"` // of the client, as the output states them
	// Complaints are the first lines of errors and warnings of the output, with # for digits.
	Complaints []string `json:"complaints,omitempty"`
	Same       bool     `json:"same,omitempty"` // the member was not run, because its artefacts are the baseline's
}

// Spared returns the evidence of a member that a block did not run because the artefacts of the member are the
// baseline's.
func (m Member) Spared(block int) Evidence {
	return Evidence{Block: block, Artefacts: m.Artefacts, Same: true}
}

// Try is an earlier attempt at a block.
type Try struct {
	Run    string    `json:"run"`
	Start  time.Time `json:"start"`
	Voided bool      `json:"voided"` // it has no result; false: its result was replaced
	Lost   []Loss    `json:"lost,omitempty"`
}

// DescribeTries adds to a key the attempts that are in no block's record, by block.
func DescribeTries(d *cache.Description, tries map[int][]Try) {
	for _, block := range slices.Sorted(maps.Keys(tries)) {
		for _, t := range tries[block] {
			d.Add(cache.Try, strconv.Itoa(block), t.Run, t.Lost[0].Candidate, string(t.Lost[0].Class), t.Lost[0].Rule)
		}
	}
}

// Loss is a failed lifecycle of an earlier attempt.
type Loss struct {
	Candidate string        `json:"candidate,omitempty"` // empty: the attempt failed as a whole
	Class     failure.Class `json:"class"`
	Rule      string        `json:"rule,omitempty"`
}

// Reading holds the numbers and the evidence of a member, from all blocks that were read.
type Reading struct {
	Rows   []Measurement
	Blocks []Evidence
}

// evidence returns the evidence of a member whose output was read.
func (r *Record) evidence(member string, read metrics.Result) Evidence {
	own := r.Members[member]
	e := Evidence{Block: r.Block, Run: r.Run, Start: own.Start, Took: own.Took, Rule: r.Rule, Tries: r.Tries,
		Warnings: read.Warnings, Artefacts: own.Artefacts, Machine: r.Instance.Names(), Canary: r.Canary.Ahead(member),
		Counts: read.Stated.Counts, Counters: own.Counters, Ready: own.Ready, Settings: own.named(read.Stated.Settings),
		Complaints: read.Stated.Complaints}
	for _, s := range read.Samples {
		if len(s.Over) > 0 {
			if e.Over == nil {
				e.Over = map[string][]string{}
			}
			e.Over[s.Metric] = s.Over
		}
	}
	return e
}

// Rules of runs whose output does not count. Like MetricMissing, they are found by whoever reads the output.
const (
	// MetricRepeated: the primary metric was printed more than once, with different numbers or with texts that are
	// none.
	MetricRepeated = "metric_repeated"
	Incomplete     = "incomplete" // a number differs from metrics.require
)

// ByReading reports whether a rule is found by reading the output. No record of a block has such a rule.
func ByReading(rule string) bool {
	return rule == MetricMissing || rule == MetricRepeated || rule == Incomplete ||
		slices.Contains(invalid.Rules(), rule)
}

// doubted returns the failure of an output whose primary metric, or a part of the mean that it is, has several values,
// or a duration of zero, which nobody measured.
func doubted(primary metrics.Sample, read metrics.Result) error {
	f := failure.Failure{Class: failure.Invalid, Stage: "parse"}
	for _, metric := range append([]string{primary.Metric}, primary.Over...) {
		if why := read.Doubts[metric]; why != "" {
			f.Rule, f.Message, f.Evidence = MetricRepeated, "no sample: "+why, why
			f.Remedy = "let the command print the primary metric once, or let match name the one line that counts"
			return &engine.Failure{Failure: f}
		}
	}
	if why := primary.Vanished(); why != "" {
		f.Rule, f.Message, f.Evidence = MetricMissing, "no sample: "+why, why
		f.Remedy = "let the command measure more work, or print a smaller unit"
		return &engine.Failure{Failure: f}
	}
	return nil
}

// incomplete returns the failure of an output whose numbers are not those that the file requires.
func incomplete(spec hclspec.Metrics, read metrics.Result) error {
	for _, want := range spec.Require {
		s, found := Counted(read.Samples, want.Metric)
		if !found {
			s.Value, found = read.Stated.Counts[canonical(want.Metric)]
		}
		var message string
		switch {
		case !found:
			message = fmt.Sprintf("%s = %g is required, and the output has no such number", want.Metric, want.Value)
		case math.Abs(s.Value-want.Value) > 1e-9*math.Abs(want.Value):
			message = fmt.Sprintf("%s is %g, and %g is required", want.Metric, s.Value, want.Value)
		default:
			continue
		}
		return &engine.Failure{Failure: failure.Failure{
			Class: failure.Permanent, Rule: Incomplete, Stage: "parse", Message: message,
			Remedy: "find out in the log why the run is not whole, or correct require in metrics",
		}}
	}
	return nil
}

// aliases returns the other names of counts, by canonical name.
func aliases() map[string]string {
	return map[string]string{"successful_requests": "completed", "failed_requests": "failed"}
}

// canonical returns the canonical name of a count.
func canonical(name string) string {
	for canonical, alias := range aliases() {
		if name == alias {
			return canonical
		}
	}
	return name
}

// Counted finds a count by its canonical name or its alias.
func Counted(samples []metrics.Sample, name string) (metrics.Sample, bool) {
	if s, ok := metrics.Find(samples, name); ok {
		return s, true
	}
	for canonical, alias := range aliases() {
		switch name {
		case canonical:
			return metrics.Find(samples, alias)
		case alias:
			return metrics.Find(samples, canonical)
		}
	}
	return metrics.Sample{}, false
}

// Counts returns the metrics that tell how complete a run was, each with its aliases.
func Counts() [][]string {
	return [][]string{{"successful_requests", "completed", "completed_requests", "num_completed"},
		{"failed_requests", "failed", "num_failed"}, {"total_input_tokens"}, {"total_output_tokens"}}
}

const evidenceFile = "evidence.json"

// writeJSON writes a value into a file of a directory.
func writeJSON(dir, name string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), append(text, '\n'), 0o644)
}

// readJSON reads a file of writeJSON. If the file does not exist, v stays as it is.
func readJSON(dir, name string, v any) error {
	text, err := fs.ReadFile(filepath.Join(dir, name), longestGathered)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Rank returns the rank of a percentile, from 0 to 100, by the end of the metric's name: p99, median, max.
func Rank(end string) (float64, bool) {
	switch end {
	case "min":
		return 0, true
	case "median":
		return 50, true
	case "max":
		return 100, true
	}
	digits, ok := strings.CutPrefix(end, "p")
	if !ok {
		return 0, false
	}
	rank, err := strconv.ParseFloat(digits, 64)
	return rank, err == nil && rank >= 0 && rank <= 100
}
