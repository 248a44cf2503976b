// Package format names the formats of outputs, and the metrics that each of them can have.
package format

import (
	"slices"
	"strings"
	"unicode"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Names returns the values of metrics.format.
func Names() []string {
	return []string{
		"auto", "vllm", "sglang", "aiperf", "gobench", "redis", "hyperfine", "pytest", "pyperf", "googlebench", "json",
		"regex",
	}
}

// Metrics returns names of the metrics of a format, for people to choose from. Not all percentiles are listed:
// see Gives. Nil: the names of the format depend on the benchmark.
func Metrics(format string) []string {
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
	listed := Metrics(format)
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

// Meant returns the metric of a format that another tool, or a file of the same tool, calls metric; empty: no name is
// near.
func Meant(format, metric string) string {
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
	for _, name := range Metrics(format) {
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
