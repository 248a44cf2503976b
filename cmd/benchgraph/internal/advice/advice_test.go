package advice

import (
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/hclspec"
)

func TestIsSecret(t *testing.T) {
	for text, want := range map[string]bool{
		"API_TOKEN=0123456789abcdef":          true,
		"HF_TOKEN=hf_abcdefghijklm":           true,
		"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI": true,
		"DB_PASSWORD=hunter2hunter2":          true,
		"OPENAI_API_KEY=EMPTY":                false,
		"OPENAI_API_KEY=dummy-key-for-vllm":   false,
		"OPENAI_API_KEY=":                     false,
		"HF_TOKEN=$HF_TOKEN":                  false,
		"HF_HUB_DISABLE_IMPLICIT_TOKEN=1":     false,
		"TOKENIZERS_PARALLELISM=falsefalse":   false,
		"MAX_TOKENS=100000000":                false,
		"PAD_TOKEN=<|endoftext|>":             false,
		"API_TOKEN=/run/secrets/token":        false,
		"PATH=/usr/bin:/bin":                  false,
		"SSH_PUBLIC_KEY=ssh-ed25519AAAA":      false,
		"CACHE_KEY=0123456789abcdef":          false,
	} {
		name, value, _ := strings.Cut(text, "=")
		if got := isSecret(name, value); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

func TestDirection(t *testing.T) {
	for _, tt := range []struct {
		name, unit, better string
		want               bool // a warning
	}{
		{"time", "ms", "higher", true},
		{"time", "ms", "lower", false},
		{"ttft_p99", "", "higher", true},
		{"rate", "tok/s", "lower", true},
		{"rate", "tok/s", "higher", false},
		{"rate", "tok/s", "", false},
		{"requests", "req/s", "lower", true},
		{"errors", "1/s", "lower", false},
		{"rate", "errors/s", "lower", false},
		{"cost", "J/tok", "lower", false},
		{"perplexity_score", "", "lower", false},
		{"cache_hits", "", "lower", false},
		{"alloc", "B/op", "higher", true},
	} {
		spec := &hclspec.Spec{Benchmarks: []hclspec.Benchmark{{Metrics: hclspec.Metrics{
			Custom: []hclspec.Metric{{Name: tt.name, Unit: tt.unit, Better: tt.better}}}}}}
		if got := Of(spec, nil, false); (len(got) > 0) != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

func TestUnjudged(t *testing.T) {
	block := func(name string) hclspec.Block {
		return hclspec.Block{Address: hclspec.Address{Kind: "benchmark", Name: name}, Candidate: "c/one"}
	}
	spec := &hclspec.Spec{Benchmarks: []hclspec.Benchmark{{Block: block("a")}, {Block: block("b")},
		{Block: block("b")}}}
	if got := Of(spec, nil, false); len(got) > 0 {
		t.Error(got)
	}
	spec.Compares = []hclspec.Compare{{Of: []hclspec.Address{block("a").Address}}}
	if got := Of(spec, nil, false); len(got) != 1 || !strings.Contains(got[0].Detail, "of = [benchmark.b]") {
		t.Error(got)
	}
}
