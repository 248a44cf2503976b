package formats

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/metrics/custom"
	"github.com/benchgraph/benchgraph/metrics/gobench"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/redis"
)

// Hostile outputs: the cost of each must grow with its length only, whatever is repeated.
func BenchmarkHostile(b *testing.B) {
	own, err := custom.New([]custom.Definition{{Name: "n", Match: `(\w+ )*speed: (\S+)`}, {Name: "p", JSON: "a.b.c"}})
	if err != nil {
		b.Fatal(err)
	}
	rules := []classify.Rule{rule("r", `(?i)(a+)+ error`), rule("any", `x.*y.*z`)}
	readers := map[string]func(io.Reader) error{
		"classify": func(r io.Reader) error { _, _, err := classify.Log(rules, "", r); return err },
		"last":     func(r io.Reader) error { lines.Last(r); return nil },
	}
	for name, p := range map[string]metrics.Parser{"auto": auto{}, "gobench": gobench.Parser{}, "redis": redis.Parser{},
		"json": jsonLeaves{}, "own": own} {
		readers[name] = func(r io.Reader) error { _, err := p.Parse(metrics.Output{Stdout: r}); return err }
	}
	for repeated, unit := range map[string]string{
		"brackets": "[\n", "objects": "{\"a\":\n", "array": "[1,\n", "titles": "\x1b]", "colours": "\x1b[31m",
		"returns": "a\r", "empty": "\n",
		"labels": "a: 1 b=2 ", "benchmark": "BenchmarkX 1 2 ns/op\n", "words": "x y ", "deep": "[[[[",
		"quotes": "{\"\\", "stamps": "2026-11-21T00:44:00Z ",
	} {
		for name, read := range readers {
			for _, kib := range []int{64, 1024} {
				text := strings.Repeat(unit, kib<<10/len(unit)) + "x"
				b.Run(fmt.Sprintf("%s/%s/%dKiB", name, repeated, kib), func(b *testing.B) {
					b.SetBytes(int64(len(text)))
					for b.Loop() {
						if err := read(strings.NewReader(text)); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
