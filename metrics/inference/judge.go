package inference

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/metrics/invalid"
)

// result ends the reading and decides whether the output is one whole result.
func (r *reading) result() metrics.Result {
	if r.cut != nil && r.cut.Line != r.last.number {
		r.cut = nil
	}
	if !r.marked {
		r.mode = ""
		r.Clear()
		r.fragment()
	}
	if r.mode == "" {
		r.Format = ""
		if r.cut != nil {
			r.Format, r.Failure = r.tool, r.cut
		} else {
			r.Warn(0, "no result of a benchmark of vLLM or SGLang found")
		}
		return r.Finish()
	}
	r.Format = r.tool + "-" + r.mode
	r.beforeTable()
	r.Failure = r.judge()
	wrong := []string{invalid.Ambiguous, invalid.WrongUnit, invalid.Foreign}
	if f := r.Failure; f != nil && (slices.Contains(wrong, f.Rule) || r.mode == "latency") {
		r.Clear() // no sample is known to be right
	}
	return r.Finish()
}

// beforeTable removes the samples before the first header: they belong to another run, whose header was cut off.
func (r *reading) beforeTable() {
	n := len(r.Samples)
	r.LeaveOut(func(s metrics.Sample) bool { return s.Line > 0 && s.Line < r.header })
	if n -= len(r.Samples); n > 0 {
		r.Warn(r.header, "%d numbers before the table are of another run: they are left out", n)
	}
}

// judge returns the reason why an output is no valid result; nil: it is valid.
func (r *reading) judge() *classify.Match {
	switch {
	case r.foreign != nil:
		return r.foreign
	case r.incorrect != nil:
		return r.incorrect
	case r.cases > 1 && r.conflict != nil:
		r.conflict.Evidence = "several cases, of which one may be the warm-up: " + r.conflict.Evidence
		return r.conflict
	case r.conflict != nil:
		return r.conflict
	}
	r.truncatedNumber()
	switch r.mode {
	case "serving":
		if f := r.complete(); f != nil {
			return f
		}
	case "latency":
		if _, ok := r.Sample("latency_avg"); !ok {
			return invalid.New(invalid.Incomplete, r.first(), "percentiles of the latency, and no average")
		}
	case "one_batch":
		if !r.begun && r.first() > 0 {
			return invalid.New(invalid.Incomplete, r.first(),
				"no line \"Benchmark ...\": the figures may be those of the warm-up")
		}
		if len(r.Samples) == 0 && r.cut == nil {
			return invalid.New(invalid.Incomplete, r.last.number, "the output ends after the warm-up")
		}
	default:
		if v, ok := r.number("request_throughput"); ok && v == 0 {
			return invalid.New(invalid.NoneSucceeded, r.lineOf("request_throughput"), "request throughput: 0")
		}
	}
	if r.partly != nil {
		return r.partly
	}
	return r.cut
}

// truncatedNumber refuses the last number of an output that ends inside it: tools print a known number of decimals.
func (r *reading) truncatedNumber() {
	open := !r.ended && !r.last.padded // the output ends inside the last line
	switch {
	case r.cut != nil || r.last.metric == "":
		return
	case r.last.short && (open || r.mode == "serving"):
	case r.last.whole && open && (r.last.metric != "total_output_tokens" || !r.agree()):
	default:
		return
	}
	if s, ok := r.Sample(r.last.metric); !ok || s.Line != r.last.number {
		return
	}
	r.truncated(r.last.metric, r.last.text, r.last.number)
	r.LeaveOut(func(s metrics.Sample) bool { return s.Metric == r.last.metric })
}

// agree reports whether the totals of tokens have the ratio of the rates. If they do, no total lost its last digit.
func (r *reading) agree() bool {
	of := map[string]float64{}
	names := []string{"total_input_tokens", "total_output_tokens", "total_token_throughput", "output_token_throughput"}
	for _, metric := range names {
		v, ok := r.number(metric)
		if !ok || v <= 0 {
			return false
		}
		of[metric] = v
	}
	share := of["total_output_tokens"] / (of["total_input_tokens"] + of["total_output_tokens"])
	rates := of["output_token_throughput"] / of["total_token_throughput"]
	return math.Abs(share-rates) < 0.02*rates
}

