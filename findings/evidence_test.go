package findings

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// contestOf is a contest over seven blocks with other metrics.
func contestOf(m hclspec.Metrics) *Case {
	c := contest()
	g := &c.Groups[0]
	g.Design, g.Blocks = hclspec.Design{Samples: 7, Max: 7}, nil
	for i := range g.Members {
		g.Members[i].Bench.Metrics = m
	}
	for i := range 7 {
		g.Blocks = append(g.Blocks, group.Block{At: hclspec.TrialAddress("speed", "c", i+1),
			Members: []string{"base", "one"}})
	}
	return c
}

// printed returns the ends of blocks in which each member printed the text that says returns for the block, counted
// from 0. change may change the record.
func printed(t *testing.T, c *Case, says func(member string, block int) string,
	change func(*sample.Record)) map[string]engine.End {
	t.Helper()
	ends := map[string]engine.End{}
	for i, b := range c.Groups[0].Blocks {
		rec := sample.Record{Block: i + 1, Order: b.Members, Members: map[string]sample.Member{}}
		dir := t.TempDir()
		for _, name := range b.Members {
			rec.Members[name] = sample.Member{Start: time.Unix(int64(1000+i), 0)}
			must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
			must(t, os.WriteFile(filepath.Join(dir, name, sample.StdoutFile), []byte(says(name, i)), 0o644))
		}
		if change != nil {
			change(&rec)
		}
		record(t, dir, rec)
		ends[b.At.String()] = engine.End{Entry: cache.Entry{Dir: dir}}
	}
	return ends
}

func latency() hclspec.Metrics {
	return hclspec.Metrics{Primary: "latency", Custom: []hclspec.Metric{{Name: "latency", Match: "latency: ([0-9.]+)",
		Better: "lower"}}}
}

func speed() hclspec.Metrics {
	return hclspec.Metrics{Primary: "items", Custom: []hclspec.Metric{
		{Name: "items", Match: "([0-9.]+) items/s", Unit: "items/s", Better: "higher"},
		{Name: "total_output_tokens", Match: "([0-9]+) tokens"},
		{Name: "completed", Match: "completed: ([0-9]+)"}, {Name: "failed_requests", Match: "failed: ([0-9]+)"},
		{Name: "ttft", Match: "ttft: ([0-9.]+) ms", Unit: "ms"},
	}}
}

// jitter makes the values of blocks differ a little, in the same way for both sides.
func jitter(value float64, block int) float64 { return value * (1 + 0.002*float64(block%3)) }

// If devices of two kinds serve in turns, both sides run on both kinds, and one effect over all blocks would hold for
// neither kind.
func TestBlocksOfTwoKindsOfDevicesAreNotPooled(t *testing.T) {
	says := func(m string, b int) string {
		return fmt.Sprintf("%.3f items/s\n", jitter(map[string]float64{"base": 100, "one": 110}[m], b))
	}
	for name, test := range map[string]struct {
		kinds  int
		want   stats.Outcome
		reason string
	}{
		"one kind": {1, stats.Win, ""},
		"two kinds": {2, stats.NotComparable,
			"several classes of hardware: EPYC, 8 cores, 64 GiB, amd64, 1 × GPU0 80 GiB; EPYC, 8 cores, 64 GiB, " +
				"amd64, 1 × GPU1 80 GiB"},
	} {
		t.Run(name, func(t *testing.T) {
			c := contestOf(speed())
			row := only(t, c, printed(t, c, says, func(rec *sample.Record) {
				gpu := machine.ClassGPU{Name: fmt.Sprintf("GPU%d", rec.Block%test.kinds), Memory: 80 << 30, Count: 1}
				rec.Class = machine.Class{Arch: "amd64", CPU: "EPYC", Cores: 8, Memory: 64,
					GPUs: []machine.ClassGPU{gpu}}
			}))
			if row.Outcome != test.want || !strings.Contains(row.Reason, test.reason) {
				t.Errorf("%s: %s", row.Outcome, row.Reason)
			}
		})
	}
}

