package sample

import (
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
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/custom"
	"github.com/benchgraph/benchgraph/metrics/formats"
	"github.com/benchgraph/benchgraph/metrics/names"
	"github.com/benchgraph/benchgraph/stats"
)

// ReaderVersion is part of the keys of results that are read from raw output, and not of the keys of the raw output: a
// better parser costs a reading, and no measurement.
const ReaderVersion = "8"

// MetricMissing is the rule of a run whose output has no primary metric. Whoever reads the output finds it; the record
// of a block has it only if there is no output at all.
const MetricMissing = "metric_missing"

// Undecided stands for the primary metric of a try that takes the one which the output of its first block tells.
const Undecided = "undecided"

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
	Hardware  string  `json:"hardware"`        // class
	Phase     string  `json:"phase,omitempty"` // BurnIn in a block that is not judged; else empty

	Of hclspec.Address `json:"-"` // benchmark instance; set in lists with several
}

// BurnIn is the phase of the blocks that the file asks for before the judged ones.
const BurnIn = "burn-in"

// Read parses the raw output that one lifecycle left in a directory. command is the measured command, or empty; it may
// tell how many requests were asked for.
func Read(spec hclspec.Metrics, command hclspec.Command, dir string) (metrics.Result, error) {
	parsers, err := parsersOf(spec)
	if err != nil {
		return metrics.Result{}, err
	}
	var all metrics.Result
	for i, parser := range parsers {
		r, err := read(parser, spec.File, command, dir)
		switch {
		case err != nil:
			return metrics.Result{}, err
		case i == 0:
			all = r
			if spec.File != "" && (len(spec.Custom) == 0 || !spec.Own()) {
				doubtFile(&all, parser, spec, command, dir)
			}
			continue
		}
		// a definition in the file replaces the metric of the format
		all.Samples = slices.DeleteFunc(all.Samples, func(s metrics.Sample) bool {
			return slices.ContainsFunc(r.Samples, func(own metrics.Sample) bool { return own.Metric == s.Metric })
		})
		all.Samples = append(all.Samples, r.Samples...)
		all.Warnings = append(all.Warnings, r.Warnings...)
		all.Labels = append(all.Labels, r.Labels...)
		for _, s := range r.Samples {
			delete(all.Doubts, s.Metric)
		}
		for metric, why := range r.Doubts {
			if all.Doubts == nil {
				all.Doubts = map[string]string{}
			}
			all.Doubts[metric] = why
		}
	}
	all.Stated, err = statement(spec, dir)
	return all, err
}

