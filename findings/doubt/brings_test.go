package doubt

import (
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/hclspec"
)

func TestFilesThatTheMeasuredCommandRuns(t *testing.T) {
	data := []hclspec.Data{{Name: "app", Ref: hclspec.Address{Kind: "source", Name: "app"}}}
	for _, c := range []struct {
		command, changed, want string
		client                 bool // the commands run in a tree that is no candidate's
	}{
		{command: "cd app && python3 -m bench.latency", changed: "src/bench/latency.py", want: "src/bench/latency.py"},
		{command: "python3 -m bench.latency --n 3", changed: "bench/latency/__main__.py",
			want: "bench/latency/__main__.py"},
		{command: "python3 -m bench.latency", changed: "bench/latency.pyi mybench/latency.py core/latency.py"},
		{command: "python3 -m bench.latency", changed: "bench/latency.py", client: true},
		{command: "cd app && go test -bench=. ./cache", changed: "cache/lru.go cache/lru_test.go api/api_test.go",
			want: "cache/lru_test.go"},
		{command: "go test -bench=. ./api/...", changed: "api/v1/a_test.go lru/lru_test.go", want: "api/v1/a_test.go"},
		{command: "test -e go.mod && go run .", changed: "cache/lru_test.go"},
		{command: "python3 -m pytest app/tests/speed.py", changed: "tests/conftest.py tests/speed.py tests/other.py",
			want: "tests/conftest.py tests/speed.py"},
		{command: "make -C app bench", changed: "Makefile lib.c", want: "Makefile"},
		{command: "make bench", changed: "app/Makefile", client: true},
		{command: "python3 app/bench/run.py", changed: "bench/run.py", client: true, want: "bench/run.py"},
	} {
		b := &hclspec.Benchmark{Work: hclspec.Work{Command: hclspec.Command{Shell: hclspec.Text{{Literal: c.command}}}},
			Data: data}
		if c.client {
			b.Client = hclspec.Address{Kind: "source", Name: "client"}
		}
		got := Brings(b, strings.Fields(c.changed), func(a hclspec.Address) bool { return a.Name == "app" })
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s runs %v of %s, want %q", c.command, got, c.changed, c.want)
		}
	}
}
