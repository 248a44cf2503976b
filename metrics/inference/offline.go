package inference

import (
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/invalid"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/names"
	"github.com/benchgraph/benchgraph/metrics/number"
	"github.com/benchgraph/benchgraph/metrics/stated"
)

var (
	throughputLine = lazyregexp.New(`^([0-9.,]+) requests/s(?:, ([0-9.,]+) (?:total )?tokens/s)?` +
		`(?:, ([0-9.,]+) output tokens/s)?(.*)$`)
	tokensLine     = lazyregexp.New(`^([0-9.,]+) tokens/s$`)
	correctRate    = lazyregexp.New(`Correct rate is ([0-9.,]+) ?%`)
	percentileName = lazyregexp.New(`^([0-9]{1,2}(?:\.[0-9]+)?)% percentile latency$`)
	batchLatency   = lazyregexp.New(`^([0-9.,]+) (m?s), (?:median |avg )?throughput: +([0-9.,]+) token/s`)
	startupAverage = lazyregexp.New(`^Avg ((?:encoder )?(?:startup|compilation)) time: ([0-9.,]+) seconds$`)
	startupGroup   = lazyregexp.New(`^((?:Encoder )?(?:[Ss]tartup|[Cc]ompilation)) time percentiles:$`)
	startupPercent = lazyregexp.New(`^([0-9]{1,3}(?:\.[0-9]+)?)%: ([0-9.,]+) seconds$`)
	declaredCount  = lazyregexp.New(`\bnum_prompts=([0-9]+)`)
)

// throughput reads the text after "Throughput:". A single token rate is that of input and output together.
func (r *reading) throughput(rest string, n int) bool {
	if m := tokensLine().FindStringSubmatch(rest); m != nil {
		r.setMode("throughput")
		r.sample("total_token_throughput", m[1], "tok/s", n)
		return true
	}
	m := throughputLine().FindStringSubmatch(rest)
	if m == nil {
		digits, behind := number.Leading(rest)
		switch {
		case digits == "":
			return false
		case strings.HasPrefix(" requests/s", behind):
			r.truncated("request_throughput", rest, n)
			return true
		case strings.HasPrefix(behind, " requests/s"):
			r.unreadable("request_throughput", digits, n)
			return true
		case strings.HasPrefix(behind, " tokens/s"):
			r.unreadable("total_token_throughput", digits, n)
			return true
		}
		return false
	}
	if m[2] == "" {
		if strings.HasPrefix(m[4], ",") {
			r.setMode("throughput")
			r.truncated("total_token_throughput", rest, n)
		}
		r.setMode("serving") // before 0.3.1 the serving benchmark prints this line, too
	} else {
		r.mode = "throughput"
		if strings.HasPrefix(m[4], ",") {
			r.truncated("output_token_throughput", rest, n)
		}
	}
	r.sample("request_throughput", m[1], "req/s", n)
	if m[2] != "" {
		r.sample("total_token_throughput", m[2], "tok/s", n)
	}
	if m[3] != "" {
		r.sample("output_token_throughput", m[3], "tok/s", n)
	}
	if c := correctRate().FindStringSubmatch(m[4]); c != nil {
		r.sample("correct_rate", c[1], "%", n)
	}
	r.last.metric = "request_throughput"
	return true
}

func (r *reading) setMode(mode string) {
	if r.mode == "" {
		r.mode = mode
	}
}

// offlineLatency reads the lines of the latency benchmark: an average and, since 0.4.1, percentiles.
func (r *reading) offlineLatency(name, rest string, n int) bool {
	metric := ""
	if m := percentileName().FindStringSubmatch(name); m != nil {
		metric = "latency_p" + m[1]
	} else if name == "avg latency" {
		metric = "latency_avg"
	} else {
		return false
	}
	digits, behind := number.Leading(rest)
	behind = strings.TrimSpace(behind)
	switch {
	case digits == "" || !strings.HasPrefix("seconds", behind) && !strings.HasPrefix(behind, "seconds"):
		return false
	case !strings.HasPrefix(behind, "seconds"):
		r.setMode("latency")
		r.truncated(metric, rest, n)
		return true
	}
	r.setMode("latency")
	r.sample(metric, digits, "s", n)
	return true
}

