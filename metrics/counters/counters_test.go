package counters

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func TestWhatAServerCounts(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after string
		want          Counters
		rate          float64
	}{
		"nothing": {"", "<html>", Counters{}, 0},
		"vllm": {"# HELP vllm:prefix_cache_hits_total Tokens.\nvllm:prefix_cache_queries_total{model_name=\"a}b " +
			"\\\" \"} 100.0\nvllm:prefix_cache_hits_total{model_name=\"m\"} " +
			"10\nvllm:request_success_total{finished_reason=\"stop\"} 1\n",
			"vllm:prefix_cache_queries_total{model_name=\"a}b \\\" \"} " +
				"300.0\nvllm:gpu_prefix_cache_queries_total{model_name=\"m\"} " +
				"300.0\nvllm:prefix_cache_hits_total{model_name=\"m\"} 60 1700000000\n" +
				"vllm:request_success_total{finished_reason=\"stop\"} " +
				"7\nvllm:request_success_total{finished_reason=\"length\"} 4\nvllm:request_success_created{} 9\n",
			Counters{"prefix_queries": 200, "prefix_hits": 50, "requests": 10}, 0.25},
		"sglang": {"sglang:prompt_tokens_total 100\nsglang:cached_tokens_total 0\n",
			"sglang:prompt_tokens_total 200\nsglang:cached_tokens_total 20\nsglang:cache_hit_rate 0.9\n",
			Counters{"prompt_tokens": 100, "prefix_queries": 100, "prefix_hits": 20, "prefix_hit_rate": 0.9}, 0.2},
		"it began anew": {"a:request_success_total 5\n", "a:request_success_total 3\n", Counters{}, 0},
		"it is no counter": {"a:request_success_total 5\n",
			"a:request_success_total NaN\na:request_success_total{x=\"} 3\na:prompt_tokens_total\n", Counters{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := Read([]byte(tt.after)).Since(Read([]byte(tt.before)))
			if rate, _ := got.HitRate(); !maps.Equal(got, tt.want) || rate != tt.rate {
				t.Errorf("%v, %g", got, rate)
			}
		})
	}
}

func FuzzCounters(f *testing.F) {
	f.Add([]byte("a:prompt_tokens_total{x=\"\\\"}\"} 1e308\na:prompt_tokens_total 1e308\n# x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzzing.Frugal(t, len(b), func() {
			for name, v := range Read(b) {
				if !(v >= 0) || math.IsInf(v, 0) || strings.TrimSpace(name) == "" {
					t.Errorf("%s: %g", name, v)
				}
			}
		})
	})
}
