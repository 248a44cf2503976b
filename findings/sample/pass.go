package sample

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics"
)

// passDirs returns the directories of the passes of a lifecycle, relative to the member's directory, in the order of
// the passes.
func passDirs(passes int) []string {
	var dirs []string
	for number := 1; number < passes; number++ {
		dirs = append(dirs, PassDir(number))
	}
	return append(dirs, ".")
}

// readPasses reads the raw output of all passes of one lifecycle. It returns the means of all numbers, and the primary
// one. If the output of a pass has no valid primary sample, the error is a *engine.Failure.
func readPasses(b *hclspec.Benchmark, dir string) (metrics.Result, metrics.Sample, error) {
	var (
		passes  []metrics.Result
		primary metrics.Sample
	)
	dirs := passDirs(b.Design.Passes())
	for i, pass := range dirs {
		result, err := Read(b.Metrics, b.Command, filepath.Join(dir, pass))
		if primary, err = primaryOf(b.Metrics, result, err); err != nil {
			findElsewhere(err, b, filepath.Join(dir, pass))
			return result, primary, inPass(err, i+1, len(dirs))
		}
		passes = append(passes, result)
	}
	if len(passes) == 1 {
		return passes[0], primary, nil
	}
	mean := meanOf(passes)
	decides, ok := metrics.Find(mean.Samples, primary.Metric)
	if !ok {
		return mean, primary, &engine.Failure{Failure: failure.Failure{
			Class: failure.Invalid, Rule: MetricMissing, Stage: "parse",
			Message: fmt.Sprintf("metric %q is not the same in all passes: its unit or its parts differ",
				primary.Metric),
			Remedy: "let the command print the primary metric in one unit",
		}}
	}
	return mean, decides, nil
}

// findElsewhere adds to a failure about a missing metric where in the output of a directory the metric stands.
func findElsewhere(err error, b *hclspec.Benchmark, dir string) {
	if f, ok := errors.AsType[*engine.Failure](err); ok && f.Rule == MetricMissing {
		if text, remedy := elsewhere(b.Metrics, b.Command, dir); text != "" {
			f.Message, f.Remedy = f.Message+"; "+text, remedy
		}
	}
}

// inPass adds the number of the pass to the message of a failure, if there are several passes.
func inPass(err error, number, of int) error {
	if f, ok := errors.AsType[*engine.Failure](err); ok && of > 1 {
		f.Message = fmt.Sprintf("pass %d of %d: %s", number, of, f.Message)
	}
	return err
}

// meanOf merges the results of several passes into one: the means of the numbers that every pass has, and all warnings.
func meanOf(passes []metrics.Result) metrics.Result {
	last := passes[len(passes)-1]
	all := metrics.Result{Format: last.Format, Labels: last.Labels}
	seen := map[string]bool{}
	for i, pass := range passes {
		all.Stated.Merge(pass.Stated)
		for _, w := range pass.Warnings {
			if !slices.ContainsFunc(all.Warnings, func(have metrics.Warning) bool {
				return have.Text == w.Text && have.Metric == w.Metric
			}) {
				all.Warnings = append(all.Warnings, w)
			}
		}
		for _, s := range pass.Samples {
			if seen[s.Metric] {
				continue
			}
			seen[s.Metric] = true
			if mean, ok := meanSample(s.Metric, passes); ok {
				all.Samples = append(all.Samples, mean)
			} else {
				all.Warnings = append(all.Warnings, metrics.Warning{Metric: s.Metric,
					Text: fmt.Sprintf("%s is not the same in all passes (see pass %d): it is left out", s.Metric, i+1)})
			}
		}
	}
	all.Stated.Counts = meanCounts(passes)
	return all
}

// meanSample returns the mean of a metric over the passes. ok is false unless all passes have the metric, in one unit
// and over the same parts.
func meanSample(metric string, passes []metrics.Result) (mean metrics.Sample, ok bool) {
	for i, pass := range passes {
		at := slices.IndexFunc(pass.Samples, func(s metrics.Sample) bool { return s.Metric == metric })
		if at < 0 {
			return mean, false
		}
		s := pass.Samples[at]
		if i == 0 {
			mean = metrics.Sample{Metric: metric, Unit: s.Unit, Over: s.Over}
		}
		if s.Unit != mean.Unit || !slices.Equal(s.Over, mean.Over) {
			return mean, false
		}
		mean.Value += s.Value
	}
	mean.Value /= float64(len(passes))
	return mean, true
}

// meanCounts returns the means of the counts that all passes state.
func meanCounts(passes []metrics.Result) map[string]float64 {
	means := map[string]float64{}
	for name := range passes[0].Stated.Counts {
		sum, all := 0.0, true
		for _, pass := range passes {
			count, stated := pass.Stated.Counts[name]
			sum, all = sum+count, all && stated
		}
		if all {
			means[name] = sum / float64(len(passes))
		}
	}
	return means
}
