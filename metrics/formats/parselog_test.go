package formats

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/metrics/classify"
)

func rule(name, match string) classify.Rule {
	return classify.Rule{Rule: failure.Rule{Name: name}, Pattern: regexp.MustCompile(match)}
}

// A log is a failure only after its last result.
func TestParseLog(t *testing.T) {
	refused := rule("refused", "refused")
	refused.Class, refused.Stages, refused.Remedy = failure.Transient, []string{"run", "start"}, "wait"
	rules := []classify.Rule{refused}
	for _, c := range []struct{ name, format, log, detected, failure string }{
		{"nothing", "auto", "hello\n", "", ""},
		{"a failure", "auto", "hello\nConnection refused\n", "", "run: Connection refused (2)"},
		{"refused while starting", "auto", "refused\nBenchmarkX 1 2 ns/op\n", "gobench", ""},
		{"refused afterwards", "auto", "refused\nBenchmarkX 1 2 ns/op\nrefused again", "gobench",
			"run: refused again (3)"},
		{"a document speaks of one", "auto", `{"a": 1, "b": "refused"}`, "json", ""},
		{"a document of failed requests", "auto", `{"load_summary": {}, "successes": {"count": 10, "mean": 0.5}, ` +
			`"failures": {"count": 50}}`, "json", "run: 10 of 60 requests succeeded (0)"},
		{"declared", "redis", "refused", "redis-benchmark", "run: refused (1)"},
		{"a table", "auto", "refused\nThroughput: 1.5 requests/s, 3 tokens/s\nrefused", "vllm-throughput",
			"run: refused (3)"},
		{"requests failed", "auto",
			"refused\n= Serving Benchmark Result =\nSuccessful requests: 1\nFailed requests: 2\nrefused\n",
			"vllm-serving", "run: 1 of 3 requests succeeded (3)"},
		{"Docker's log", "auto", `{"log":"refused\n","stream":"stderr","time":"2026-11-27T10:11:12.5Z"}` + "\n" +
			`{"log":"Throughput: 1.5 req","stream":"stdout","time":"2026-11-27T10:11:12.6Z"}` + "\n" +
			`{"log":"beside\n","stream":"stderr","time":"2026-11-27T10:11:12.6Z"}` + "\n" +
			`{"log":"uests/s, 3 tokens/s\n","stream":"stdout","time":"2026-11-27T10:11:12.6Z"}` + "\n" +
			`{"log":"refused at \"last\"\n","stream":"stderr","attrs":{},"time":"2026-11-27T10:11:12.7Z"}` + "\n" +
			`{"lo`,
			"vllm-throughput", `run: refused at "last" (4)`},
		{"a log of Kubernetes", "auto", "2026-11-27T10:11:12.1Z stdout F = Serving Benchmark Result =\n" +
			"2026-11-27T10:11:12.1Z stdout P Successful req\n2026-11-27T10:11:12.1Z stdout F uests: 1\n" +
			"2026-11-27T10:11:12.1+01:00 stdout F Failed requests: 2\n2026-11-27T10:11:12.1Z stdout F\n",
			"vllm-serving", "run: 1 of 3 requests succeeded (2)"},
		{"a document in Docker's log", "auto",
			`{"log":"{\"a\": 1,\n","stream":"stdout","time":"2026-11-27T10:11:12.5Z"}` + "\n" +
				`{"log":"\"b\": 2}\n","stream":"stdout","time":"2026-11-27T10:11:12.5Z"}`, "json", ""},
		{"no count, and why", "auto", "refused\n= Serving Benchmark Result =\n", "vllm-serving", "run: refused (1)"},
		{"no count", "auto", "= Serving Benchmark Result =\n", "vllm-serving",
			"parse: the result has no count of successful requests (0)"},
	} {
		log, err := ParseLog(c.format, func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(c.log)), nil
		}, rules)
		failure := ""
		if f := log.Failure; f != nil {
			failure = fmt.Sprintf("%s: %s (%d)", f.Stage, f.Evidence, f.Line)
		}
		if err != nil || log.Detected != c.detected || failure != c.failure {
			t.Errorf("%s: %+v %s %v", c.name, log, failure, err)
		}
	}
	if _, err := ParseLog("xml", func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("")), nil
	}, nil); err == nil {
		t.Error("an unknown format is accepted")
	}
}
