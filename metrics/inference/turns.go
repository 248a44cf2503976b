package inference

import (
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

var (
	turnsSummary = lazyregexp.New(`^Statistics summary(?: \(assuming ([0-9]{1,2})% warmup samples\))?:$`)
	turnsFigure  = lazyregexp.New(`^(runtime_sec|requests_per_sec) = ([0-9.,]+)$`)
	turnsColumn  = lazyregexp.New(`^(?:count|mean|std|min|max|([0-9]{1,2}(?:\.[0-9]+)?)%)$`)
)

// statistics reads the result of benchmark_serving_multi_turn.py: two figures, and a table with a row for each metric.
// A wide table is broken into several. There is one result for each share of the samples that counts as warm-up.
func (r *reading) statistics(text string, n int) bool {
	if m := turnsSummary().FindStringSubmatch(text); m != nil {
		r.mode, r.columns, r.prefix = "multi-turn", nil, ""
		if m[1] != "" && m[1] != "0" {
			r.prefix = "warmup_" + m[1] + "_"
		}
		return true
	}
	if r.mode != "multi-turn" {
		return false
	}
	if m := turnsFigure().FindStringSubmatch(text); m != nil {
		metric, unit := "benchmark_duration", "s"
		if m[1] == "requests_per_sec" {
			metric, unit = "request_throughput", "req/s"
		}
		r.sample(r.prefix+metric, m[2], unit, n)
		_, decimals, _ := strings.Cut(m[2], ".")
		r.last.metric, r.last.short = r.prefix+metric, len(decimals) < 3
		return true
	}
	fields := strings.Fields(strings.TrimSuffix(text, `\`))
	if len(fields) == 0 {
		return false
	}
	if turnsColumn().MatchString(fields[0]) {
		r.columns = fields
		return false
	}
	kind := map[string]string{"ttft_ms": "ttft", "tpot_ms": "tpot", "latency_ms": "e2el"}[fields[0]]
	if kind == "" || len(fields) != len(r.columns)+1 {
		return false
	}
	last := len(r.columns) - 1
	if _, decimals, _ := strings.Cut(fields[last+1], "."); len(decimals) < 2 && r.columns[last] != "count" {
		fields = fields[:len(fields)-1] // the last number may be cut off
	}
	for i, column := range r.columns[:len(fields)-1] {
		m := turnsColumn().FindStringSubmatch(column)
		switch {
		case m == nil:
			continue
		case column == "count" && kind == "e2el":
			r.sample(r.prefix+"successful_requests", strings.TrimSuffix(fields[i+1], ".0"), "req", n)
		case column == "50%":
			r.sample(r.prefix+kind+"_median", fields[i+1], "ms", n)
		case m[1] != "":
			r.sample(r.prefix+kind+"_p"+m[1], fields[i+1], "ms", n)
		case column != "count":
			r.sample(r.prefix+kind+"_"+column, fields[i+1], "ms", n)
		}
	}
	return true
}
