// Package exchange writes documents for other programs: tables, test results, benchmark files, traces, and formats of
// services that track benchmarks.
package exchange

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/stats/inference"
)

// The formats in this file are histories of benchmarks in other programs. They have no verdicts: each value is the
// mean of the judged samples of one candidate, with its interval if there are several samples.

// series is the list of values of one metric of one candidate.
type series struct {
	benchmark, commit, candidate, metric, unit, better, class string
	values                                                    []float64
}

// name returns the name of the series, with the candidate.
func (s series) name() string { return printable.Line(s.benchmark + " " + s.candidate) }

// mean returns the geometric mean with its 95 % interval, as in the other formats; if a value is not positive, it
// returns the arithmetic mean. The interval of a single value is that value.
func (s series) mean() (mean, low, high float64) {
	values, back := make([]float64, len(s.values)), math.Exp
	for i, v := range s.values {
		values[i] = math.Log(v)
	}
	if slices.Min(s.values) <= 0 {
		copy(values, s.values)
		back = func(v float64) float64 { return v }
	}
	mean, low, high = inference.MeanInterval(values, 0.95)
	if len(values) < 2 {
		low, high = mean, mean
	}
	return back(mean), back(low), min(back(high), math.MaxFloat64)
}

// allSeries returns the series of a report, sorted by benchmark, commit, candidate and metric.
func allSeries(p *document.Counted) []series {
	type key struct{ benchmark, candidate, metric, unit, class string }
	places := map[key]int{}
	var all []series
	for _, m := range p.Measurements {
		if m.Phase != "" {
			continue
		}
		k := key{m.Benchmark, m.Candidate, m.Metric, m.Unit, m.DeviceClass}
		i, known := places[k]
		if !known {
			i = len(all)
			places[k] = i
			all = append(all, series{m.Benchmark, m.Commit, m.Candidate, m.Metric, m.Unit, m.Better, m.DeviceClass,
				nil})
		}
		all[i].values = append(all[i].values, m.Value)
	}
	slices.SortStableFunc(all, func(a, b series) int {
		return cmp.Or(cmp.Compare(a.benchmark, b.benchmark), cmp.Compare(a.commit, b.commit),
			cmp.Compare(a.candidate, b.candidate), cmp.Compare(a.metric, b.metric))
	})
	return all
}

// GitHubActionBenchmark writes one file for each direction, for the tools customBiggerIsBetter and
// customSmallerIsBetter of github-action-benchmark. Metrics without a direction are in neither file.
func GitHubActionBenchmark(p *document.Counted) (map[string][]byte, error) {
	type entry struct {
		Name  string  `json:"name"`
		Unit  string  `json:"unit"`
		Value float64 `json:"value"`
		Range string  `json:"range,omitempty"`
		Extra string  `json:"extra,omitempty"`
	}
	of := map[string][]entry{stats.Higher: {}, stats.Lower: {}}
	for _, s := range allSeries(p) {
		if _, directed := of[s.better]; !directed {
			continue
		}
		mean, low, high := s.mean()
		e := entry{Name: s.name() + " " + printable.Line(s.metric), Unit: printable.Line(s.unit), Value: mean,
			Extra: fmt.Sprintf("%d samples on %s", len(s.values), printable.Line(s.class))}
		if len(s.values) > 1 {
			e.Range = fmt.Sprintf("%.6g to %.6g", low, high)
		}
		of[s.better] = append(of[s.better], e)
	}
	files := map[string][]byte{}
	for better, name := range map[string]string{stats.Higher: "benchmark-bigger-is-better.json",
		stats.Lower: "benchmark-smaller-is-better.json"} {
		text, err := document.Indented(of[better])
		if err != nil {
			return nil, err
		}
		files[name] = text
	}
	return files, nil
}

// BMF writes bmf.json in the Bencher Metric Format: benchmarks, their measures, and the value of each.
func BMF(p *document.Counted) (map[string][]byte, error) {
	type value struct {
		Value float64  `json:"value"`
		Lower *float64 `json:"lower_value,omitempty"`
		Upper *float64 `json:"upper_value,omitempty"`
	}
	measures := map[string]map[string]value{}
	for _, s := range allSeries(p) {
		mean, low, high := s.mean()
		v := value{Value: mean}
		if len(s.values) > 1 {
			v.Lower, v.Upper = &low, &high
		}
		if measures[s.name()] == nil {
			measures[s.name()] = map[string]value{}
		}
		measures[s.name()][printable.Line(s.metric)] = v
	}
	text, err := document.Indented(measures)
	return map[string][]byte{"bmf.json": text}, err
}

// PyTorch writes pytorch.json, a list of records for the PyTorch benchmark database: one for each metric of a
// candidate, with all its samples.
func PyTorch(p *document.Counted) (map[string][]byte, error) {
	type named struct {
		Name  string            `json:"name"`
		Extra map[string]string `json:"extra_info"`
	}
	type record struct {
		Benchmark named `json:"benchmark"`
		Model     struct {
			Name string `json:"name"`
		} `json:"model"`
		Metric struct {
			named
			Values []float64 `json:"benchmark_values"`
		} `json:"metric"`
	}
	records := []record{}
	for _, s := range allSeries(p) {
		var r record
		r.Benchmark = named{printable.Line(s.benchmark), map[string]string{"commit": printable.Line(s.commit),
			"candidate": printable.Line(s.candidate), "device": printable.Line(s.class)}}
		if i, known := p.Places[s.commit]; known {
			r.Benchmark.Extra["rev"] = printable.Line(p.Commits[i].Rev)
			r.Model.Name = printable.Line(p.Commits[i].Model)
		}
		r.Metric.named = named{printable.Line(s.metric), map[string]string{"unit": printable.Line(s.unit),
			"better": s.better}}
		r.Metric.Values = s.values
		records = append(records, r)
	}
	text, err := document.Indented(records)
	return map[string][]byte{"pytorch.json": text}, err
}
