package inference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/invalid"
	"github.com/benchgraph/benchgraph/metrics/jsondoc"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/number"
	"github.com/benchgraph/benchgraph/metrics/origin"
)

// key is the metric that one key of a result file gives.
type key struct{ key, metric, unit string }

// servingKeys is the table of the keys of serving results, of all versions and with their misspellings.
func servingKeys() []key {
	return []key{
		{"completed", "successful_requests", "req"},
		{"failed", "failed_requests", "req"},
		{"duration", "benchmark_duration", "s"},
		{"benchmark_duration", "benchmark_duration", "s"},
		{"total_input_tokens", "total_input_tokens", "tok"},
		{"total_input", "total_input_tokens", "tok"},
		{"total_input_text_tokens", "total_input_text_tokens", "tok"},
		{"total_input_vision_tokens", "total_input_vision_tokens", "tok"},
		{"total_output_tokens", "total_output_tokens", "tok"},
		{"total_output", "total_output_tokens", "tok"},
		{"total_output_tokens_retokenized", "total_output_tokens_retokenized", "tok"},
		{"total_output_retokenized", "total_output_tokens_retokenized", "tok"},
		{"request_throughput", "request_throughput", "req/s"},
		{"request_inthroughput", "request_throughput", "req/s"},
		{"request_goodput", "request_goodput", "req/s"},
		{"request_goodput:", "request_goodput", "req/s"},
		{"input_throughput", "input_token_throughput", "tok/s"},
		{"output_throughput", "output_token_throughput", "tok/s"},
		{"output_token_throughput", "output_token_throughput", "tok/s"},
		{"max_output_tokens_per_s", "peak_output_token_throughput", "tok/s"},
		{"max_concurrent_requests", "peak_concurrent_requests", "req"},
		{"total_token_throughput", "total_token_throughput", "tok/s"},
		{"total_throughput", "total_token_throughput", "tok/s"},
		{"concurrency", "concurrency", "req"},
		{"accept_length", "accept_length", ""},
		{"correct_rate(%)", "correct_rate", "%"},
		{"spec_decode_acceptance_rate", "spec_decode_acceptance_rate", "%"},
		{"spec_decode_acceptance_length", "spec_decode_acceptance_length", ""},
		{"spec_decode_num_drafts", "spec_decode_drafts", ""},
		{"spec_decode_draft_tokens", "spec_decode_draft_tokens", "tok"},
		{"spec_decode_accepted_tokens", "spec_decode_accepted_tokens", "tok"},
	}
}

// offlineKeys returns the keys of the result files of the other tools, by mode.
func offlineKeys(mode string) []key {
	switch mode {
	case "throughput":
		return []key{
			{"elapsed_time", "benchmark_duration", "s"},
			{"num_requests", "successful_requests", "req"},
			{"total_num_tokens", "total_tokens", "tok"},
			{"total_output_tokens", "total_output_tokens", "tok"},
			{"requests_per_second", "request_throughput", "req/s"},
			{"tokens_per_second", "total_token_throughput", "tok/s"},
			{"output_tokens_per_second", "output_token_throughput", "tok/s"},
			{"correct_rate(%)", "correct_rate", "%"},
		}
	case "offline_throughput":
		return []key{
			{"successful_requests", "successful_requests", "req"},
			{"total_latency", "benchmark_duration", "s"},
			{"total_input_tokens", "total_input_tokens", "tok"},
			{"total_output_tokens", "total_output_tokens", "tok"},
			{"request_throughput", "request_throughput", "req/s"},
			{"input_throughput", "input_token_throughput", "tok/s"},
			{"output_throughput", "output_token_throughput", "tok/s"},
			{"total_throughput", "total_token_throughput", "tok/s"},
			{"throughput", "total_token_throughput", "tok/s"},
			{"last_gen_throughput", "last_generation_throughput", "tok/s"},
		}
	case "one_batch":
		return []key{
			{"prefill_latency", "prefill_latency", "s"},
			{"prefill_throughput", "prefill_throughput", "tok/s"},
			{"median_decode_latency", "decode_latency_median", "s"},
			{"median_decode_throughput", "decode_throughput_median", "tok/s"},
			{"total_latency", "latency_total", "s"},
			{"overall_throughput", "total_token_throughput", "tok/s"},
		}
	case "one_batch_server":
		return []key{
			{"latency", "latency_total", "s"},
			{"ttft", "ttft", "s"},
			{"last_ttft", "last_ttft", "s"},
			{"input_throughput", "input_token_throughput", "tok/s"},
			{"output_throughput", "output_token_throughput", "tok/s"},
			{"overall_throughput", "total_token_throughput", "tok/s"},
			{"last_gen_throughput", "last_generation_throughput", "tok/s"},
			{"acc_length", "accept_length", ""},
		}
	}
	return nil
}

