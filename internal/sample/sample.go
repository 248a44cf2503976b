package sample

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/stats"
)

// ReaderVersion is part of the keys of what is read from raw output, never of what produces it: a better parser costs a
// reading, and no measurement.
const ReaderVersion = "1"

// MetricMissing is the rule of a run whose output has no primary metric. Unless there is no output at all, no record of a
// block has it: it is found out whenever the output is read.
const MetricMissing = "metric_missing"

// Measurement is one number of one sample.
type Measurement struct {
	Benchmark string  `json:"benchmark"`
	Commit    string  `json:"commit"`
	Candidate string  `json:"candidate"`
	Block     int     `json:"block"`
	Position  int     `json:"position"` // in the block's random order, from 1
	Seed      uint64  `json:"seed"`
	Start     string  `json:"start"` // RFC 3339
	Metric    string  `json:"metric"`
	Value     float64 `json:"value"`
	Unit      string  `json:"unit"`
	Hardware  string  `json:"hardware"` // class

	Of hclspec.Address `json:"-"` // the instance that it was taken of; set where numbers of several ones are together
}

// Read parses the raw output that one lifecycle left in a directory.
func Read(spec hclspec.Metrics, dir string) (metrics.Result, error) {
	parser, err := parserOf(spec)
	if err != nil {
		return metrics.Result{}, err
	}
	out := metrics.Output{Open: func(name string) (io.ReadCloser, error) { return os.OpenInRoot(filepath.Join(dir, OutDir), name) }}
	var f io.ReadCloser
	if spec.File != "" {
		f, err = out.Open(spec.File)
	} else {
		f, err = os.Open(filepath.Join(dir, StdoutFile))
	}
	if err != nil {
		return metrics.Result{}, err
	}
	defer f.Close()
	out.Stdout = f
	return parser.Parse(out)
}

func parserOf(spec hclspec.Metrics) (metrics.Parser, error) {
	if len(spec.Custom) == 0 {
		return metrics.Lookup(spec.Format)
	}
	defs := make([]metrics.Definition, len(spec.Custom))
	for i, c := range spec.Custom {
		defs[i] = metrics.Definition{Name: c.Name, Match: c.Match, JSON: c.JSON, File: c.File, Unit: c.Unit, Better: c.Better}
	}
	return metrics.NewCustom(defs)
}

// Primary reads the number that decides from the raw output that one lifecycle left in a directory. Without it there is a
// *engine.Failure.
func Primary(spec hclspec.Metrics, dir string) (metrics.Sample, error) {
	result, err := Read(spec, dir)
	return primaryOf(spec, result, err)
}

// primaryOf finds the primary metric in what was read.
func primaryOf(spec hclspec.Metrics, result metrics.Result, err error) (metrics.Sample, error) {
	if err == nil {
		if s, ok := metrics.Find(result.Samples, spec.Primary); ok {
			return s, nil
		}
	}
	message := fmt.Sprintf("metric %q not found in the output", spec.Primary)
	if near := metrics.Nearest(spec.Primary, labels(result), 5); len(near) > 0 {
		message += fmt.Sprintf("; nearest labels there: %q", near)
	} else if errors.Is(err, fs.ErrNotExist) {
		message += ": the command left no " + spec.File + " in $OUT"
	} else if err != nil {
		message += ": " + err.Error()
	} else if len(result.Warnings) > 0 {
		message += ": " + result.Warnings[0].Text
	}
	return metrics.Sample{}, &engine.Failure{Err: err, Failure: cache.Failure{
		Class: cache.Invalid, Rule: MetricMissing, Stage: "parse", Message: message,
		Remedy: "correct metrics.primary or the metric's match; benchgraph parse FILE shows what is read",
	}}
}

func labels(r metrics.Result) []string {
	all := make([]string, 0, len(r.Samples)+len(r.Labels))
	for _, s := range r.Samples {
		all = append(all, s.Metric)
	}
	return append(all, r.Labels...)
}

// Better is which way a metric is better, stats.Higher or stats.Lower: as its definition says, else by what it is.
func Better(spec hclspec.Metrics, metric, unit string) (string, bool) {
	for _, def := range spec.Custom {
		if def.Name == metric && def.Better != "" {
			return def.Better, true
		}
	}
	higher, known := metrics.Better(metric, unit)
	switch {
	case !known:
		return "", false
	case higher:
		return stats.Higher, true
	}
	return stats.Lower, true
}

// Measurements reads all numbers of one member of a block anew from its raw output in the block's entry. Without the
// primary one they are a *engine.Failure.
func (r *Record) Measurements(e cache.Entry, b *hclspec.Benchmark, member string) ([]Measurement, error) {
	result, err := Read(b.Metrics, filepath.Join(e.Dir, member))
	primary, err := primaryOf(b.Metrics, result, err)
	if err != nil {
		return nil, err
	}
	commit, _, _ := strings.Cut(b.Candidate, "/")
	rows := make([]Measurement, 0, len(result.Samples))
	for _, s := range result.Samples {
		if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			continue
		}
		if s == primary {
			s.Metric = b.Metrics.Primary // the file may spell it in its own way
		}
		rows = append(rows, Measurement{
			Benchmark: b.Address.Name, Commit: commit, Candidate: b.Candidate, Block: r.Block,
			Position: 1 + slices.Index(r.Order, member), Seed: r.Seed, Start: r.Members[member].Start.UTC().Format("2006-01-02T15:04:05.000Z"),
			Metric: s.Metric, Value: s.Value, Unit: s.Unit, Hardware: r.Class.String(),
		})
	}
	return rows, nil
}

const gatheredFile = "samples.json"

// WriteGathered keeps what was read of all blocks of a member, as the result of its benchmark node.
func WriteGathered(dir string, rows []Measurement) error {
	text, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, gatheredFile), append(text, '\n'), 0o644)
}

// Gathered reads that back.
func Gathered(e cache.Entry) ([]Measurement, error) {
	text, err := os.ReadFile(filepath.Join(e.Dir, gatheredFile))
	if err != nil {
		return nil, err
	}
	var rows []Measurement
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("%s: %w", gatheredFile, err)
	}
	return rows, nil
}