// In each story a candidate is not as good as its numbers: it must not win without a caveat.
func TestNoSilentVerdict(t *testing.T) {
	fast := func(extra func(member string, block int) string) func(string, int) string {
		return func(member string, block int) string {
			value := jitter(100, block)
			if member == "one" {
				value = jitter(110, block)
			}
			return fmt.Sprintf("%.3f items/s\n", value) + extra(member, block)
		}
	}
	for name, story := range map[string]struct {
		metrics hclspec.Metrics
		says    func(member string, block int) string
		want    stats.Outcome
		reason  string
		caveat  string // kind
	}{
		"milliseconds against microseconds": {latency(), func(m string, b int) string {
			if m == "one" {
				return fmt.Sprintf("latency: %.3f us\n", jitter(1050, b))
			}
			return fmt.Sprintf("latency: %.6f ms\n", jitter(1.05, b))
		}, stats.Tie, "", stats.CaveatUnit},
		"a declared unit and another one that is printed": {hclspec.Metrics{Primary: "latency",
			Custom: []hclspec.Metric{{Name: "latency", Match: "latency: ([0-9.]+)", Unit: "ms", Better: "lower"}}},
			func(m string, b int) string {
				if m == "one" {
					return fmt.Sprintf("latency: %.3f us\n", jitter(1050, b))
				}
				return fmt.Sprintf("latency: %.6f ms\n", jitter(1.05, b))
			}, stats.Tie, "", stats.CaveatUnit},
		"milliseconds against nothing": {latency(), func(m string, b int) string {
			if m == "one" {
				return fmt.Sprintf("latency: %.3f\n", jitter(0.9, b))
			}
			return fmt.Sprintf("latency: %.3f ms\n", jitter(1.05, b))
		}, stats.NotComparable, `latency has no unit for c/one and the unit "ms" for c/base`, ""},
		"milliseconds against bytes": {latency(), func(m string, b int) string {
			return map[string]string{"base": "latency: 1.05 ms\n", "one": "latency: 1.00 B\n"}[m]
		}, stats.NotComparable, `"B" for c/one and the unit "ms" for c/base`, ""},
		"a side that changes its unit": {latency(), func(m string, b int) string {
			if m == "one" && b == 3 {
				return "latency: 1 B\n"
			}
			return fmt.Sprintf("latency: %.3f ms\n", jitter(1.05, b))
		}, stats.NotComparable, "several units", ""},
		"one of two Go benchmarks": {hclspec.Metrics{Format: "gobench", Primary: "ns/op"},
			func(m string, b int) string {
				text := fmt.Sprintf("BenchmarkShort-2 \t 100 \t %.1f ns/op\n", jitter(10, b))
				if m == "base" {
					text += fmt.Sprintf("BenchmarkLong-2 \t 100 \t %.1f ns/op\n", jitter(1000, b))
				}
				return text
			}, stats.NotComparable, "Long ns/op is missing in the output of c/one", ""},
		"another Go benchmark on top": {hclspec.Metrics{Format: "gobench", Primary: "ns/op"},
			func(m string, b int) string {
				text := fmt.Sprintf("BenchmarkShort-2 \t 100 \t %.1f ns/op\n", jitter(10, b))
				if m == "one" {
					text += fmt.Sprintf("BenchmarkTiny-2 \t 100 \t %.1f ns/op\n", jitter(1, b))
				}
				return text
			}, stats.NotComparable, "Tiny ns/op is missing in the output of c/base", ""},
		"one of two redis commands": {hclspec.Metrics{Format: "redis", Primary: "requests_per_second"},
			func(m string, b int) string {
				text := fmt.Sprintf("SET: %.2f requests per second\n", jitter(100000, b))
				if m == "base" {
					text += fmt.Sprintf("LRANGE: %.2f requests per second\n", jitter(1000, b))
				}
				return text
			}, stats.NotComparable, "lrange_requests_per_second is missing", ""},
		"no tokens on one side": {speed(), fast(func(m string, b int) string {
			return map[string]string{"base": "1000 tokens\n"}[m]
		}), stats.NotComparable, "total_output_tokens: in the output of c/base and not in that of c/one", ""},
		"no tokens in half of the blocks": {speed(), fast(func(m string, b int) string {
			if m == "one" && b%2 == 0 {
				return ""
			}
			return "1000 tokens\n"
		}), stats.NotComparable, "total_output_tokens: missing in the output of c/one in blocks 1, 3, 5 and 1 more",
			""},
		"one Go benchmark with more results": {hclspec.Metrics{Format: "gobench", Primary: "ns/op"},
			func(m string, b int) string {
				text := fmt.Sprintf("BenchmarkShort-2 \t 100 \t %.1f ns/op\n", jitter(1000, b))
				if m == "one" {
					text += fmt.Sprintf("BenchmarkShort-2 \t 100 \t %.1f ns/op\n", jitter(500, b))
				}
				return text
			}, stats.NotComparable, "different results in block 1: Short ns/op of c/base, and Short ns/op ×2 of c/one",
			""},
		"more results behind one name": {hclspec.Metrics{Format: "gobench", Primary: "Short ns/op"},
			func(m string, b int) string {
				text := fmt.Sprintf("BenchmarkShort-2 \t 100 \t %.1f ns/op\n", jitter(1000, b))
				if m == "one" {
					text += fmt.Sprintf("BenchmarkShort-2 \t 100 \t %.1f ns/op\n", jitter(500, b))
				}
				return text
			}, stats.NotComparable, "different results in block 1: Short ns/op of c/base, and Short ns/op ×2 of c/one",
			""},
		"Go tests that fail behind a pipe": {hclspec.Metrics{Format: "gobench", Primary: "ns/op"},
			func(m string, b int) string {
				text := fmt.Sprintf("BenchmarkShort-2 \t 100 \t %.1f ns/op\n",
					jitter(map[string]float64{"base": 1100, "one": 1000}[m], b))
				return text + map[string]string{"base": "PASS\n", "one": "--- FAIL: BenchmarkLong\nFAIL\n"}[m]
			}, stats.Win, "", stats.CaveatWarning},
		"several results on both sides": {hclspec.Metrics{Format: "gobench", Primary: "ns/op"},
			func(m string, b int) string {
				line := fmt.Sprintf("BenchmarkShort-2 \t 100 \t %.1f ns/op\n",
					jitter(map[string]float64{"base": 1100, "one": 1000}[m], b))
				return line + line
			}, stats.Win, "", ""},
		"another document on top": {hclspec.Metrics{Primary: "items",
			Custom: []hclspec.Metric{{Name: "items", JSON: "items", Better: "higher"}}}, func(m string, b int) string {
			text := fmt.Sprintf("{\"items\": %.3f}\n", jitter(100, b))
			if m == "one" {
				text += "{\"items\": 500}\n"
			}
			return text
		}, stats.Failed, "more than once, first as 100.000 in an earlier document", ""},
		"thousands behind a comma": {speed(), func(m string, b int) string {
			return fmt.Sprintf("%s items/s\n", map[string]string{"base": fmt.Sprintf("1,10%d", b),
				"one": fmt.Sprintf("999.%d", b)}[m])
		}, stats.NoBaseline, `a part of "1,10`, ""},
		"a letter that multiplies": {hclspec.Metrics{Primary: "rate",
			Custom: []hclspec.Metric{{Name: "rate", Match: "rate: ([0-9.]+)", Better: "higher"}}},
			func(m string, b int) string {
				return fmt.Sprintf("rate: %s\n", map[string]string{"base": fmt.Sprintf("%.2f", jitter(900, b)),
					"one": fmt.Sprintf("%.4fk", jitter(1, b))}[m])
			}, stats.NotComparable, `rate has the unit "k" for c/one and no unit for c/base`, ""},
		"units in the labels": {hclspec.Metrics{Primary: "latency",
			Custom: []hclspec.Metric{{Name: "latency", Match: "latency.*: ([0-9.]+)", Better: "lower"}}},
			func(m string, b int) string {
				return map[string]string{"base": fmt.Sprintf("latency (ms): %.3f\n", jitter(1050, b)),
					"one": fmt.Sprintf("latency (s): %.6f\n", jitter(1.05, b))}[m]
			}, stats.Tie, "", stats.CaveatUnit},
		"tokens that agree in the mean alone": {speed(), fast(func(m string, b int) string {
			if m == "one" && b < 6 {
				return fmt.Sprintf("%d tokens\n", 500+1000*(b%2))
			}
			return "1000 tokens\n"
		}), stats.Win, "", stats.CaveatRequests},
		"tokens that vary a little": {speed(), fast(func(m string, b int) string {
			return fmt.Sprintf("%d tokens\n", 1000+b%2)
		}), stats.Win, "", ""},
		"no token on either side": {speed(), fast(func(m string, b int) string {
			return "0 tokens\n"
		}), stats.Win, "", stats.CaveatRequests},
		"tokens and a wide tolerance": {func() hclspec.Metrics {
			m := speed()
			m.TokenTolerance = 0.9
			return m
		}(), fast(func(m string, b int) string {
			return map[string]string{"base": "1000 tokens\n", "one": "500 tokens\n"}[m]
		}), stats.Win, "", stats.CaveatRequests},
		"tokens below a path": {hclspec.Metrics{Format: "json", Primary: "r.req_per_s"}, func(m string, b int) string {
			return fmt.Sprintf("{\"r\": {\"req_per_s\": %.3f, \"total_output_tokens\": %d}}\n", jitter(100, b),
				map[string]int{"base": 1000, "one": 500}[m])
		}, stats.NotComparable, "total_output_tokens: 500 tok against 1000 tok", ""},
		"a rate that one side never changes": {speed(), func(m string, b int) string {
			if m == "one" {
				return "110 items/s\n"
			}
			return fmt.Sprintf("%.3f items/s\n", jitter(100, b))
		}, stats.Win, "", stats.CaveatConstant},
		"half of the requests": {speed(), fast(func(m string, b int) string {
			return map[string]string{"base": "completed: 100\n", "one": "completed: 50\n"}[m]
		}), stats.NotComparable, "successful_requests: 50 against 100 in block 1", ""},
		"failed requests": {speed(), fast(func(m string, b int) string {
			return map[string]string{"base": "failed: 0\n", "one": "failed: 7\n"}[m]
		}), stats.NotComparable, "failed_requests: 7 against 0 in block 1", ""},
		"requests that fail on both sides": {speed(), fast(func(m string, b int) string {
			return "failed: 7\n"
		}), stats.Win, "", stats.CaveatRequests},
		"the metric twice": {speed(), func(m string, b int) string {
			if m == "one" {
				return fmt.Sprintf("%.3f items/s\n500 items/s\n", jitter(100, b))
			}
			return fmt.Sprintf("%.3f items/s\n", jitter(100, b))
		}, stats.Failed, "items was printed more than once, first as 100.000 in line 1", ""},
		"another metric twice": {speed(), fast(func(m string, b int) string {
			return "ttft: 3 ms\nttft: 4 ms\n"
		}), stats.Win, "", ""},
		"an output that ends inside the line": {speed(), func(m string, b int) string {
			return fmt.Sprintf("%.3f items/s", jitter(map[string]float64{"base": 100, "one": 110}[m], b))
		}, stats.Win, "", stats.CaveatWarning},
		"the metric twice in the baseline": {speed(), fast(func(m string, b int) string {
			return "12 items/s"
		}), stats.NoBaseline, "more than once", ""},
		"the metric of another definition is missing": {speed(), fast(func(m string, b int) string {
			return ""
		}), stats.Win, "", stats.CaveatWarning},
		"one value throughout": {speed(), func(m string, b int) string {
			return "100 items/s\n"
		}, stats.Tie, "", stats.CaveatConstant},
		"a percentile of few requests": {hclspec.Metrics{Primary: "ttft_p99", Custom: []hclspec.Metric{
			{Name: "ttft_p99", Match: "p99: ([0-9.]+)", Unit: "ms", Better: "lower"},
			{Name: "completed", Match: "completed: ([0-9]+)"},
		}}, func(m string, b int) string {
			return fmt.Sprintf("p99: %.3f ms\ncompleted: 100\n",
				jitter(map[string]float64{"base": 110, "one": 80}[m], b))
		}, stats.Win, "", stats.CaveatRequests},
		"required and there": {required("completed", 100), fast(func(m string, b int) string {
			return "completed: 100\n"
		}), stats.Win, "", ""},
		"required and short": {required("successful_requests", 100), fast(func(m string, b int) string {
			return map[string]string{"base": "completed: 100\n", "one": "completed: 93\n"}[m]
		}), stats.Failed, "successful_requests is 93, and 100 is required", ""},
		"required and missing": {required("failed", 0), fast(func(m string, b int) string {
			return map[string]string{"base": "failed: 0\n"}[m]
		}), stats.Failed, "failed = 0 is required, and the output has no such number", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := contestOf(story.metrics)
			row := only(t, c, printed(t, c, story.says, nil))
			if row.Outcome != story.want || !strings.Contains(row.Reason, story.reason) {
				t.Errorf("%s (%+.1f %%): %s", row.Outcome, 100*row.Effect, row.Reason)
			}
			if story.caveat != "" && !carries(row, story.caveat, "") {
				t.Errorf("no caveat %s: %+v", story.caveat, row.Caveats)
			}
		})
	}
}

