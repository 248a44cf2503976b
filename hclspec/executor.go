package hclspec

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

// executorSchema is open: every executor has settings of its own.
func executorSchema() *eval.Schema {
	return &eval.Schema{Kind: "executor", Label: true, Open: true}
}

func decodeExecutor(r reader, b Block) {
	x := Executor{Block: b, Machine: r.ref("machine", "machine").Name, Attributes: map[string]hcl.Range{}}
	settings := map[string]cty.Value{}
	for name := range r.Block.Attrs {
		v := r.Evaluate(name)
		if !v.IsNull() {
			x.Attributes[name] = r.At(name)
		}
		if name != "machine" && v.IsWhollyKnown() {
			settings[name] = v
		}
	}
	x.Settings = toJSON(cty.ObjectVal(settings))
	r.l.spec.Executors = append(r.l.spec.Executors, x)
}

// Choices returns a sentence, with a space before it, that suggests the nearest of the known names, or lists them.
func Choices(given string, known []string) string { return diag.Choices(given, known) }

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
				r.Fail(r.At("gpu_hour"), "Invalid price", "The price of %q must be at least 0.", device)
				continue
			}
			l.spec.GPUHour[device], _ = price.AsBigFloat().Float64()
		}
	}
}
