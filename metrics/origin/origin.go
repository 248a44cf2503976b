// Package origin recognises the tool that wrote a JSON document.
package origin

import (
	"bytes"
	"slices"
	"sync"
)

// file is the JSON file of one tool.
type file struct {
	name string
	mode string // kind of benchmark; only for vLLM and SGLang
	// keys by which the file is recognised; not all of them are at its top
	keys []string
}

// files returns the table of known JSON files. Of several rows that fit, the first one counts.
var files = sync.OnceValue(func() []file {
	return []file{
		{name: "sglang", mode: "serving", keys: []string{"sharegpt_output_len", "request_rate"}},
		{name: "sglang", mode: "serving", keys: []string{"dataset_name", "completed", "request_rate"}},
		{name: "vllm", mode: "serving", keys: []string{"completed", "num_prompts"}},
		{name: "vllm", mode: "serving", keys: []string{"completed", "duration", "model_id"}},
		{name: "vllm", mode: "throughput", keys: []string{"elapsed_time", "requests_per_second"}},
		{name: "vllm", mode: "latency", keys: []string{"avg_latency", "latencies"}},
		{name: "vllm", mode: "latency", keys: []string{"avg_latency", "percentiles"}},
		{name: "vllm", mode: "startup", keys: []string{"cold_startup_percentiles"}},
		{name: "vllm", mode: "startup", keys: []string{"avg_cold_startup_time"}},
		{name: "sglang", mode: "one_batch", keys: []string{"prefill_latency", "overall_throughput"}},
		{name: "sglang", mode: "one_batch_server", keys: []string{"batch_size", "overall_throughput"}},
		{name: "sglang", mode: "one_batch_server", keys: []string{"batch_size", "latency", "output_throughput"}},
		{name: "sglang", mode: "offline_throughput", keys: []string{"total_latency", "total_output_tokens"}},

		{name: "aiperf", keys: []string{"input_config", "unit", "avg"}},
		{name: "aiperf", keys: []string{"aiperf_version", "unit", "avg"}},
		{name: "hyperfine", keys: []string{"results", "command", "mean", "user", "system"}},
		{name: "pytest", keys: []string{"machine_info", "benchmarks"}},
		{name: "pyperf", keys: []string{"benchmarks", "metadata", "runs"}},
		{name: "googlebench", keys: []string{"benchmarks", "real_time", "time_unit"}},
	}
})

// Of returns the tool, vLLM or SGLang, that wrote a document, and the kind of benchmark; empty: another tool wrote it.
func Of(d map[string]any) (tool, mode string) {
	has := func(keys []string) bool {
		return !slices.ContainsFunc(keys, func(key string) bool { _, ok := d[key]; return !ok })
	}
	for _, f := range files() {
		if f.mode != "" && has(f.keys) {
			return f.name, f.mode
		}
	}
	if has([]string{"mode", "overall", "num_prompts"}) {
		return "vllm", "serving"
	}
	return "", ""
}

// Search recognises the tool that wrote a document by the keys in the document's lines.
type Search struct {
	files []file
	seen  map[string]bool
}

// NewSearch returns a search before the first line.
func NewSearch() *Search {
	s := &Search{files: files(), seen: map[string]bool{}}
	for _, f := range s.files {
		for _, key := range f.keys {
			s.seen[key] = false
		}
	}
	return s
}

// Line reads one line. It returns a tool as soon as all keys of one of the tool's files were seen; empty: not yet.
func (s *Search) Line(b []byte) string {
	if !bytes.Contains(b, []byte(`":`)) {
		return ""
	}
	more := false
	for key, seen := range s.seen {
		if !seen && bytes.Contains(b, []byte(`"`+key+`":`)) {
			s.seen[key], more = true, true
		}
	}
	if !more {
		return ""
	}
	for _, f := range s.files {
		if !slices.ContainsFunc(f.keys, func(key string) bool { return !s.seen[key] }) {
			return f.name
		}
	}
	return ""
}