var (
	latencyKey = lazyregexp.New(`^(mean|median|std|min|max|p[0-9]+(?:\.[0-9]+)?)` +
		`_(ttft|tpot|itl|e2el|e2e_latency)(?:_ms)?$`)
	startupKey = lazyregexp.New(`^avg_((?:cold|warm)_[a-z_]+)_time$`)
	pairLine   = lazyregexp.New(`^"([A-Za-z0-9_%():.]{1,60})": *` +
		`(?:"([^"]{0,60})"|([-+0-9.eE]+|NaN|-?Infinity|null)),?$`)
)

// pair stores one line of a document whose brackets are missing.
func (r *reading) pair(text string, n int) bool {
	if text == "{" && len(r.pairs) == 0 {
		r.opened = n
		return false
	}
	m := pairLine().FindStringSubmatch(text)
	if m == nil || len(r.pairs) >= collect.MaxLabels {
		return false
	}
	r.last.pair = true
	switch {
	case m[3] == "null":
		r.pairs[m[1]] = nil
	case m[3] == "" || strings.ContainsAny(m[3], "NI"):
		r.pairs[m[1]] = m[2]
	default:
		r.pairs[m[1]] = json.Number(m[3])
	}
	return true
}

// fragment reads the stored lines of a document without its brackets. A document with only the first bracket was cut
// off.
func (r *reading) fragment() {
	tool, mode := origin.Of(r.pairs)
	if mode == "" {
		return
	}
	r.tool, r.marked = tool, true
	if r.opened > 0 {
		r.cut = invalid.New(invalid.Incomplete, r.last.number,
			"the JSON document of line %d ends before its last bracket", r.opened)
		return
	}
	if !r.ended && r.last.pair && !strings.HasSuffix(r.last.text, ",") {
		r.cut = invalid.New(invalid.Incomplete, r.last.number, "the output ends inside %q",
			lines.Clip(r.last.text, collect.MaxLabel))
		return
	}
	r.Warn(0, "lines of a JSON document without its brackets")
	r.document(tool, mode, r.pairs)
}

// dictionary reads the Python dictionary that the first bench_offline_throughput printed.
func (r *reading) dictionary(text string) bool {
	if !strings.HasPrefix(text, "{'") || !strings.HasSuffix(text, "}") {
		return false
	}
	text = strings.NewReplacer("'", `"`, ": None", ": null", ": True", ": true", ": False", ": false").Replace(text)
	d, _ := jsondoc.Last([]byte(text))
	document, ok := d.(map[string]any)
	if !ok {
		return false
	}
	tool, mode := origin.Of(document)
	if tool != "sglang" {
		return false
	}
	r.document(tool, mode, document)
	return true
}

// isDocument reports whether a text has the keys of a result file, whole or not.
func isDocument(src []byte) bool {
	keys := origin.NewSearch()
	for l := lines.New(bytes.NewReader(src)); l.Next(); {
		if format := keys.Line(l.Bytes()); format != "" {
			return format == "vllm" || format == "sglang"
		}
	}
	return false
}

// documents returns the reading of the documents in src that are results; nil: there are none. Documents with different
// values for one metric are a conflict.
func (r *reading) documents(src []byte) *reading {
	var found *reading
	addResult := func(document any) {
		d, ok := document.(map[string]any)
		if !ok {
			return
		}
		tool, mode := origin.Of(d)
		if mode == "" {
			return
		}
		if found == nil {
			found = newReading(tool)
			found.asked = r.asked
			found.asked.declared, found.asked.line = 0, 0
		}
		found.document(tool, mode, d)
	}
	_, cut := jsondoc.Each(src, func(document any) {
		for _, item := range jsondoc.List(document, collect.MaxSamples) {
			addResult(item)
		}
		addResult(document)
	})
	if found != nil {
		found.marked, found.ended = true, true
		if cut {
			found.Warn(0, "a later JSON document ends before its last bracket")
		}
	}
	return found
}

