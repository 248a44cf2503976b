package sample

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/hclspec"
)

// If a result file contradicts the table of the same run, there is no valid primary number.
func TestAFileAgainstTheTableOfItsRun(t *testing.T) {
	const table = `============ Serving Benchmark Result ============
Successful requests:                     24
Benchmark duration (s):                  1.00
Request throughput (req/s):              24.00
Output token throughput (tok/s):         576.21
Mean TTFT (ms):                          0.01
==================================================
`
	file := func(more map[string]any) string {
		d := map[string]any{"completed": 24, "num_prompts": 24,
			"duration": 0.9964, "request_throughput": 24.004,
			"output_throughput": 576.2101234, "mean_ttft_ms": 0.0149}
		for key, v := range more {
			d[key] = v
		}
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, tt := range map[string]struct{ stdout, file, want string }{
		"rounded":    {table, file(nil), ""},
		"rewritten":  {table, file(map[string]any{"output_throughput": 737.5}), "is 737.5 in result.txt, and 576.21"},
		"another":    {table, file(map[string]any{"mean_itl_ms": 3.0, "mean_ttft_ms": 3.0}), ""},
		"no table":   {"done\n", file(map[string]any{"output_throughput": 737.5}), ""},
		"two tables": {table + strings.ReplaceAll(table, "576.21", "600.00"), file(nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := &hclspec.Benchmark{Metrics: hclspec.Metrics{Format: "vllm", File: "result.txt",
				Primary: "output_token_throughput"}}
			_, err := Primary(b, raw(t, tt.stdout, tt.file))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
