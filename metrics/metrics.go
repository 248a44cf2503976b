// Package metrics reads numbers and failures from what benchmarks print.
//
// A [Parser] turns the output of one run into samples, one for each metric. The names of the metrics are:
//
//   - vllm and sglang: request_throughput, ttft_p99, latency_avg, … with one unit each, whatever the version prints.
//     All names stand in docs/formats.md. An output of a part of the requests has a Failure.
//   - gobench (go test -bench): "Decode/text ns/op", the name without Benchmark and without the -N that all lines
//     share, a space, and the unit as printed. Several lines of one benchmark (-count) are one sample, their arithmetic
//     mean. A name that several packages have is preceded by its package and a dot. The unit alone, "ns/op", is the
//     geometric mean over the benchmarks that print it, which is the benchmark's own value when there is one.
//   - redis (redis-benchmark): set_requests_per_second, and set_latency_avg, _min, _p50, _p95, _p99, _max as far as
//     printed. The remark in "LRANGE_100 (first 100 elements)" is left out, unless two tests would then share a name.
//     The name without the test, requests_per_second, is again the geometric mean over the tests.
//   - redis (memtier_benchmark): sets_, gets_, totals_ and so on with ops_per_second, hits_per_second,
//     misses_per_second, kb_per_second, latency_avg, latency_p50, latency_p99, latency_p99.9. Of several runs, the
//     average counts.
//   - hyperfine, pytest, pyperf, googlebench: "NAME time_mean", "NAME real_time" and so on; time_mean alone is the
//     geometric mean over all, or the only one. aiperf: the names of vllm.
//   - json: the path of every number in the last document, "results.0.p99".
//   - metrics of one's own ([NewCustom]): the name that the definition gives.
//
// A geometric mean over several benchmarks exists only where all values are positive, and two such means may be
// compared only when they are over the same benchmarks.
//
// Output is hostile: memory is bounded, control characters and escape sequences are removed, a carriage return starts
// a new line, and what is no finite number is a warning and not a sample. Package number decides what a number is. When
// a metric is printed twice with different values, or once as a number and once as something else, the last number
// counts, with a warning and a doubt.
package metrics

import (
	"fmt"
	"io"
	"strings"

	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/metrics/stated"
)

// Sample is one number as it was printed.
type Sample struct {
	Metric string  `json:"metric"` // canonical name: output_token_throughput, ttft_p99, …
	Value  float64 `json:"value"`  // in Unit; finite
	// as printed, in canonical spelling: ms, s, req/s, tok/s, ns/op; empty: the output does not say
	Unit    string `json:"unit"`
	Printed string `json:"-"` // the digits as they stand in the output; empty: a mean of several
	Line    int    `json:"-"` // 1-based line of the output; 0 when it came from a document, or is a mean

	// Over lists the samples whose mean this sample is, in the order of the output; empty: the sample is no mean. A
	// mean over one sample lists that sample. NAME ×3 stands for three results of one name.
	Over []string `json:"over,omitempty"`
}

// Kinds of warnings.
const (
	Unread   = "unread"    // a value of a metric stands there that is no number, or only a part of one was matched
	Repeated = "repeated"  // a metric was printed more than once, with different values
	Cut      = "cut"       // the output, or a line of it, ends too early
	NotFound = "not_found" // a metric that was asked for was not printed
	Unasked  = "unasked"   // it does not say how many requests were asked for
)

// Warning is something in the output that was passed over or is suspicious.
type Warning struct {
	Line   int    `json:"line,omitempty"`
	Text   string `json:"text"`
	Kind   string `json:"kind,omitempty"`   // one of the constants above; empty: any other
	Metric string `json:"metric,omitempty"` // the metric that it is about; empty: none in particular
}

// Result is what a Parser read from one run's output.
type Result struct {
	Format   string           // format and mode: vllm-serving, gobench, redis-benchmark, …; empty: none is known
	Samples  []Sample         // in the order of the output, means last; one for each metric
	Warnings []Warning        // at most 101
	Labels   []string         // the metrics, then the labels that stood before numbers; at most 200
	Failure  *classify.Match  // why this is no valid result of a whole run; nil: nothing says so
	Stated   stated.Statement // set by whoever reads the other outputs of the run, too, and by no Parser

	// Doubts holds, by metric, why the output does not say one value of it: it has several ones, or one that nobody can
	// read. A sample of such a metric must not decide anything. The texts are those of warnings.
	Doubts map[string]string
}

// Output is what a run left behind.
type Output struct {
	Stdout io.Reader                                // the command's standard output (or a whole log)
	Open   func(name string) (io.ReadCloser, error) // a file below $OUT; nil: there are none
	// Command is the command line that printed the output, if the caller knows it; it may contain the number of
	// requests.
	Command string
}

// Parser reads one output format. A bad line is a Warning with its position; an error means that nothing could be read.
// Output without any number is a Result without samples.
type Parser interface {
	Parse(out Output) (Result, error)
}

// Formats are the names of the formats, in the order in which they are told to people.
func Formats() []string {
	return []string{
		"auto", "vllm", "sglang", "aiperf", "gobench", "redis", "hyperfine", "pytest", "pyperf", "googlebench", "json",
		"regex",
	}
}

// Lookup returns the parser of a format, one of Formats. The error of a format that needs definitions (regex) or that
// does not exist says so.
func Lookup(format string) (Parser, error) {
	switch format {
	case "auto":
		return auto{}, nil
	case "gobench":
		return gobench{}, nil
	case "redis":
		return redis{}, nil
	case "json":
		return jsonLeaves{}, nil
	case "aiperf", "hyperfine", "pytest", "pyperf", "googlebench":
		return documentParser{format}, nil
	case "regex":
		return nil, fmt.Errorf("format regex: nothing to read: declare a metric block with match")
	case "vllm", "sglang":
		return inference{format}, nil
	}
	return nil, fmt.Errorf("format %q: unknown; one of %s", format, strings.Join(Formats(), ", "))
}
