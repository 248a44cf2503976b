// Package formats reads numbers and failures from the outputs of benchmarks, in each known format. The names of the
// metrics are:
//
//   - vllm and sglang: request_throughput, ttft_p99, latency_avg, … with one unit each, whatever the version prints.
//     All names stand in docs/formats.md. If some of the requests failed, the Result has a Failure.
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
//   - custom metrics (package custom): the name in the definition.
//
// A geometric mean over several benchmarks exists only where all values are positive, and two such means may be
// compared only when they are over the same benchmarks.
//
// Output is hostile: memory is bounded, control characters and escape sequences are removed, a carriage return starts
// a new line, and a text that is no finite number is a warning and no sample, see package number. When a metric
// is printed twice with different values, or once as a number and once as something else, the last number counts, with
// a warning and a doubt.
package formats

import (
	"fmt"
	"strings"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/gobench"
	"github.com/benchgraph/benchgraph/metrics/inference"
	"github.com/benchgraph/benchgraph/metrics/redis"
	"github.com/benchgraph/benchgraph/metrics/tool"
)

// Names returns the names of the formats, in the order for people.
func Names() []string {
	return []string{
		"auto", "vllm", "sglang", "aiperf", "gobench", "redis", "hyperfine", "pytest", "pyperf", "googlebench", "json",
		"regex",
	}
}

// Lookup returns the parser of a format, one of Names. It returns an error for an unknown format and for regex, which
// needs definitions (see package custom).
func Lookup(format string) (metrics.Parser, error) {
	switch format {
	case "auto":
		return auto{}, nil
	case "gobench":
		return gobench.Parser{}, nil
	case "redis":
		return redis.Parser{}, nil
	case "json":
		return jsonLeaves{}, nil
	case "regex":
		return nil, fmt.Errorf("format regex: nothing to read: declare a metric block with match")
	case "vllm", "sglang":
		return inference.New(format), nil
	}
	if p, ok := tool.New(format); ok {
		return p, nil
	}
	return nil, fmt.Errorf("format %q: unknown; one of %s", format, strings.Join(Names(), ", "))
}
