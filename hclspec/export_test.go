package hclspec

import (
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
)

// soon are the bounds of tests, which reach them in many evaluations.
func soon() eval.Bounds { return within(time.Second) }

func within(processor time.Duration) eval.Bounds {
	return eval.Bounds{Processor: processor, Memory: 160 << 20}
}

// LoadSoon is Load within the bounds of tests.
func LoadSoon(o Options) (*Spec, map[string]*hcl.File, hcl.Diagnostics) { return load(o, soon()) }

// LoadWithin is LoadSoon with a bound of processor time.
func LoadWithin(processor time.Duration, o Options) (*Spec, map[string]*hcl.File, hcl.Diagnostics) {
	return load(o, within(processor))
}

// ParseWithin is lockfile.Parse within the bounds of tests, with a bound of processor time.
func ParseWithin(processor time.Duration, src []byte, filename string) (*lockfile.Lock, hcl.Diagnostics) {
	return lockfile.ParseWithin(within(processor), src, filename)
}

// EvalSoon is Eval within the bounds of tests.
func EvalSoon(o Options, expr string) (string, map[string]*hcl.File, hcl.Diagnostics) {
	return evaluate(o, expr, soon())
}
