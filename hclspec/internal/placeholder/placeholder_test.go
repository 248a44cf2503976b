package placeholder_test

import (
	"testing"

	"github.com/benchgraph/benchgraph/hclspec/internal/placeholder"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func TestFind(t *testing.T) {
	for command, want := range map[string]string{
		"python bench.py --model MODEL --num-prompts 100": "MODEL",
		"python bench.py --model=MODEL":                   "--model=MODEL",
		"python bench.py --model 'MODEL'":                 "MODEL",
		"bench --batch-size BS":                           "BS",
		"bench --input-len INPUT_LEN --output-len 128":    "INPUT_LEN",
		"bench --model <model>":                           "<model>",
		"bench --model <model name>":                      "<model name>",
		"bench --dtype=<dtype>":                           "--dtype=<dtype>",
		"bench --x 1 [--enable-prefix-caching]":           "[--enable-prefix-caching]",
		"bench --x 1 [--tp SIZE] y":                       "[--tp SIZE]",
		"cd bench && python x.py MODEL":                   "MODEL",
		"bench \\\n  --model MODEL \\\n  --x":             "MODEL",
		"bench --tensor-parallel-size {TP}":               "{TP}",

		"redis-benchmark -t SET,GET -n 100000":      "",
		"redis-cli PING":                            "",
		"LC_ALL=C MODEL=llama bench --model $MODEL": "",
		"bench --model \"$MODEL\" --port ${PORT}":   "",
		"export MODEL":                              "",
		"grep MODEL config.ini":                     "",
		"echo MODEL":                                "",
		"iconv -f UTF-8 -t C":                       "",
		"cat < input > output":                      "",
		"cat <in >out":                              "",
		"if [ -f x ]; then bench; fi":               "",
		"[ -n \"$X\" ] && bench":                    "",
		"python -c 'print(\"MODEL is x\")'":         "",
		"curl -X POST http://localhost:$PORT/v1":    "",
		"awk '{ print $1 }' <<EOF\nMODEL_LIST\nEOF": "",
		"bench --json '{\"MODEL\": 1}'":             "",
		"test ! -e HEAD && [ --help ]":              "",
	} {
		if got := placeholder.Find(placeholder.Words(command)); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add("bench --model MODEL [--opt VALUE] '<x>' \"")
	f.Fuzz(func(t *testing.T, command string) {
		fuzzing.Frugal(t, len(command), func() { placeholder.Find(placeholder.Words(command)) })
	})
}
