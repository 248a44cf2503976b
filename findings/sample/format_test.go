package sample

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/format"
	"github.com/benchgraph/benchgraph/metrics/formats"
)

// The language accepts all formats, and knows the names of their metrics.
func TestTheLanguageKnowsTheFormats(t *testing.T) {
	if got, want := format.Names(), formats.Names(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	read := map[string]map[string]bool{"vllm": {}, "sglang": {}}
	figure := regexp.MustCompile(`(?m)^(\S+) = \S+ ?\S*$`)
	for _, name := range []string{"vllm", "sglang", "made"} {
		a, err := txtar.ParseFile("../../metrics/inference/testdata/" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			of, _, _ := strings.Cut(strings.TrimPrefix(string(f.Data), "format "), "-")
			if !strings.HasSuffix(f.Name, ".want") || read[of] == nil {
				continue
			}
			for _, m := range figure.FindAllStringSubmatch(string(f.Data), -1) {
				read[of][m[1]] = true
				if !format.Gives(of, m[1]) {
					t.Errorf("%s of %s is read, and the language does not know it", m[1], f.Name)
				}
			}
		}
	}
	for of, names := range read {
		for _, name := range format.Metrics(of) {
			if !names[name] {
				t.Errorf("no output of %s in the archives has %s, which the language knows", of, name)
			}
		}
		if format.Gives(of, "requests_per_sec") || format.Gives(of, "ttft") != (of == "sglang") {
			t.Errorf("%s gives everything", of)
		}
	}
}

// The output of an incomplete run has no valid primary number: its counts are the evidence.
func TestAPartOfTheRequests(t *testing.T) {
	table := "============ Serving Benchmark Result ============\nSuccessful requests:    90        \nRequest " +
		"throughput (req/s):   13.97     \n" + strings.Repeat("=", 50) + "\n"
	spec := hclspec.Metrics{Format: "vllm", Primary: "request_throughput"}
	command := hclspec.Command{Argv: []hclspec.Text{{{Literal: "bench"}}, {{Literal: "--num-prompts"}},
		{{Literal: "90"}}}}
	dir := raw(t, table, "")
	asked := &hclspec.Benchmark{Metrics: spec, Work: hclspec.Work{Command: command}}
	if s, err := Primary(asked, dir); err != nil || s.Value != 13.97 ||
		s.Unit != "req/s" {
		t.Errorf("%+v, %v", s, err)
	}
	asked.Command = hclspec.Command{Shell: hclspec.Text{{Literal: "bench --num-prompts 100 && echo done"}}}
	_, err := Primary(asked, dir)
	f, ok := errors.AsType[*engine.Failure](err)
	if !ok {
		t.Fatal(err)
	}
	if f.Rule != "requests_failed" || f.Class != "invalid" ||
		f.Evidence != "90 of 100 requests succeeded (the command asks for them)" || !ByReading(f.Rule) {
		t.Errorf("%+v", f)
	}
}

// A metric block beside a format that gives metrics by itself adds one.
func TestAFormatAndAMetricOfOnesOwn(t *testing.T) {
	spec := hclspec.Metrics{Format: "vllm", Primary: "mine",
		Custom: []hclspec.Metric{{Name: "mine", Match: "mine=([0-9]+)"},
			{Name: "latency_p50", Match: "Avg.*: ([0-9.]+)"}}}
	dir := raw(t, "mine=3\nAvg latency: 1.5 seconds\n50% percentile latency: 1.4 seconds\n", "")
	r, err := Read(spec, hclspec.Command{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range r.Samples {
		got[s.Metric] = s.Printed + s.Unit
	}
	if len(got) != 3 || len(r.Samples) != 3 || got["mine"] != "3" || got["latency_avg"] != "1.5s" ||
		got["latency_p50"] != "1.5s" {
		t.Errorf("%v", got)
	}
}
