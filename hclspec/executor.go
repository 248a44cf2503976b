package hclspec

import (
	"strings"

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

// executor reads the name of the executor whose machine measures, or Local.
func (r reader) executor() string {
	v, ok := r.Value("executor")
	if !ok {
		return ""
	}
	if v.Type() == cty.String && !v.IsNull() {
		if a, _ := onlyToken(v.AsString()); a.Kind == "executor" {
			return r.ref("executor", "executor").Name
		}
		if v.AsString() == Local {
			return Local
		}
	}
	r.Fail(r.At("executor"), "Not an executor", "It must be a reference such as executor.TYPE.NAME, or %q for the "+
		"machine of the project, not %s.", Local, eval.Describe(v))
	return ""
}

// executorsOf returns the value of executor.TYPE: the executor without a name, or those of the type by their names.
func (l *loader) executorsOf(second string) (cty.Value, bool) {
	if d, ok := l.byName[Address{Kind: "executor", Name: second}]; ok {
		return l.referenceTo(d), true
	}
	named := map[string]cty.Value{}
	for _, d := range l.of("executor") {
		if name, ok := strings.CutPrefix(d.Name, second+"-"); ok {
			named[name] = l.referenceTo(d)
		}
	}
	return cty.ObjectVal(named), len(named) > 0
}

// allExecutors returns the value of executor: an object of the values of executor.TYPE, by type.
func (l *loader) allExecutors() cty.Value {
	all := map[string]cty.Value{}
	for _, d := range l.of("executor") {
		kind, _, _ := strings.Cut(d.Name, "-")
		all[kind], _ = l.executorsOf(kind)
	}
	return cty.ObjectVal(all)
}

// executorNames returns the names of executors as references write them behind "executor.".
func (l *loader) executorNames() (all []string) {
	for _, d := range l.of("executor") {
		all = append(all, strings.Replace(d.Name, "-", ".", 1))
	}
	return all
}

// Choices returns a sentence, with a space before it, that suggests the nearest of the known names, or lists them.
func Choices(given string, known []string) string { return diag.Choices(given, known) }

// decodeCost reads the price of an hour of each device.
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
