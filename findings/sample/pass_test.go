package sample

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics"
)

// Each number is the mean of three passes. A number that one pass lacks, or prints in another unit, is left out with a
// warning; if it is the primary one, there is no sample.
func TestTheMeanOfPasses(t *testing.T) {
	const whole = "Successful requests: 100\nRequest throughput (req/s): %g\nMean TTFT (ms): %g\n"
	table := func(throughput, ttft float64) string {
		return "============ Serving Benchmark Result ============\n" + fmt.Sprintf(whole, throughput, ttft) +
			strings.Repeat("=", 50) + "\n"
	}
	cut := func(text, line string) string {
		before, rest, _ := strings.Cut(text, line)
		_, after, _ := strings.Cut(rest, "\n")
		return before + after
	}
	for name, tt := range map[string]struct {
		passes  [3]string
		own     hclspec.Metric // instead of the format's
		want    float64        // of the primary metric
		ttft    string         // the mean; empty: it is left out
		failure string         // a part of it
	}{
		"whole": {passes: [3]string{table(10, 1), table(20, 2), table(60, 6)}, want: 30, ttft: "3"},
		"one without latency": {passes: [3]string{table(10, 1), cut(table(20, 2), "Mean TTFT"), table(60, 6)},
			want: 30},
		"latency in the last": {passes: [3]string{cut(table(10, 1), "Mean TTFT"), cut(table(20, 2), "Mean TTFT"),
			table(60, 6)}, want: 30},
		"one without a result": {passes: [3]string{table(10, 1), cut(table(20, 2), "Request throughput"),
			table(60, 6)}, failure: "pass 2 of 3: metric"},
		"another unit": {passes: [3]string{"work: 3 ms\n", "work: 4 ms\n", "work: 5 us\n"},
			own:     hclspec.Metric{Name: "work", Match: "work: ([0-9.]+)"},
			failure: `metric "work" is not the same in all passes`},
		"a part of the first": {passes: [3]string{strings.Replace(table(10, 1), "100", "90", 1), table(20, 2),
			table(60, 6)}, failure: "pass 1 of 3: "},
		"none of the last pass": {passes: [3]string{table(10, 1), table(20, 2), ""}, failure: "pass 3 of 3: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for i, pass := range passDirs(3) {
				if err := errors.Join(os.MkdirAll(filepath.Join(dir, pass, OutDir), 0o755),
					os.WriteFile(filepath.Join(dir, pass, StdoutFile), []byte(tt.passes[i]), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			b := &hclspec.Benchmark{
				Metrics: hclspec.Metrics{Format: "vllm", Primary: "request_throughput"},
				Design:  hclspec.Design{Repeat: 3},
				Work: hclspec.Work{Command: hclspec.Command{Argv: []hclspec.Text{{{Literal: "bench"}},
					{{Literal: "--num-prompts"}}, {{Literal: "100"}}}}},
			}
			if tt.own.Name != "" {
				b.Metrics = hclspec.Metrics{Custom: []hclspec.Metric{tt.own}, Primary: tt.own.Name}
			}
			read, primary, err := readPasses(b, dir)
			if tt.failure != "" {
				if f, ok := errors.AsType[*engine.Failure](err); !ok || !strings.Contains(f.Message, tt.failure) {
					t.Errorf("%v, want %q", err, tt.failure)
				}
				return
			}
			if err != nil || primary.Value != tt.want {
				t.Errorf("%+v, %v, want %g", primary, err, tt.want)
			}
			ttft, found := metrics.Find(read.Samples, "ttft_mean")
			warned := false
			for _, w := range read.Warnings {
				warned = warned || w.Metric == "ttft_mean"
			}
			if found != (tt.ttft != "") || found && fmt.Sprint(ttft.Value) != tt.ttft || warned == found {
				t.Errorf("%+v, warnings %+v, want %q", ttft, read.Warnings, tt.ttft)
			}
		})
	}
}
