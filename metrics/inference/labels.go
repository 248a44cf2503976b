package inference

import (
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// label maps the label of a line to a metric.
type label struct {
	label  string // in lower case
	metric string
	unit   string
	after  string  // unit that must follow the number; empty: none
	table  bool    // has this meaning only below a header
	within section // has this meaning only in this section
	count  bool    // its number may be whole; others have two decimals
	any    bool    // its number may have any number of decimals
	common bool    // other programs print this label, too
}

// labels is the table of the labels of all versions, without those of latencies.
func labels() []label {
	return []label{
		{label: "successful requests", metric: "successful_requests", unit: "req", common: true, count: true},
		{label: "failed requests", metric: "failed_requests", unit: "req", common: true, count: true},
		{label: "benchmark duration (s)", metric: "benchmark_duration", unit: "s"},
		{label: "benchmark duration", metric: "benchmark_duration", unit: "s", after: "s", common: true},
		{label: "total time", metric: "benchmark_duration", unit: "s", after: "s", common: true},
		{label: "total input tokens", metric: "total_input_tokens", unit: "tok", count: true},
		{label: "total input text tokens", metric: "total_input_text_tokens", unit: "tok", count: true},
		{label: "total input vision tokens", metric: "total_input_vision_tokens", unit: "tok", count: true},
		{label: "total generated tokens", metric: "total_output_tokens", unit: "tok", count: true},
		{label: "total generated tokens (retokenized)", metric: "total_output_tokens_retokenized", unit: "tok",
			count: true},
		{label: "total num prompt tokens", metric: "total_input_tokens", unit: "tok", count: true},
		{label: "total num output tokens", metric: "total_output_tokens", unit: "tok", count: true},
		{label: "request throughput (req/s)", metric: "request_throughput", unit: "req/s"},
		{label: "request throughput", metric: "request_throughput", unit: "req/s", after: "requests/s"},
		{label: "request goodput (req/s)", metric: "request_goodput", unit: "req/s"},
		{label: "input token throughput (tok/s)", metric: "input_token_throughput", unit: "tok/s"},
		{label: "input token throughput", metric: "input_token_throughput", unit: "tok/s", after: "tokens/s"},
		{label: "output token throughput (tok/s)", metric: "output_token_throughput", unit: "tok/s"},
		{label: "output token throughput", metric: "output_token_throughput", unit: "tok/s", after: "tokens/s"},
		{label: "total token throughput (tok/s)", metric: "total_token_throughput", unit: "tok/s"},
		{label: "total throughput (tok/s)", metric: "total_token_throughput", unit: "tok/s"},
		{label: "peak output token throughput (tok/s)", metric: "peak_output_token_throughput", unit: "tok/s"},
		{label: "last generation throughput (tok/s)", metric: "last_generation_throughput", unit: "tok/s", table: true},
		{label: "peak concurrent requests", metric: "peak_concurrent_requests", unit: "req", table: true, count: true},
		{label: "concurrency", metric: "concurrency", unit: "req", table: true},
		{label: "accept length", metric: "accept_length", table: true},
		{label: "cache hit rate", metric: "cache_hit_rate", unit: "%", after: "%", table: true},
		{label: "rtfx (inverse real-time factor)", metric: "rtfx", table: true},
		{label: "acceptance rate (%)", metric: "spec_decode_acceptance_rate", unit: "%", within: speculative},
		{label: "acceptance length", metric: "spec_decode_acceptance_length", within: speculative},
		{label: "drafts", metric: "spec_decode_drafts", within: speculative, count: true},
		{label: "draft tokens", metric: "spec_decode_draft_tokens", unit: "tok", within: speculative, count: true},
		{label: "accepted tokens", metric: "spec_decode_accepted_tokens", unit: "tok", within: speculative,
			count: true},
		{label: "average latency per token", metric: "latency_per_token_avg", unit: "s", after: "s"},
		{label: "average latency per output token", metric: "latency_per_output_token_avg", unit: "s", after: "s"},
		{label: "average latency", metric: "e2el_mean", unit: "s", after: "s", common: true},
	}
}

var (
	tableLatency = lazyregexp.New(`^(mean|median|std|min|max|p[0-9]+(?:\.[0-9]+)?) ` +
		`(ttft|tpot|itl|e2el|e2e latency)( \(ms\))?$`)
	tablePosition = lazyregexp.New(`^position ([0-9]{1,3})$`)
	undescribed   = lazyregexp.New(`^\s*[0-9]{1,3}%\|[^|]*\|\s*[0-9]+/([0-9]+) \[[^\]]*\]`)
	described     = lazyregexp.New(`[0-9]{1,3}%\|[^|]*\|\s*\S+/\S+ \[[^\]]*\]`)
)

// latencyLabel translates Mean TTFT (ms), P99.9 ITL (ms), Median E2E Latency (ms), and Mean TPOT, whose unit follows
// the number.
func latencyLabel(name string) (metric, unit, after string, ok bool) {
	m := tableLatency().FindStringSubmatch(name)
	if m == nil {
		return "", "", "", false
	}
	kind := m[2]
	if kind == "e2e latency" {
		kind = "e2el"
	}
	if m[3] == "" {
		after = "ms"
	}
	return kind + "_" + m[1], "ms", after, true
}

// progress returns the end of the last progress bar in a line, and its total if the bar has no description, as in
// serving benchmarks.
func progress(text string) (end, total int, ok bool) {
	if !strings.Contains(text, "%|") {
		return 0, 0, false
	}
	for {
		at := described().FindStringIndex(text[end:])
		if at == nil {
			return end, total, end > 0
		}
		if m := undescribed().FindStringSubmatch(text[end : end+at[1]]); m != nil {
			total = atoi(m[1])
		}
		end += at[1]
	}
}