// complete returns a failure unless all requests that were asked for succeeded.
func (r *reading) complete() *classify.Match {
	done, counted := r.number("successful_requests")
	_, oldest := r.Sample("latency_per_token_avg")
	if !counted {
		if oldest || r.uncounted() {
			r.Warn(0, "this version does not say how many requests succeeded")
			return nil
		}
		if r.missed.number > 0 {
			return invalid.New(invalid.Incomplete, r.missed.number,
				"the result has no count of successful requests, and this line is not understood: %q", r.missed.text)
		}
		return invalid.New(invalid.Incomplete, r.first(), "the result has no count of successful requests")
	}
	line := r.lineOf("successful_requests")
	failed, _ := r.number("failed_requests")
	total, source := r.total(done + failed)
	switch {
	case done <= 0 && total > 0:
		return invalid.New(invalid.NoneSucceeded, line, "0 of %.0f requests succeeded%s", total, source)
	case done <= 0:
		return invalid.New(invalid.NoneSucceeded, line, "0 requests succeeded")
	case failed > 0 || total > done:
		return invalid.New(invalid.RequestsFailed, line, "%.0f of %.0f requests succeeded%s", done,
			max(total, done+failed), source)
	case total == 0 && r.lineOf("failed_requests") == 0:
		r.WarnOf(metrics.Unasked, "", line,
			"the output does not tell how many requests were asked for; successful_requests is %.0f", done)
	}
	f := r.answers(done, line)
	r.unmeasured(done)
	if f != nil {
		return f
	}
	if r.tables > 0 && !r.closed {
		r.Warn(r.last.number, "the table has no closing rule: the output may be cut off")
	}
	return nil
}

// uncounted reports whether a document is of a version that writes no count of requests.
func (r *reading) uncounted() bool {
	tokens, ok := r.number("total_output_tokens")
	return r.tables == 0 && r.mode == "serving" && r.first() == 0 && ok && tokens > 0
}

// answers returns a failure if requests count as succeeded and have empty answers.
func (r *reading) answers(done float64, line int) *classify.Match {
	for _, kind := range []string{"embedding", "rerank", "pooling"} {
		if strings.Contains(r.backend, kind) {
			return nil
		}
	}
	if tokens, ok := r.number("total_output_tokens"); ok && tokens == 0 {
		return invalid.New(invalid.EmptyAnswers, line,
			"%.0f requests count as succeeded, and not one token was generated", done)
	}
	if tokens, ok := r.number("total_output_tokens_retokenized"); ok && tokens < done {
		return invalid.New(invalid.EmptyAnswers, line,
			"%.0f requests count as succeeded, and their answers have %.0f tokens", done, tokens)
	}
	return nil
}

// unmeasured removes latencies of zero if no answer can have come so fast: the client did not measure the stream. With
// one token for each answer there are no times between tokens, and zero is correct.
func (r *reading) unmeasured(done float64) {
	if v, ok := r.number("ttft_mean"); !ok || v != 0 {
		return
	}
	left := []string{"ttft_"}
	if tokens, ok := r.number("total_output_tokens"); ok && tokens > done {
		left = append(left, "itl_")
	}
	for _, kind := range left {
		if v, ok := r.number(kind + "mean"); !ok || v != 0 {
			continue
		}
		r.Warn(0, "%s* are zero: the client did not measure the streams, and the numbers are left out", kind)
		r.LeaveOut(func(s metrics.Sample) bool { return strings.HasPrefix(s.Metric, kind) })
	}
}

// total returns the number of requests that were asked for, if it is at least ended, and its source; 0: no source
// tells.
func (r *reading) total(ended float64) (total float64, source string) {
	for _, by := range []struct {
		n      int
		source string
	}{
		{r.asked.command, "the command asks for them"},
		{r.asked.declared, "num_prompts"},
		// the last bar before the table; if the standard error was appended to the standard output, the bars come after
		// it
		{cmp.Or(r.asked.bar, r.asked.after), "the progress bar"},
	} {
		// a client that counts failures knows better than a bar, which may be of something else
		counted := r.lineOf("failed_requests") > 0
		if by.n == 0 || by.source == "num_prompts" && r.asked.ofOthers || by.source == "the progress bar" && counted {
			continue
		}
		switch n := float64(by.n); {
		case n > ended:
			if by.source == "num_prompts" && r.asked.line > 0 {
				by.source = fmt.Sprintf("num_prompts in line %d", r.asked.line)
			}
			return n, " (" + by.source + ")"
		case n == ended:
			return n, ""
		}
	}
	return 0, ""
}

// first returns the line of the first number.
func (r *reading) first() int {
	if len(r.Samples) == 0 {
		return 0
	}
	return r.Samples[0].Line
}

// number returns the value of a metric.
func (r *reading) number(metric string) (v float64, ok bool) {
	s, ok := r.Sample(metric)
	return s.Value, ok
}

// lineOf returns the line of a metric; 0: none.
func (r *reading) lineOf(metric string) int {
	s, _ := r.Sample(metric)
	return s.Line
}