func (r *reading) document(tool, mode string, d map[string]any) {
	r.tool, r.mode, r.marked = tool, mode, true
	if overall, ok := d["overall"].(map[string]any); ok && d["mode"] == "multi_turn" {
		if n, ok := d["num_prompts"]; ok {
			overall["conversations"] = n
		}
		d = overall
	}
	keys := offlineKeys(mode)
	switch mode {
	case "serving":
		keys = servingKeys()
		r.backend, _ = d["backend"].(string)
		if v, ok := d["num_prompts"].(json.Number); ok {
			r.asked.declared = atoi(v.String())
		}
		r.requestErrors(d)
	case "latency":
		r.addValue("latency_avg", "s", d["avg_latency"])
		r.percentiles("latency", d["percentiles"])
	case "startup":
		r.startupDocument(d)
	}
	for _, k := range keys {
		if v, ok := d[k.key]; ok {
			r.addValue(k.metric, k.unit, v)
		}
	}
	if mode != "serving" {
		return
	}
	if v, ok := d["rtfx"].(json.Number); ok && strings.Trim(v.String(), "0.") != "" {
		r.addValue("rtfx", "", v)
	}
	for i, v := range jsondoc.List(d["spec_decode_per_position_acceptance_rates"], 20) {
		if n, ok := v.(json.Number); ok {
			if rate, err := n.Float64(); err == nil {
				percent := json.Number(strconv.FormatFloat(number.Round(100*rate), 'g', -1, 64))
				r.addValue(fmt.Sprintf("spec_decode_acceptance_position_%d", i), "%", percent)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(d)) {
		if m := latencyKey().FindStringSubmatch(key); m != nil {
			r.addValue(strings.Replace(m[2], "e2e_latency", "e2el", 1)+"_"+m[1], "ms", d[key])
		}
	}
}

// addValue adds a number of a document. A number in quotes is accepted; null gives no sample.
func (r *reading) addValue(metric, unit string, v any) {
	if v == nil {
		return
	}
	text, _, err := jsondoc.Digits(v)
	if printed, ok := v.(string); ok && err != nil {
		if text = printed; printed == jsondoc.NotFinite {
			text = "NaN"
		}
	} else if err != nil {
		r.WarnOf("", metric, 0, "%s %v", metric, err)
		return
	}
	r.sample(metric, text, unit, 0)
}

// percentiles reads {"50": 1.5, "99": 2}.
func (r *reading) percentiles(name string, v any) {
	d, _ := v.(map[string]any)
	keys := slices.Collect(maps.Keys(d))
	slices.SortFunc(keys, func(a, b string) int { return len(a)*1000 - len(b)*1000 + strings.Compare(a, b) })
	for _, key := range keys[:min(len(keys), collect.MaxLabels)] {
		if _, err := number.Parse(key); err == nil && len(key) < 8 {
			r.addValue(name+"_p"+key, "s", d[key])
		}
	}
}

func (r *reading) startupDocument(d map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(d)) {
		if m := startupKey().FindStringSubmatch(key); m != nil {
			r.addValue(m[1]+"_avg", "s", d[key])
			r.percentiles(m[1], d[m[1]+"_percentiles"])
		}
	}
}

// requestErrors reads the list of errors, which has one text for each request.
func (r *reading) requestErrors(d map[string]any) {
	errors := jsondoc.List(d["errors"], 10_000_000)
	failed := 0
	first := ""
	for _, e := range errors {
		if text, ok := e.(string); ok && strings.TrimSpace(text) != "" {
			if failed++; first == "" {
				all := strings.Split(strings.TrimSpace(text), "\n")
				first = lines.Plain(all[len(all)-1])
			}
		}
	}
	if failed > 0 && r.partly == nil {
		r.partly = invalid.New(invalid.RequestsFailed, 0, "%d of %d requests failed: %s", failed, len(errors), first)
	}
}