func required(metric string, value float64) hclspec.Metrics {
	m := speed()
	m.Require = []hclspec.Required{{Metric: metric, Value: value}}
	return m
}

func carries(row stats.Comparison, kind, text string) bool {
	for _, c := range row.Caveats {
		if c.Kind == kind && strings.Contains(c.Text, text) {
			return true
		}
	}
	return false
}

// A secondary metric that one side lacks has a row that says so.
func TestASecondaryMetricOfOneSide(t *testing.T) {
	c := contestOf(speed())
	found, err := c.Judge(printed(t, c, func(m string, b int) string {
		text := fmt.Sprintf("%.3f items/s\n", jitter(100, b))
		if m == "base" || b != 4 {
			text += fmt.Sprintf("ttft: %.3f ms\n", jitter(10, b))
		}
		return text
	}, nil))
	must(t, err)
	for _, row := range found.Comparisons {
		if row.Metric == "ttft" && row.Outcome == stats.NotComparable && strings.Contains(row.Reason, "in block 5") {
			return
		}
	}
	t.Errorf("%+v", found.Comparisons)
}

// Losses on one side alone decide the outcome, and all losses are counted.
func TestLossesOfOneSideAreNoWin(t *testing.T) {
	lost := func(candidate string) sample.Try {
		return sample.Try{Run: "r", Voided: true, Lost: []sample.Loss{{Candidate: candidate, Class: failure.Transient,
			Rule: "flaky"}}}
	}
	unknown, interrupted := lost(""), lost("")
	unknown.Lost[0].Rule, interrupted.Lost[0].Rule = "", failure.Interrupted
	retried := sample.Try{Run: "r", Lost: []sample.Loss{{Candidate: "c/one", Class: failure.Permanent, Rule: "crash"}}}
	for name, story := range map[string]struct {
		tries  []sample.Try // of block 2
		want   stats.Outcome
		reason string
		caveat string
	}{
		"nothing": {nil, stats.Win, "", ""},
		"one loss of the candidate": {[]sample.Try{lost("c/one")}, stats.Inconclusive,
			"survivorship: c/one lost 1 of 8 lifecycles", stats.CaveatVoided},
		"one loss on each side": {[]sample.Try{lost("c/one"), lost("c/base")}, stats.Win, "",
			stats.CaveatVoided},
		"many losses of the candidate": {slicesOf(lost("c/one"), 9), stats.Failed, "survivorship",
			stats.CaveatVoided},
		"a loss of the baseline": {[]sample.Try{lost("c/base")}, stats.Inconclusive,
			"survivorship: c/one lost 0 of 7 lifecycles and c/base 1 of 8", stats.CaveatVoided},
		"the machine":                   {[]sample.Try{lost("")}, stats.Win, "", stats.CaveatVoided},
		"the machine in a third of all": {slicesOf(lost(""), 3), stats.Win, "", stats.CaveatVoided},
		"the machine in more of all": {slicesOf(lost(""), 4), stats.Inconclusive, "selection: 4 of 11",
			stats.CaveatVoided},
		"the machine, nobody knows why": {[]sample.Try{unknown}, stats.Inconclusive, "selection: 1 of 8",
			stats.CaveatVoided},
		"the user, who interrupts it": {slicesOf(interrupted, 9), stats.Win, "", stats.CaveatVoided},
		"retried until it passes": {[]sample.Try{retried}, stats.Inconclusive, "survivorship",
			stats.CaveatRerolled},
		"a result replaced for no cause": {[]sample.Try{{Run: "r"}}, stats.Win, "", stats.CaveatRerolled},
	} {
		t.Run(name, func(t *testing.T) {
			c := contestOf(speed())
			row := only(t, c, printed(t, c, func(m string, b int) string {
				return fmt.Sprintf("%.3f items/s\n", jitter(map[string]float64{"base": 100, "one": 110}[m], b))
			}, func(rec *sample.Record) {
				if rec.Block == 2 {
					rec.Tries = story.tries
				}
			}))
			if row.Outcome != story.want || !strings.Contains(row.Reason, story.reason) {
				t.Errorf("%s: %s", row.Outcome, row.Reason)
			}
			if story.caveat != "" && !carries(row, story.caveat, "") {
				t.Errorf("%+v", row.Caveats)
			}
			a := row.Attempts
			if a == nil || a.Valid != 7 || a.Voided+a.Replaced != len(story.tries) {
				t.Errorf("%+v", a)
			}
		})
	}
}

