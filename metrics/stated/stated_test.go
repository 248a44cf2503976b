package stated

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func TestWhatAnOutputStates(t *testing.T) {
	for name, tt := range map[string]struct {
		text     string
		counts   map[string]float64
		settings map[string]string
	}{
		"nothing": {"rate: 100 tok/s\nmodel: loaded in 3.2 s\nconcurrency: 9.87\nrequests: 9.87 req/s\nbackend: " +
			"triton\n", nil, nil},
		"a table": {"Traffic request rate: 10.50\nBurstiness factor: 1.0 (Poisson process)\nMaximum request " +
			"concurrency: None\n" +
			"============ Serving Benchmark Result ============\nBackend:                                 " +
			"sglang\nSuccessful requests:                     100\n" +
			"Benchmark duration (s):                  12.50\nTotal input tokens:                      1,000\n" +
			"Total generated tokens:                  2000\n==================================================\n",
			map[string]float64{"successful_requests": 100, "benchmark_duration": 12.5, "total_input_tokens": 1000,
				"total_output_tokens": 2000},
			map[string]string{"request_rate": "10.5", "burstiness": "1", "backend": "sglang"}},
		"marks before the lines": {"(Worker pid=12) Failed requests: 7\n2026-01-02T03:04:05Z Successful requests: " +
			"93 (93.0%)\n",
			map[string]float64{"failed_requests": 7, "successful_requests": 93}, nil},
		"the last count": {"Successful requests: 10\nSuccessful requests: 100\n",
			map[string]float64{"successful_requests": 100}, nil},
		"arguments": {"Namespace(backend='vllm', host='127.0.0.1', port=9009, model='org/a, b', tokenizer=None, " +
			"request_rate=inf, seed=0, num_prompts=1000)\n", nil,
			map[string]string{"backend": "vllm", "model_id": "org/a, b", "request_rate": "inf", "num_prompts": "1000"}},
		"a result file": {`{"model_id": "m", "backend": "vllm", "num_prompts": 100, "request_rate": Infinity, ` +
			`"max_concurrency": null, "duration": 9.5, "completed": 99}` + "\n",
			map[string]float64{"successful_requests": 99, "benchmark_duration": 9.5},
			map[string]string{"model_id": "m", "backend": "vllm", "num_prompts": "100", "request_rate": "inf"}},
		"several results": {`{"dataset_name": "r", "completed": 5, "request_rate": 2}` + "\n" +
			`{"dataset_name": "r", "completed": 6, "request_rate": 1.0}` + "\n",
			map[string]float64{"successful_requests": 6}, map[string]string{"dataset_name": "r",
				"request_rate": "1; 2"}},
		"a document of an unknown program": {`{"model": "m", "backend": "triton", "temperature": 40, ` +
			`"request_rate": 9.87, "summary": {"failed": 3}}`,
			map[string]float64{"failed_requests": 3}, map[string]string{"model_id": "m"}},
		"aiperf": {`{"input_config": {"endpoint": {"model_names": ["m"], "url": "u"}, "loadgen": {"concurrency": 4, ` +
			`"request_count": 50}}}`, nil,
			map[string]string{"model_id": "m", "max_concurrency": "4", "requests": "50"}},
		"go": {"goos: linux\ngoarch: amd64\nBenchmarkA-8 \t 100\t 12 ns/op\nBenchmarkB/n-8 \t 100\t 12 ns/op\n", nil,
			map[string]string{"goos": "linux", "goarch": "amd64", "gomaxprocs": "8"}},
		"go with several numbers of processors": {"BenchmarkA 100 12 ns/op\nBenchmarkA-2 100 12 ns/op\n", nil, nil},
		"redis": {"====== SET ======\n  100000 requests completed in 1.10 seconds\n  50 parallel clients\n  3 bytes " +
			"payload\n  100000 requests completed in 0.90 seconds\n",
			map[string]float64{"benchmark_duration": 2}, map[string]string{"requests": "100000",
				"parallel_clients": "50", "bytes_payload": "3"}},
		"an engine's log": {"INFO Avg prompt throughput: 1.0 tokens/s, requests: 4\n", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(strings.NewReader(tt.text))
			if err != nil || !maps.Equal(got.Counts, tt.counts) || !maps.Equal(got.Settings, tt.settings) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// The outputs of one run make one statement: the counts of the first output, and the settings of all.
func TestOutputsOfOneRunAreMerged(t *testing.T) {
	s := Statement{Counts: map[string]float64{"failed_requests": 1},
		Settings: map[string]string{"request_rate": "1; 4"}}
	s.Merge(Statement{Counts: map[string]float64{"failed_requests": 2, "successful_requests": 3},
		Settings: map[string]string{"request_rate": "2; 4", "model_id": "m"}})
	if !maps.Equal(s.Counts, map[string]float64{"failed_requests": 1, "successful_requests": 3}) ||
		!maps.Equal(s.Settings, map[string]string{"request_rate": "1; 2; 4", "model_id": "m"}) {
		t.Errorf("%v", s)
	}
}

func FuzzRead(f *testing.F) {
	inputs, _ := filepath.Glob("../formats/testdata/*/*.[tj]*")
	for _, input := range inputs {
		f.Add(head(f, input))
	}
	f.Add([]byte("Namespace(model='m', request_rate=inf)\nrequests: 1e999\n" +
		"{\"model\": [[\"a; b\"]], \"completed\": NaN}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzzing.Frugal(t, len(b), func() {
			s, err := Read(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range s.Settings {
				if value == "" || len(value) > (maxSetting+2)*maxSettings {
					t.Errorf("%s: %q", name, value)
				}
			}
		})
	})
}

// head returns the first part of a captured output.
func head(f *testing.F, path string) []byte {
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	return b[:min(len(b), 2<<10)]
}
