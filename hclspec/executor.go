package hclspec

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

// executorSchema is open: every executor has settings of its own.
func executorSchema() *eval.Schema {
	return &eval.Schema{Kind: "executor", Label: true, Open: true}
}

func decodeExecutor(r reader, b Block) {
	x := Executor{Block: b, Attributes: map[string]hcl.Range{}}
	settings := map[string]cty.Value{}
	for name := range r.Block.Attrs {
		if v := r.Evaluate(name); v.IsWhollyKnown() {
			settings[name] = v
			x.Attributes[name] = r.At(name)
		}
	}
	x.Settings = toJSON(cty.ObjectVal(settings))
	r.l.spec.Executors = append(r.l.spec.Executors, x)
}

// decodeCost reads what an hour of a device costs.
func (l *loader) decodeCost() {
	blocks := l.blocksOf("cost")
	for i, b := range blocks {
		r := l.constant(b)
		if i > 0 {
			r.Fail(b.Range, "Duplicate cost block", "There is a cost block already, at %s.", blocks[0].Range)
			continue
		}
		l.spec.GPUHour = map[string]float64{}
		for device, price := range r.Map("gpu_hour", cty.Number, "a map from device names to prices", "a number") {
			if price.IsNull() || price.LessThan(cty.Zero).True() {
				r.Fail(r.At("gpu_hour"), "Invalid price", "The price of %q must be a number that is not negative.",
					device)
				continue
			}
			l.spec.GPUHour[device], _ = price.AsBigFloat().Float64()
		}
	}
}
