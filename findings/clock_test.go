package findings

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// A gain is compared with the wall clock of the commands, by the time that the outputs claim to have saved. If start-up
// is most of a command, the wall clock hardly changes, and there is no doubt.
func TestAGainThatTheWallClockDoesNotKnow(t *testing.T) {
	throughput := hclspec.Metrics{Primary: "output_token_throughput", Format: "vllm"}
	own := hclspec.Metrics{Primary: "rate", Custom: []hclspec.Metric{{Name: "rate", Match: "^rate: ([0-9.]+)",
		Unit: "tok/s", Better: "higher"}}}
	requests := hclspec.Metrics{Primary: "rate", Custom: []hclspec.Metric{{Name: "rate", Match: "^rate: ([0-9.]+)",
		Unit: "req/s", Better: "higher"}}}
	lasts := hclspec.Metrics{Primary: "elapsed", Custom: []hclspec.Metric{{Name: "elapsed",
		Match: "^elapsed: ([0-9.]+)", Unit: "s", Better: "lower"}}}
	latency := hclspec.Metrics{Primary: "latency", Custom: []hclspec.Metric{{Name: "latency",
		Match: "^latency: ([0-9.]+)", Unit: "s", Better: "lower"}}}
	processor := hclspec.Metrics{Primary: "cpu_time", Custom: []hclspec.Metric{{Name: "cpu_time",
		Match: "^latency: ([0-9.]+)", Unit: "s", Better: "lower"}}}
	timed := hclspec.Metrics{Primary: "rate", Custom: []hclspec.Metric{{Name: "rate", Match: "^rate: ([0-9.]+)",
		Unit: "items/s", Better: "higher"}, {Name: "benchmark_duration", Match: "^took: ([0-9.]+)", Unit: "s"}}}
	offline := func(primary string) hclspec.Metrics { return hclspec.Metrics{Primary: primary, Format: "vllm"} }
	iteration := func(latency float64) func(float64) string {
		return func(n float64) string { return fmt.Sprintf("Avg latency: %f seconds\n", latency*(1+n/10)) }
	}
	rates := func(requests, tokens float64) func(float64) string {
		return func(n float64) string {
			return fmt.Sprintf("Throughput: %f requests/s, %f tokens/s\n", requests+n, tokens+40*n)
		}
	}
	says := func(latency float64) func(float64) string {
		return func(n float64) string { return fmt.Sprintf("latency: %f\n", latency*(1+n/10)) }
	}
	table := func(tokens, duration float64) string {
		return fmt.Sprintf("============ Serving Benchmark Result ============\nSuccessful requests:  "+
			"100\nBenchmark duration (s):  %.2f\nTotal input tokens:  500\n"+
			"Total generated tokens:  %.0f\nOutput token throughput (tok/s):  "+
			"%.2f\n==================================================\n", duration, tokens, tokens/duration)
	}
	for name, tt := range map[string]struct {
		metrics    hclspec.Metrics
		base, fast func(noise float64) string
		took       [2]float64 // by base and fast, in seconds
		noise      float64    // of that
		want       string
	}{
		"an offline latency": {offline("latency_avg"), iteration(0.5), iteration(0.25),
			[2]float64{12, 12}, 0.3, "work 2.5 s f"},
		"such a one, and true": {offline("latency_avg"), iteration(0.5), iteration(0.25),
			[2]float64{12, 9.5}, 0.3, ""},
		"an offline throughput": {offline("request_throughput"), rates(10, 400), rates(20, 800),
			[2]float64{12, 12}, 0.3, "work 1.5 s f"},
		"that, and true": {offline("request_throughput"), rates(10, 400), rates(20, 800),
			[2]float64{12, 10.5}, 0.3, ""},
		"tokens that are made up": {offline("total_token_throughput"), rates(10, 400), rates(10, 800),
			[2]float64{12, 12}, 0.3, "work 1.5 s f"},
		"honest": {throughput, func(n float64) string {
			return table(1000, 10+n)
		}, func(n float64) string { return table(1000, 8+n) }, [2]float64{12, 10}, 0.3, ""},
		"start-up dominates": {throughput, func(n float64) string {
			return table(1000, 2+n)
		}, func(n float64) string { return table(1000, 1.5+n) }, [2]float64{300, 299.5}, 4, ""},
		"it is made up": {throughput, func(n float64) string {
			return table(1000, 10+n)
		}, func(n float64) string { return table(1000, 6.6+n) }, [2]float64{12, 12}, 0.1,
			"c/one did the work 3.4 s faster than c/base, and by the wall clock its command took"},
		"it takes even longer": {throughput, func(n float64) string {
			return table(1000, 10+n)
		}, func(n float64) string {
			return table(1000, 6.6+n)
		}, [2]float64{12, 14}, 0.1, "its command took 2 s longer"},
		"the rate alone is made up": {throughput, func(n float64) string {
			return table(1000, 10+n)
		}, func(n float64) string {
			measured, said := fmt.Sprintf("%.2f\n=", 1000/(10+n)), fmt.Sprintf("%.2f\n=", 1500/(10+n))
			return strings.Replace(table(1000, 10+n), measured, said, 1)
		}, [2]float64{12, 12}, 0.1, "by the wall clock its command took"},
		"a metric of one's own and a count": {requests, func(n float64) string {
			return fmt.Sprintf("rate: %f\nSuccessful requests: 100\n", 10+n)
		},
			func(n float64) string {
				return fmt.Sprintf("rate: %f\nSuccessful requests: 100\n", 20+n)
			}, [2]float64{12, 12}, 0.1, "did the work 5 s faster"},
		"a rate of one request among many": {own, func(n float64) string {
			return fmt.Sprintf("rate: %f\nTotal generated tokens: 1000\n", 10+n)
		},
			func(n float64) string {
				return fmt.Sprintf("rate: %f\nTotal generated tokens: 1000\n", 20+n)
			}, [2]float64{12, 12}, 0.1, ""},
		"a duration": {lasts, func(n float64) string {
			return fmt.Sprintf("elapsed: %f\n", 10+n)
		}, func(n float64) string {
			return fmt.Sprintf("elapsed: %f\n", 5+n)
		}, [2]float64{12, 12}, 0.1, "did the work 5 s faster"},
		"a time that fills the command": {latency, says(4), says(1), [2]float64{12, 12}, 0.1,
			"did the work 3 s faster"},
		"such a time, and it is true":      {latency, says(4), says(1), [2]float64{12, 9}, 0.1, ""},
		"the time of a request among many": {latency, says(2), says(1), [2]float64{12, 12}, 0.1, ""},
		"more time than the command took":  {latency, says(20), says(10), [2]float64{12, 12}, 0.1, ""},
		"a time of several threads":        {processor, says(8), says(4), [2]float64{12, 12}, 0.1, ""},
		"nobody knows the work": {own, func(n float64) string {
			return fmt.Sprintf("rate: %f\n", 10+n)
		}, func(n float64) string { return fmt.Sprintf("rate: %f\n", 20+n) }, [2]float64{12, 12}, 0.1, ""},
		"nobody knows the work, and it took longer": {own, func(n float64) string {
			return fmt.Sprintf("rate: %f\n", 10+n)
		}, func(n float64) string { return fmt.Sprintf("rate: %f\n", 20+n) }, [2]float64{12, 15}, 0.1,
			"c/one reports a gain, and by the wall clock its command took 3 s longer: 15 s on average against 12 s"},
		"a rate and a duration of one's own": {timed, func(n float64) string {
			return fmt.Sprintf("rate: %f\ntook: %f\n", 10+n, 10-n)
		}, func(n float64) string {
			return fmt.Sprintf("rate: %f\ntook: %f\n", 100+n, 1-n/10)
		}, [2]float64{12, 12}, 0.1, "did the work 9 s faster"},
		"hardly longer": {own, func(n float64) string {
			return fmt.Sprintf("rate: %f\n", 10+n)
		}, func(n float64) string { return fmt.Sprintf("rate: %f\n", 20+n) }, [2]float64{12, 12.3}, 0.01, ""},
		"a loss": {throughput, func(n float64) string {
			return table(1000, 6.6+n)
		}, func(n float64) string { return table(1000, 10+n) }, [2]float64{12, 12}, 0.1, ""},
		"an earlier version measured it": {throughput, func(n float64) string {
			return table(1000, 10+n)
		}, func(n float64) string { return table(1000, 6.6+n) }, [2]float64{}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := contestOf(tt.metrics)
			for i := range c.Groups[0].Members {
				c.Groups[0].Members[i].Bench.Command = hclspec.Command{Argv: []hclspec.Text{{{Literal: "bench"}},
					{{Literal: "--num-prompts=30"}}, {{Literal: "--num-iters"}}, {{Literal: "10"}}}}
			}
			swing := func(block int) float64 { return float64((block*5)%7-3) / 3 } // of both sides, in another order
			ends := printed(t, c, func(member string, block int) string {
				if member == "base" {
					return tt.base(0.01 * swing(block))
				}
				return tt.fast(0.01 * swing(block+3))
			}, func(rec *sample.Record) {
				for i, name := range []string{"base", "one"} {
					m := rec.Members[name]
					if tt.took[i] > 0 {
						m.Took = time.Duration((tt.took[i] + tt.noise*swing(rec.Block+4*i)) * float64(time.Second))
					}
					rec.Members[name] = m
				}
			})
			row := only(t, c, ends)
			i := slices.IndexFunc(row.Caveats, func(c stats.Caveat) bool { return c.Kind == stats.CaveatClock })
			if (i >= 0) != (tt.want != "") || i >= 0 && !strings.Contains(row.Caveats[i].Text, tt.want) {
				t.Errorf("%s %s: %q", row.Outcome, row.Reason, row.Caveats)
			}
			if name != "a loss" && row.Outcome != stats.Win {
				t.Errorf("%s: %s", row.Outcome, row.Reason)
			}
		})
	}
}
