package hclspec

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Formats returns the values of metrics.format.
func Formats() []string {
	return []string{
		"auto", "vllm", "sglang", "aiperf", "gobench", "redis", "hyperfine", "pytest", "pyperf", "googlebench", "json",
		"regex",
	}
}

// FormatMetrics returns names of the metrics of a format, for people to choose from. Not all percentiles are listed:
// see Gives. Nil: the names of the format depend on the benchmark.
func FormatMetrics(format string) []string {
	if format != "vllm" && format != "sglang" {
		return nil
	}
	names := []string{
		"request_throughput", "output_token_throughput", "total_token_throughput", "input_token_throughput",
		"ttft_mean", "ttft_median", "ttft_p99", "tpot_mean", "tpot_median", "tpot_p99", "itl_mean", "itl_median",
		"itl_p99", "e2el_mean", "e2el_median", "e2el_p99",
		"benchmark_duration", "successful_requests", "total_input_tokens", "total_output_tokens",
		"peak_output_token_throughput", "peak_concurrent_requests",
	}
	if format == "vllm" {
		return append(names, "latency_avg", "latency_p50", "latency_p99", "failed_requests", "request_goodput",
			"total_tokens",
			"latency_per_token_avg", "latency_per_output_token_avg", "correct_rate", "rtfx", "cold_startup_avg",
			"warm_startup_avg", "spec_decode_acceptance_rate", "spec_decode_acceptance_length", "spec_decode_drafts",
			"spec_decode_draft_tokens", "spec_decode_accepted_tokens")
	}
	return append(names, "latency_total", "ttft", "last_ttft", "prefill_latency", "prefill_throughput",
		"decode_latency_median",
		"decode_throughput_median", "decode_latency_mean", "decode_throughput_mean", "last_generation_throughput",
		"concurrency", "accept_length", "cache_hit_rate", "total_input_text_tokens", "total_input_vision_tokens",
		"total_output_tokens_retokenized")
}

var (
	latencyMetric = lazyregexp.New(`^(ttft|tpot|itl|e2el)_(mean|median|std|min|max|p[0-9]+(_[0-9]+)?)$`)
	offlineMetric = lazyregexp.New(`^(latency_p[0-9]+(_[0-9]+)?` +
		`|(cold|warm)_(encoder_)?(startup|compilation)_(avg|p[0-9]+)|spec_decode_acceptance_position_[0-9]+)$`)
	partOfRun = lazyregexp.New(`^(steady_state|(turn|warmup)_[0-9]+)_`)
)

// Gives reports whether a format can have a metric. Formats whose names depend on the benchmark can have any. Case and
// separators do not matter, as in the output.
func Gives(format, metric string) bool {
	listed := FormatMetrics(format)
	name := partOfRun().ReplaceAllString(strings.Join(wordsOf(metric), "_"), "")
	return listed == nil || slices.Contains(listed, name) || latencyMetric().MatchString(name) ||
		format == "vllm" && offlineMetric().MatchString(name)
}

// wordsOf splits a name into its words, in lower case.
func wordsOf(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// meant returns the metric among names that another tool, or a file of the same tool, calls metric; empty: no name is
// near.
func meant(metric string, names []string) string {
	var words []string
	for _, word := range wordsOf(metric) {
		switch word {
		case "requests", "req", "reqs":
			words = append(words, "request")
		case "tokens", "tok", "toks":
			words = append(words, "token")
		case "rps", "qps":
			words = append(words, "request", "throughput")
		case "tps":
			words = append(words, "output", "token", "throughput")
		case "sec", "second", "seconds", "rate", "s":
			words = append(words, "throughput")
		case "avg", "average":
			words = append(words, "mean", "avg")
		case "e2e":
			words = append(words, "e2el")
		case "per", "ms", "latency":
		default:
			words = append(words, word)
		}
	}
	best, most := "", 0.0
	for _, name := range names {
		parts := wordsOf(name)
		common := 0
		for _, part := range parts {
			if slices.Contains(words, part) {
				common++
			}
		}
		if share := float64(common) / float64(len(parts)+len(words)-common); common > 0 && share > most {
			best, most = name, share
		}
	}
	if most < 0.5 {
		return ""
	}
	return best
}

// given reports a metric that the format of the block cannot have.
func (r reader) given(attr, format, metric string) {
	if Gives(format, metric) {
		return
	}
	names := FormatMetrics(format)
	choices := diag.Suggest(metric, names)
	if m := meant(metric, names); m != "" && choices == "" {
		choices = fmt.Sprintf(" Did you mean %q?", m)
	}
	if choices == "" {
		choices = diag.Choices(metric, names)
	}
	r.Fail(r.At(attr), "Unknown metric",
		"The output of %s has no metric %q.%s A metric of your own has a metric block.",
		format, metric, choices)
}

// gives reports the metrics of the block that no output of its format has.
func (r reader) gives(m Metrics, own []string) {
	if m.Format == "regex" && len(own) == 0 {
		r.Fail(r.At("format"), "Nothing to read", "format = \"regex\" reads metric blocks, and there is none.")
		return
	}
	if m.Primary != "" && !slices.Contains(own, m.Primary) {
		r.given("primary", m.Format, m.Primary)
	}
	for _, want := range m.Require {
		if name := want.Metric; name != "completed" && name != "failed" && !slices.Contains(own, name) {
			r.given("require", m.Format, name)
		}
	}
}
