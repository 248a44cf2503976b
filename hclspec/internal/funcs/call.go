package funcs

import (
	"fmt"
	"math"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// callable returns a function for the table. Its parameters accept any value and convert it with Convert: HCL's own
// conversion of arguments takes a time that grows with the square of their length.
//
// A plain function accepts no references, since it would read or write their text: a reference stands for a path that
// is known only when the graph runs.
func callable(name string, f function.Function, plain bool) function.Function {
	var want []cty.Type
	target, conversion := conversions[name]
	open := func(p function.Parameter) function.Parameter {
		if conversion {
			p.Type = target
		}
		want = append(want, p.Type)
		return function.Parameter{
			Name: p.Name, Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true,
			AllowMarked: true,
		}
	}
	spec := &function.Spec{Type: function.StaticReturnType(cty.DynamicPseudoType)}
	for _, p := range f.Params() {
		spec.Params = append(spec.Params, open(p))
	}
	if p := f.VarParam(); p != nil {
		more := open(*p)
		spec.VarParam = &more
	}
	spec.Impl = func(given []cty.Value, _ cty.Type) (cty.Value, error) {
		args := make([]cty.Value, len(given))
		for i, arg := range given {
			converted, err := Convert(arg, want[min(i, len(want)-1)])
			switch {
			case err != nil && target.IsPrimitiveType():
				return f.Call(given) // its error says more
			case err != nil:
				return cty.NilVal, function.NewArgError(i, err)
			}
			if plain && Contains(converted) {
				return cty.NilVal, function.NewArgErrorf(i,
					"%s cannot take a reference: what stands for it is known only when the node has run", name)
			}
			args[i] = converted
		}
		if conversion && args[0].IsKnown() && !args[0].IsNull() {
			return args[0], nil
		}
		if err := checkAmount(name, args); err != nil {
			return cty.NilVal, err
		}
		return f.Call(args)
	}
	return function.New(spec)
}

// conversions lists the functions that only convert their argument. The conversion is costly and must not be done
// twice.
var conversions = map[string]cty.Type{
	"tobool": cty.Bool, "tonumber": cty.Number, "tostring": cty.String,
	"tolist": cty.List(cty.DynamicPseudoType), "toset": cty.Set(cty.DynamicPseudoType),
	"tomap": cty.Map(cty.DynamicPseudoType),
}

// Bounds on the result of one call. The functions in amounts can make a huge result in one step, which cannot be
// stopped.
const (
	maxElements = 1_000_000
	maxBytes    = 64 << 20
)

// checkAmount refuses a call whose result would be too large.
func checkAmount(name string, args []cty.Value) error {
	amount := amounts[name]
	if amount == nil {
		return nil
	}
	for _, arg := range args {
		if !arg.IsWhollyKnown() || arg.IsNull() {
			return nil
		}
	}
	elements, bytes := amount(args)
	switch {
	case elements > maxElements:
		return fmt.Errorf("the result would have %.0f elements; one call can make %d. Make fewer of them", elements,
			maxElements)
	case bytes > maxBytes:
		return fmt.Errorf("the result would have %.0f MiB of text; one call can make %d MiB", bytes/(1<<20),
			maxBytes>>20)
	}
	return nil
}

// amounts returns the number of elements and the bytes of text in the result of a call. The arguments are converted and
// known.
var amounts = map[string]func(args []cty.Value) (elements, bytes float64){
	"range": func(args []cty.Value) (float64, float64) {
		var limits []float64
		for _, arg := range args {
			limit, _ := arg.AsBigFloat().Float64()
			limits = append(limits, limit)
		}
		switch {
		case len(limits) == 1:
			return math.Abs(limits[0]), 0
		case len(limits) == 2:
			return math.Abs(limits[1] - limits[0]), 0
		case len(limits) == 3 && limits[2] != 0:
			return math.Abs((limits[1] - limits[0]) / limits[2]), 0
		}
		return 0, 0 // the function itself reports this mistake
	},
	"setproduct": func(args []cty.Value) (float64, float64) {
		total := 1.0
		for _, arg := range args {
			total *= float64(arg.LengthInt())
		}
		return total, 0
	},
	"join": func(args []cty.Value) (_, bytes float64) {
		for _, list := range args[1:] {
			bytes += textOf(list) + float64(list.LengthInt())*textOf(args[0])
		}
		return 0, bytes
	},
	"indent": func(args []cty.Value) (float64, float64) {
		spaces, _ := args[0].AsBigFloat().Float64()
		text := args[1].AsString()
		return 0, float64(len(text)) + spaces*float64(strings.Count(text, "\n"))
	},
	"replace": func(args []cty.Value) (float64, float64) {
		text, old := args[0].AsString(), args[1].AsString()
		return 0, float64(len(text)) + float64(strings.Count(text, old))*textOf(args[2])
	},
	"formatlist": func(args []cty.Value) (float64, float64) {
		lists, texts := 1, textOf(args[0])
		for _, arg := range args[1:] {
			if arg.CanIterateElements() {
				lists = max(lists, arg.LengthInt())
			} else {
				texts += textOf(arg)
			}
		}
		return 0, texts * float64(lists)
	},
}

// textOf returns the number of bytes in a text or in a list of texts.
func textOf(v cty.Value) (bytes float64) {
	switch {
	case v.IsNull() || !v.IsKnown():
	case v.Type() == cty.String:
		return float64(len(v.AsString()))
	case v.CanIterateElements():
		for _, part := range v.Elements() {
			bytes += textOf(part)
		}
	}
	return bytes
}
