package doubt

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics/stated"
	"github.com/benchgraph/benchgraph/metrics/units"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/stats/inference"
)

// A gain shortens the run in which it is measured, unless the run has a fixed time. A command also does other work,
// often for most of its time, and nobody knows for how long. So Clock compares differences: the time saved according to
// the outputs, and the time saved by the commands. A start-up that both sides have cancels out.

const (
	clockConfidence = 0.95
	// share by which a command must take longer, if no output states the duration of the work
	clockShare = 0.05
	// share of a command that a time must fill to be the time of all the work, and not of one request among many
	workShare  = 0.25
	clockLeast = 500 * time.Millisecond // smaller differences may be the start of processes
)

// Clock doubts a gain that the wall clock of the measured command does not show.
func Clock(row stats.Comparison, s, base *group.Standing) []stats.Caveat {
	if row.Outcome != stats.Win {
		return nil
	}
	own, theirs := took(s), took(base)
	whole := fills(base)
	work, otherWork := worked(s, base, whole), worked(base, base, whole)
	var saved, claimed, short, before []float64 // by block, in seconds
	for _, block := range slices.Sorted(maps.Keys(own)) {
		other, both := theirs[block]
		if !both {
			continue
		}
		saved, before = append(saved, other-own[block]), append(before, other)
		a, known := work[block]
		b, alike := otherWork[block]
		if known && alike {
			claimed = append(claimed, b-a)
			short = append(short, other-own[block]-(b-a)/2)
		}
	}
	if len(saved) < stats.FewestBlocks {
		return nil
	}
	if len(claimed) == len(saved) {
		gain, _, _ := inference.MeanInterval(claimed, clockConfidence)
		_, _, most := inference.MeanInterval(short, clockConfidence)
		if gain <= 0 || most >= 0 {
			return nil
		}
		mean, _, _ := inference.MeanInterval(saved, clockConfidence)
		return []stats.Caveat{{Kind: stats.CaveatClock, Text: fmt.Sprintf(
			"by the numbers in the outputs %s did the work %s faster than %s, and by the wall clock its command took "+
				"%s", s.Title(), seconds(gain), base.Title(), longer(mean))}}
	}
	mean, _, most := inference.MeanInterval(saved, clockConfidence)
	usual, _, _ := inference.MeanInterval(before, clockConfidence)
	if adaptive(s) || most >= 0 || -mean < clockShare*usual || -mean < clockLeast.Seconds() {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatClock,
		Text: fmt.Sprintf("%s reports a gain, and by the wall clock its command took %s: %s on average against %s",
			s.Title(), longer(mean), seconds(usual-mean), seconds(usual))}}
}

// adaptive reports whether the program itself chooses how much it does, like tools that measure for a fixed time.
func adaptive(s *group.Standing) bool {
	return slices.Contains([]string{"gobench", "hyperfine", "pytest", "pyperf", "googlebench"},
		s.Bench.Metrics.Format) ||
		slices.Contains([]string{"ns/op", "B/op", "allocs/op"}, s.Units[s.Bench.Metrics.Primary]) ||
		strings.HasSuffix(s.Bench.Metrics.Primary, "time_mean") ||
		strings.HasSuffix(s.Bench.Metrics.Primary, "real_time")
}

func seconds(s float64) string { return fmt.Sprintf("%.3g s", s) }

// longer compares two durations in words. saved is their difference, in seconds.
func longer(saved float64) string {
	if saved < 0 {
		return seconds(-saved) + " longer"
	}
	return "only " + seconds(saved) + " less"
}

// took returns the duration of the measured command, in seconds by block.
func took(s *group.Standing) map[int]float64 {
	times := map[int]float64{}
	for _, e := range s.Evidence {
		if e.Took > 0 {
			times[e.Block] = e.Took.Seconds()
		}
	}
	return times
}

// fills reports whether the primary metric is a time that fills a good part of the command. Processor time does not
// count: several threads may share it.
func fills(base *group.Standing) bool {
	primary := base.Bench.Metrics.Primary
	if strings.Contains(strings.ToLower(primary), "cpu") {
		return false
	}
	took, share, blocks := took(base), 0.0, 0
	for block, v := range base.Series[primary] {
		v, ok := units.Convert(v, base.Units[primary], "s")
		if !ok || v > took[block] {
			return false
		}
		share, blocks = share+v/took[block], blocks+1
	}
	return blocks > 0 && share/float64(blocks) >= workShare
}