// oneBatch reads the lines of SGLang's benchmarks of one batch, with and without a server.
func (r *reading) oneBatch(name, rest string, n int) bool {
	var of [2]string
	switch name {
	case "prefill. latency":
		of = [2]string{"prefill_latency", "prefill_throughput"}
	case "decode. median latency":
		of = [2]string{"decode_latency_median", "decode_throughput_median"}
	case "decode. avg latency":
		of = [2]string{"decode_latency_mean", "decode_throughput_mean"}
	case "total. latency":
		of = [2]string{"latency_total", "total_token_throughput"}
	case "batch size":
		if digits, behind := number.Leading(rest); digits != "" && behind == "" && !r.inTable {
			r.section = batch
			r.cases++
		}
		return false
	default:
		if strings.HasPrefix(name, "decode") && strings.HasSuffix(name, "latency") {
			if m := batchLatency().FindStringSubmatch(rest); m != nil {
				r.milliseconds(m[2], rest, n)
			}
		}
		return r.section == batch && r.oneCase(name, rest, n)
	}
	m := batchLatency().FindStringSubmatch(rest)
	if m == nil {
		if digits, _ := number.Leading(rest); digits != "" {
			r.tool, r.mode = "sglang", "one_batch"
			r.truncated(of[0], rest, n)
		}
		return digitsFirst(rest)
	}
	r.tool, r.mode = "sglang", "one_batch"
	r.milliseconds(m[2], rest, n)
	if r.section != warming {
		r.sample(of[0], m[1], "s", n)
		r.sample(of[1], m[3], "tok/s", n)
	}
	return true
}

func digitsFirst(text string) bool { d, _ := number.Leading(text); return d != "" }

// milliseconds refuses the output of versions that print ms behind a number of seconds.
func (r *reading) milliseconds(unit, rest string, n int) {
	if unit == "ms" && r.incorrect == nil {
		r.tool, r.mode = "sglang", "one_batch"
		r.incorrect = invalid.New(invalid.WrongUnit, n,
			"%q: this version of bench_latency prints seconds and calls them ms", lines.Clip(rest, collect.MaxLabel))
	}
}

// oneCase reads one line of a case of bench_one_batch_server.
func (r *reading) oneCase(name, rest string, n int) bool {
	l := label{any: true}
	switch name {
	case "latency":
		l.metric, l.unit, l.after = "latency_total", "s", "s"
	case "ttft", "last_ttft":
		l.metric, l.unit, l.after = name, "s", "s"
	case "input throughput":
		l.metric, l.unit, l.after = "input_token_throughput", "tok/s", "tok"
	case "output throughput":
		l.metric, l.unit, l.after = "output_token_throughput", "tok/s", "tok"
	case "(input + output) throughput":
		l.metric, l.unit, l.after = "total_token_throughput", "tok/s", "tok"
	case "last generation throughput":
		l.metric, l.unit, l.after = "last_generation_throughput", "tok/s", "tok"
	case "acc_length":
		l.metric = "accept_length"
	default:
		return false
	}
	r.tool, r.mode = "sglang", "one_batch_server"
	return r.value(l, rest, n)
}

// startup reads the result of the startup benchmark: two phases, an average of each metric and then percentiles of
// each.
func (r *reading) startup(text string, n int) bool {
	switch {
	case text == "STARTUP TIME BENCHMARK RESULTS":
		r.section, r.mode = startup, "startup"
		return true
	case r.mode != "startup":
		return false
	case text == "COLD STARTUP:" || text == "WARM STARTUP:":
		phase, _, _ := strings.Cut(text, " ")
		r.phase, r.group = strings.ToLower(phase), ""
		return true
	}
	if m := startupAverage().FindStringSubmatch(text); m != nil && r.phase != "" {
		r.sample(r.phase+"_"+names.Slug(m[1])+"_avg", m[2], "s", n)
		return true
	}
	if m := startupGroup().FindStringSubmatch(text); m != nil {
		r.group = names.Slug(m[1])
		return true
	}
	if m := startupPercent().FindStringSubmatch(text); m != nil && r.phase != "" && r.group != "" {
		r.sample(r.phase+"_"+r.group+"_p"+m[1], m[2], "s", n)
		return true
	}
	return false
}

// arguments reads the number of requests from the arguments that a client prints.
func (r *reading) arguments(text string, n int) {
	if !strings.Contains(text, "Namespace(") {
		return
	}
	m := declaredCount().FindStringSubmatch(text)
	if m == nil {
		return
	}
	r.asked.declared, r.asked.line = atoi(m[1]), n
	r.asked.ofOthers = stated.CountsOtherwise(text)
}

// atoi returns the number that digits write; 0: there are too many digits.
func atoi(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
