// Package metrics describes the numbers that benchmarks print. A [Parser] turns the output of one run into samples, one
// for each metric; package formats has the parsers.
package metrics

import (
	"io"

	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/metrics/stated"
)

// Sample is one number as it was printed.
type Sample struct {
	Metric string  `json:"metric"` // canonical name: output_token_throughput, ttft_p99, …
	Value  float64 `json:"value"`  // in Unit; finite
	// as printed, in canonical spelling: ms, s, req/s, tok/s, ns/op; empty: the output prints none
	Unit    string `json:"unit"`
	Printed string `json:"-"` // the digits in the output; empty: the sample is a mean
	Line    int    `json:"-"` // 1-based line of the output; 0: it is from a document, or a mean

	// Over lists the samples whose mean this sample is, in the order of the output; empty: the sample is no mean. A
	// mean over one sample lists that sample. NAME ×3 stands for three results of one name.
	Over []string `json:"over,omitempty"`
}

// Kinds of warnings.
const (
	Unread   = "unread"    // the value of a metric is no number, or only a part of a number was matched
	Repeated = "repeated"  // a metric was printed more than once, with different values
	Cut      = "cut"       // the output, or a line of it, ends too early
	NotFound = "not_found" // a metric that was asked for was not printed
	Unasked  = "unasked"   // the output does not say how many requests were asked for
)

// Warning is about a part of the output that was skipped or is suspicious.
type Warning struct {
	Line   int    `json:"line,omitempty"`
	Text   string `json:"text"`
	Kind   string `json:"kind,omitempty"`   // one of the constants above; empty: another kind
	Metric string `json:"metric,omitempty"` // subject of the warning; empty: no metric in particular
}

// Result is the content of one run's output as a Parser read it.
type Result struct {
	Format   string           // format and mode: vllm-serving, gobench, redis-benchmark, …; empty: no known format
	Samples  []Sample         // in the order of the output, means last; one for each metric
	Warnings []Warning        // at most 101
	Labels   []string         // the metrics, then the labels in front of numbers; at most 200
	Failure  *classify.Match  // why this is no valid result of a whole run; nil: it may be one
	Stated   stated.Statement // set by package sample, which reads all outputs of the run

	// Doubts holds the reasons why the output has no definite value of a metric, by metric: it has several values, or
	// one that cannot be read. A sample of such a metric must not decide anything. The texts are those of warnings.
	Doubts map[string]string
}

// Output is the output of a run.
type Output struct {
	Stdout io.Reader                                // the command's standard output (or a whole log)
	Open   func(name string) (io.ReadCloser, error) // opens a file below $OUT; nil: there are none
	// Command is the command line that printed the output, if the caller knows it; it may contain the number of
	// requests.
	Command string
}

// Parser reads one output format. A bad line is a Warning with its position; an error means that nothing could be read.
// For output without any number, the Result has no samples.
type Parser interface {
	Parse(out Output) (Result, error)
}