func slicesOf(t sample.Try, n int) []sample.Try {
	list := make([]sample.Try, n)
	for i := range list {
		list[i] = t
	}
	return list
}

// The changed rule, the applies that measured, and identical artefacts stand beside the verdict.
func TestTheHistoryOfAVerdict(t *testing.T) {
	says := func(m string, b int) string {
		return fmt.Sprintf("%.3f items/s\n", jitter(map[string]float64{"base": 100, "one": 110}[m], b))
	}
	c := contestOf(speed())
	c.Groups[0].Rule = []methodology.Field{{Name: "looks", Value: "4 15"}, {Name: "compare.all tie", Value: "0.01"},
		{Name: "compare.other tie", Value: "0.3"}}
	digest := map[string]string{"base": "0101010101010101", "one": "0202020202020202"}
	change := func(rec *sample.Record) {
		rec.Run = "first"
		if rec.Block > 5 {
			rec.Run = "second"
		}
		rec.Rule = []methodology.Field{{Name: "looks", Value: "4 7"}, {Name: "compare.all tie", Value: "0.05"},
			{Name: "compare.other tie", Value: "0.2"}}
		for name, m := range rec.Members {
			m.Artefacts = []sample.Artefact{{Node: fmt.Sprintf("wheel.app[%q]", "c/"+name), Digest: digest[name]}}
			rec.Members[name] = m
		}
	}
	row := only(t, c, printed(t, c, says, change))
	if row.Outcome != stats.Win || !carries(row, stats.CaveatRule,
		`tie was 5 % and is 1 %, looks was 4, 7 and is 4, 15`) ||
		!carries(row, stats.CaveatRuns, "blocks 1, 2, 3 and 2 more in run first, blocks 6, 7 in run second") {
		t.Errorf("%s: %+v", row.Outcome, row.Caveats)
	}
	digest["one"] = digest["base"]
	row = only(t, c, printed(t, c, says, func(rec *sample.Record) {
		change(rec)
		for name, m := range rec.Members {
			m.Artefacts = append(m.Artefacts, sample.Artefact{Node: `wheel.client["c/base"]`, Digest: "03"})
			rec.Members[name] = m
		}
	}))
	if row.Outcome != stats.Tie || !strings.Contains(row.Reason, "identical artefact") ||
		!carries(row, stats.CaveatIdentical, "wheel.app 010101") {
		t.Errorf("%s: %s: %+v", row.Outcome, row.Reason, row.Caveats)
	}
}