// read parses the output with one parser.
func read(parser metrics.Parser, file string, command hclspec.Command, dir string) (metrics.Result, error) {
	var err error
	open := func(name string) (io.ReadCloser, error) { return os.OpenInRoot(filepath.Join(dir, OutDir), name) }
	out := metrics.Output{Command: CommandLine(command), Open: open}
	var f io.ReadCloser
	if file != "" {
		f, err = out.Open(file)
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

// CommandLine returns a command as text, to look for its options. A dollar sign stands for each reference.
func CommandLine(c hclspec.Command) string {
	return Expand(c, func(hclspec.Address) string { return "$" })
}

// Expand returns a command as text. refer returns the text for a reference.
func Expand(c hclspec.Command, refer func(hclspec.Address) string) string {
	if c.Argv == nil {
		return c.Shell.Expand(refer)
	}
	words := make([]string, len(c.Argv))
	for i, word := range c.Argv {
		words[i] = word.Expand(refer)
	}
	return strings.Join(words, " ")
}

// parsersOf returns the parsers of a benchmark's output. If there are metric blocks, they are the only parser, unless
// the file names a format that gives metrics by itself.
func parsersOf(spec hclspec.Metrics) ([]metrics.Parser, error) {
	var parsers []metrics.Parser
	if len(spec.Custom) == 0 || !spec.Own() {
		p, err := formats.Lookup(spec.Format)
		if err != nil || len(spec.Custom) == 0 {
			return []metrics.Parser{p}, err
		}
		parsers = append(parsers, p)
	}
	defs := make([]custom.Definition, len(spec.Custom))
	for i, c := range spec.Custom {
		defs[i] = custom.Definition{Name: c.Name, Match: c.Match, JSON: c.JSON, File: c.File, Unit: c.Unit}
	}
	p, err := custom.New(defs)
	return append(parsers, p), err
}

// Primary reads the primary metric from the raw output of one lifecycle in a directory. If the output lacks the metric,
// the error is a *engine.Failure.
func Primary(b *hclspec.Benchmark, dir string) (metrics.Sample, error) {
	_, primary, err := readPasses(b, dir)
	return primary, err
}

const tooLong = "let the command write its totals to a file of their own, without the values of each request"

const noFile = "let the command write this file to $OUT, or correct the attribute file of the metrics"

// primaryOf finds the primary metric in a result. An invalid result has none. Every error is a *engine.Failure.
func primaryOf(spec hclspec.Metrics, result metrics.Result, err error) (metrics.Sample, error) {
	if f := result.Failure; err == nil && f != nil {
		return metrics.Sample{}, &engine.Failure{Failure: failure.Failure{
			Class: f.Class, Rule: f.Rule, Stage: f.Stage, Message: f.Evidence, Evidence: f.Evidence,
			Remedy: f.Remedy,
		}}
	}
	if err == nil {
		if s, ok := metrics.Find(result.Samples, spec.Primary); ok {
			if err := doubted(s, result); err != nil {
				return metrics.Sample{}, err
			}
			return s, incomplete(spec, result)
		}
	}
	message := fmt.Sprintf("metric %q not found in the output", spec.Primary)
	if spec.Primary == Undecided {
		message = "no metric of the output decides yet"
	}
	for _, m := range spec.Custom {
		if m.Name == spec.Primary && m.Match != "" {
			message = fmt.Sprintf("metric %q: no line of the output matches %q", m.Name, m.Match)
		}
	}
	unread := slices.IndexFunc(result.Warnings, func(w metrics.Warning) bool {
		return w.Kind == metrics.Unread && w.Metric == spec.Primary
	})
	remedy := "correct metrics.primary or the metric's match"
	if unread >= 0 {
		message = "metric " + result.Warnings[unread].Text
		remedy = "let the command print a number there"
	} else if near := names.Nearest(spec.Primary, labels(result), 5); len(near) > 0 {
		message += fmt.Sprintf("; nearest labels there: %q", near)
		if near[0] == spec.Primary {
			message += fmt.Sprintf("; no known format has it: metric %q { match = … } reads it", spec.Primary)
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		message += ": the command left no " + spec.File + " in $OUT"
		remedy = noFile
	} else if err != nil {
		message += ": " + err.Error()
	} else {
		for _, w := range result.Warnings {
			if w.Kind != metrics.NotFound || w.Metric != spec.Primary { // the message says that already
				switch message += ": " + w.Text; {
				case strings.HasSuffix(w.Text, custom.NoFile):
					remedy = noFile
				case w.Kind == metrics.Cut && w.Line == 0:
					remedy = tooLong
				}
				break
			}
		}
	}
	return metrics.Sample{}, &engine.Failure{Err: err, Failure: failure.Failure{
		Class: failure.Invalid, Rule: MetricMissing, Stage: "parse", Message: message,
		Remedy: remedy + "; benchgraph parse FILE shows what is read",
	}}
}

func labels(r metrics.Result) []string {
	all := make([]string, 0, len(r.Samples)+len(r.Labels))
	for _, s := range r.Samples {
		all = append(all, s.Metric)
	}
	return append(all, r.Labels...)
}

// Better returns the direction in which a metric improves, stats.Higher or stats.Lower: from the definition of the
// metric, or else from its name and unit.
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

// Read parses the raw output of one member in a block's entry again and returns all numbers with their evidence. If no
// sample counts, the error is a *engine.Failure.
func (r *Record) Read(e cache.Entry, b *hclspec.Benchmark, member string) ([]Measurement, Evidence, error) {
	result, primary, err := readPasses(b, filepath.Join(e.Dir, member))
	if err != nil {
		return nil, Evidence{}, err
	}
	result.Warnings = slices.DeleteFunc(result.Warnings, func(w metrics.Warning) bool {
		return w.Kind == metrics.Unasked && slices.ContainsFunc(b.Metrics.Require, func(r hclspec.Required) bool {
			return canonical(r.Metric) == Counts()[0][0] // the file requires a number of requests
		})
	})
	commit, _, _ := strings.Cut(b.Candidate, "/")
	rows := make([]Measurement, 0, len(result.Samples))
	for i, s := range result.Samples {
		if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			continue
		}
		if s.Metric == primary.Metric {
			s.Metric = b.Metrics.Primary // the file may use another spelling
			result.Samples[i].Metric = s.Metric
		}
		rows = append(rows, Measurement{
			Benchmark: b.Address.Name, Commit: commit, Candidate: b.Candidate, Block: r.Block,
			Position: 1 + slices.Index(r.Order, member), Seed: r.Seed,
			Start:  r.Members[member].Start.UTC().Format("2006-01-02T15:04:05.000Z"),
			Metric: s.Metric, Value: s.Value, Unit: s.Unit, Hardware: r.Class.String(),
		})
	}
	return rows, r.evidence(member, result), nil
}

// Lost returns why a member that ran has no number: the failure in the record, or that of reading its output in the
// block's entry. It returns nil if the member has one.
func (r *Record) Lost(e cache.Entry, b *hclspec.Benchmark, member string) *failure.Failure {
	own, in := r.Members[member]
	if own.Failure != nil || !in || own.Skipped != "" {
		return own.Failure
	}
	_, _, err := r.Read(e, b, member)
	if f, ok := errors.AsType[*engine.Failure](err); ok {
		return &f.Failure
	}
	return nil
}

// Unread returns why no number can be read from the output of a member in a block's entry; nil if one can, if the files
// of the entry are not here, or if the record itself has a failure.
func Unread(e cache.Entry, b *hclspec.Benchmark, member string) *failure.Failure {
	rec, err := ReadRecord(e)
	if err != nil || rec.Members[member].Failure != nil {
		return nil
	}
	return rec.Lost(e, b, member)
}

const gatheredFile = "samples.json"

// WriteGathered writes the numbers and evidence of all blocks of a member, as the result of its benchmark node.
func WriteGathered(dir string, read Reading) error {
	return errors.Join(writeJSON(dir, gatheredFile, read.Rows), writeJSON(dir, evidenceFile, read.Blocks))
}

// Gathered reads the files of WriteGathered.
func Gathered(e cache.Entry) (read Reading, err error) {
	if _, err := os.Stat(filepath.Join(e.Dir, gatheredFile)); err != nil {
		return read, err
	}
	return read, errors.Join(readJSON(e.Dir, gatheredFile, &read.Rows), readJSON(e.Dir, evidenceFile, &read.Blocks))
}
