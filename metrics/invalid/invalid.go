// Package invalid holds the rules of outputs that are no valid result. Parsers apply them; they have no patterns.
package invalid

import (
	"fmt"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/metrics/jsondoc"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/number"
)

// The rules of outputs that are no valid result. All of them have the class invalid.
const (
	RequestsFailed = "requests_failed"      // fewer requests succeeded than were asked for
	NoneSucceeded  = "no_request_succeeded" // the benchmark ended all the same
	EmptyAnswers   = "empty_answers"        // requests without any text count as succeeded
	Incomplete     = "result_incomplete"    // no count of requests, or the output ends inside a number
	Ambiguous      = "result_ambiguous"     // two results in one output
	WrongUnit      = "unit_wrong"           // this version of the tool prints a wrong unit
	Foreign        = "result_unknown"       // the table of another benchmark
)

// Rules returns the names of the rules of outputs that are no valid result. Parsers report them in Result.Failure.
func Rules() []string {
	return []string{RequestsFailed, NoneSucceeded, EmptyAnswers, Incomplete, Ambiguous, WrongUnit, Foreign}
}

// New returns the failure of an output that is no valid result. line is 0 for a document.
func New(rule string, line int, format string, args ...any) *classify.Match {
	stage := "parse"
	if rule == RequestsFailed || rule == NoneSucceeded || rule == EmptyAnswers {
		stage = "run"
	}
	evidence := lines.Clip(fmt.Sprintf(format, args...), lines.MaxEvidence)
	return &classify.Match{Rule: rule, Class: failure.Invalid, Stage: stage, Evidence: evidence, Line: line,
		Remedy: remedyOf(rule)}
}

// Partly finds failed requests in the documents of tools whose numbers are read by their paths: inference-perf and
// LLMPerf. Nil: none failed, or another tool wrote the document.
func Partly(document any) *classify.Match {
	count := func(path ...string) float64 {
		v, _ := jsondoc.Follow(document, path)
		text, _, err := jsondoc.Digits(v)
		if err != nil {
			return 0
		}
		n, _ := number.Parse(text)
		return n
	}
	done, failed := count("results_num_completed_requests"), count("results_number_errors")
	if jsondoc.Object(jsondoc.Object(document)["load_summary"]) != nil {
		done, failed = count("successes", "count"), count("failures", "count")
	}
	switch {
	case failed > 0 && done > 0:
		return New(RequestsFailed, 0, "%.0f of %.0f requests succeeded", done, done+failed)
	case failed > 0:
		return New(NoneSucceeded, 0, "0 of %.0f requests succeeded", failed)
	}
	return nil
}

func remedyOf(rule string) string {
	switch rule {
	case RequestsFailed:
		return "look in the logs of the server and of the client why requests failed; " +
			"where the data set has fewer prompts, ask for as many as it has"
	case NoneSucceeded, EmptyAnswers:
		return "look in the logs of the server and of the client why requests failed"
	case Incomplete:
		return "keep the whole output of the tool, or read its JSON file: metrics { file = \"NAME\" }"
	case Ambiguous:
		return "let the command print one result: send the output of warm-up runs elsewhere, or use " +
			"design { warmup = N }"
	case WrongUnit:
		return "use a version of SGLang from 0.1.20 on, or a metric block with the right unit"
	}
	return "read the numbers with metric blocks"
}
