package sample

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/counters"
	"github.com/benchgraph/benchgraph/metrics/invalid"
)

// Evidence is the part of a block's record of a member that is not a number: how the number was made, and on which
// artefacts.
type Evidence struct {
	Block     int                 `json:"block"`
	Run       string              `json:"run,omitempty"`   // the apply that measured the block
	Start     time.Time           `json:"start"`           // of the member's lifecycle
	Took      time.Duration       `json:"took,omitempty"`  // by the measured command; 0: an earlier version measured it
	Ready     time.Duration       `json:"ready,omitempty"` // the server was, so long after its start; 0: not known
	Rule      []methodology.Field `json:"rule,omitempty"`
	Tries     []Try               `json:"tries,omitempty"`
	Warnings  []metrics.Warning   `json:"warnings,omitempty"`
	Over      map[string][]string `json:"over,omitempty"` // by metric: the metrics that it is the mean of
	Artefacts []Artefact          `json:"artefacts,omitempty"`
	Machine   map[string]string   `json:"machine,omitempty"`  // what is known of the machine's instance, by name
	Canary    float64             `json:"canary,omitempty"`   // that was printed before the member; 0: not known
	Counts    map[string]float64  `json:"counts,omitempty"`   // that the output states beside its metrics
	Counters  counters.Counters   `json:"counters,omitempty"` // what the server counted while the measured command ran
	Settings  map[string]string   `json:"settings,omitempty"` // with which the client says it was run
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
	Voided bool      `json:"voided"` // it has no result; else its result was replaced on request
	Lost   []Loss    `json:"lost,omitempty"`
}

// DescribeTries makes attempts that no block tells of, by block, part of a key.
func DescribeTries(d *cache.Description, tries map[int][]Try) {
	for _, block := range slices.Sorted(maps.Keys(tries)) {
		for _, t := range tries[block] {
			d.Add(cache.Try, strconv.Itoa(block), t.Run, t.Lost[0].Candidate, string(t.Lost[0].Class), t.Lost[0].Rule)
		}
	}
}

// Loss is a lifecycle of an earlier attempt that failed.
type Loss struct {
	Candidate string        `json:"candidate,omitempty"` // empty: the attempt failed as a whole
	Class     failure.Class `json:"class"`
	Rule      string        `json:"rule,omitempty"`
}

// Reading is all that was read of a member.
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

// Rules of runs whose output does not count. Like MetricMissing they are found out whenever the output is read.
const (
	// MetricRepeated: the primary metric was printed more than once, and not as one number each time.
	MetricRepeated = "metric_repeated"
	Incomplete     = "incomplete" // a number is not as metrics.require demands
)

// ByReading reports whether a rule is found by reading the output, so that no record of a block has it.
func ByReading(rule string) bool {
	return rule == MetricMissing || rule == MetricRepeated || rule == Incomplete ||
		slices.Contains(invalid.Rules(), rule)
}

// doubted is the failure of an output in which the primary metric, or a part of the mean that it is, has several values
// or none that was measured.
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

// incomplete is the failure of an output whose numbers are not as the file requires.
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

// aliases are the other names of counts, by the canonical ones.
func aliases() map[string]string {
	return map[string]string{"successful_requests": "completed", "failed_requests": "failed"}
}

// canonical is the name of a count in what an output states.
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

// Counts are the metrics that say how complete a run was, each with its aliases.
func Counts() [][]string {
	return [][]string{{"successful_requests", "completed", "completed_requests", "num_completed"},
		{"failed_requests", "failed", "num_failed"}, {"total_input_tokens"}, {"total_output_tokens"}}
}

const evidenceFile = "evidence.json"

// writeJSON writes a value as a file of a directory.
func writeJSON(dir, name string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), append(text, '\n'), 0o644)
}

// readJSON reads such a file back. A file that is not there leaves v as it is.
func readJSON(dir, name string, v any) error {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
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

// Rank is the share of values that are not above a percentile, by the end of its name: p99, median, max.
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
