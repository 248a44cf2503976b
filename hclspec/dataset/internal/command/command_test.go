package command

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchgraph/benchgraph/internal/sh"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		line string
		want Command
	}{
		{
			"python benchmarks/benchmark_serving.py --model m/x --backend vllm --dtype float16 --num-prompts 300 " +
				"--seed 0 --host localhost --port 8000",
			Command{Mode: "serving", Model: "m/x", Server: []string{"--dtype", "float16"},
				Client: []string{"--num-prompts", "300", "--seed", "0"}},
		},
		{
			"VLLM_USE_V1=1 A=b python3.11 -u /home/x/benchmark_latency.py --model 'm x' -tp 4 " +
				"--enable-chunked-prefill False --input-len 550",
			Command{
				Env: map[string]string{"VLLM_USE_V1": "1", "A": "b"}, Mode: "latency", Model: "m x", GPUs: 4,
				Server: []string{"-tp", "4", "--enable-chunked-prefill", "False"},
				Client: []string{"--input-len", "550"},
			},
		},
		{
			"vllm bench throughput --model=m --load-format=dummy --tensor_parallel_size 2 --pipeline-parallel-size " +
				"2 --output-len 100",
			Command{
				Mode: "throughput", Model: "m", GPUs: 4, Client: []string{"--output-len", "100"},
				Server: []string{"--load-format=dummy", "--tensor_parallel_size", "2", "--pipeline-parallel-size", "2"},
			},
		},
		{
			"vllm bench serve --dataset-name hf --dataset-path a/b --hf-split train --backend openai-chat --model m " +
				"--temperature -1",
			Command{Mode: "serving", Model: "m", Dataset: "hf", Client: []string{
				"--dataset-path", "a/b", "--hf-split", "train", "--backend", "openai-chat", "--temperature", "-1",
			}},
		},
		{
			"python benchmarks/benchmark_prefix_caching.py --dataset-path ./ShareGPT_V3.json \\\n  " +
				"--enable-prefix-caching",
			Command{Mode: "prefix_caching", Dataset: "sharegpt", Server: []string{"--enable-prefix-caching"}},
		},
		{
			"python3 -m sglang.bench_serving --backend sglang --num-prompt 480 --random-range-ratio 1.0",
			Command{Mode: "serving", Client: []string{"--num-prompt", "480", "--random-range-ratio", "1.0"}},
		},
		{
			"python3 -m sglang.launch_server --model-path m --disable-radix-cache --lora-paths a=b",
			Command{Mode: "server", Model: "m", Server: []string{"--disable-radix-cache", "--lora-paths", "a=b"}},
		},
		{"vllm serve m --dtype half", Command{Mode: "server", Model: "m", Server: []string{"--dtype", "half"}}},
		{"redis-benchmark -t set # as ever", Command{}},
		{"", Command{}},
		{"python", Command{}},
	} {
		got, err := Split(c.line)
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.line, diff)
		}
	}
	for _, line := range []string{"a; b", "a && b", "a | tee x", "a $(b)", "echo `b`", "a > b", `a "b`, "a\nb",
		`a "$HOME"`, "a <b", "a &", "(a)", "! a", "a *", "A+=1 b"} {
		if got, err := Split(line); err == nil {
			t.Errorf("%q was taken apart: %+v", line, got)
		}
	}
}

func TestJoinedWordsAreReadBack(t *testing.T) {
	words := []string{"--a", "[ngram]", "it's", "", "a b", `x"y`, "--json={\"k\": 1}", "$HOME", "new\nline"}
	got, ok := sh.Words(Join(words))
	if diff := cmp.Diff(words, got); !ok || diff != "" {
		t.Errorf("%s: %v (-want +got):\n%s", Join(words), ok, diff)
	}
}