// worked returns the duration of the measured work according to the output, in seconds by block: the primary metric, if
// it is the time of the whole work or of one iteration; the amount of work divided by the rate; or else the duration
// that the output states. Blocks without any of these are missing.
func worked(s, base *group.Standing, whole bool) map[int]float64 {
	primary := s.Bench.Metrics.Primary
	values, unit := s.Series[primary], s.Units[primary]
	if all := iterated(s, primary); len(all) > 0 && within(s, all) {
		return all
	}
	work := amount(s, primary, unit)
	counted := len(work) > 0
	if !counted {
		work = asked(s, base, primary, unit)
	}
	if (whole || lasts(primary)) && unit != "" {
		work = map[int]float64{}
		for block, v := range values {
			if v, ok := units.Convert(v, unit, "s"); ok {
				work[block] = v
			}
		}
		return work
	}
	if len(work) > 0 {
		times := map[int]float64{}
		for block, n := range work {
			per, ok := units.Convert(values[block], unit, rateOf(unit))
			if ok && per > 0 && n > 0 {
				times[block] = n / per
			}
		}
		if counted && (named(s, primary) || rateOf(unit) == "req/s") || within(s, times) {
			return times
		}
	}
	if printed := s.Series["benchmark_duration"]; len(printed) > 0 && s.Units["benchmark_duration"] == "s" {
		return printed
	}
	return s.Counts["benchmark_duration"]
}

// iterated returns the duration of all iterations of an offline latency benchmark, in seconds by block. The output
// states the number of iterations, or the command asks for it; it is at least one.
func iterated(s *group.Standing, metric string) map[int]float64 {
	format := s.Bench.Metrics.Format
	if !strings.HasPrefix(metric, "latency_") || format != "vllm" && format != "sglang" || custom(s, metric) {
		return nil
	}
	times := map[int]float64{}
	n := max(1, float64(stated.Iterations(sample.CommandLine(s.Bench.Command))))
	for _, e := range s.Evidence {
		each, ok := units.Convert(s.Series[metric][e.Block], s.Units[metric], "s")
		if printed, err := strconv.ParseFloat(e.Settings["iterations"], 64); err == nil && printed > 0 {
			n = printed
		}
		if ok && each > 0 {
			times[e.Block] = n * each
		}
	}
	return times
}

// asked returns the amount of work that the command asks for, by block, for outputs that state none: requests, or
// tokens by the number that the baseline generated for each request.
func asked(s, base *group.Standing, metric, unit string) map[int]float64 {
	n := float64(stated.Requests(sample.CommandLine(s.Bench.Command)))
	work := map[int]float64{}
	for block := range s.Series[metric] {
		switch per := base.Series["request_throughput"][block]; {
		case n == 0:
		case rateOf(unit) == "req/s":
			work[block] = n
		case rateOf(unit) == "tok/s" && per > 0 && base.Series[metric][block] > 0:
			work[block] = n * base.Series[metric][block] / per
		}
	}
	return work
}

// amount returns the amount of work by block, in the unit that a rate counts; nil: unknown, or the metric is no rate.
func amount(s *group.Standing, metric, unit string) map[int]float64 {
	counts := sample.Counts()
	switch rateOf(unit) {
	case "req/s":
		return s.Counted(counts[0])
	case "tok/s":
		input, output := s.Counted(counts[2]), s.Counted(counts[3])
		switch {
		case strings.Contains(metric, "input"):
			return input
		case !strings.Contains(metric, "total"):
			return output
		}
		all := map[int]float64{}
		for block, n := range output {
			if more, ok := input[block]; ok {
				all[block] = n + more
			}
		}
		return all
	}
	return nil
}

// rateOf returns the rate, req/s or tok/s, that a unit can be converted into; empty: none.
func rateOf(unit string) string {
	for _, rate := range []string{"req/s", "tok/s"} {
		if _, ok := units.Convert(1, unit, rate); ok && unit != "" {
			return rate
		}
	}
	return ""
}

// named reports whether a known format gives the metric, so that its meaning is known.
func named(s *group.Standing, metric string) bool {
	return !custom(s, metric) && strings.HasSuffix(metric, "throughput")
}

// custom reports whether the file defines the metric.
func custom(s *group.Standing, metric string) bool {
	return slices.ContainsFunc(s.Bench.Metrics.Custom, func(c hclspec.Metric) bool { return c.Name == metric })
}

// within reports whether the work fits into the time of the commands. If it does not, the rate counts something else
// than the amount, such as one request among many.
func within(s *group.Standing, times map[int]float64) bool {
	took := took(s)
	for block, t := range times {
		if t > took[block] {
			return false
		}
	}
	return len(times) > 0
}

// lasts reports whether a metric, by its name, is the duration of all the work.
func lasts(metric string) bool {
	name := strings.ToLower(metric)
	return slices.ContainsFunc([]string{"duration", "elapsed", "total_time", "runtime", "wall_time"},
		func(word string) bool {
			return strings.Contains(name, word)
		})
}
