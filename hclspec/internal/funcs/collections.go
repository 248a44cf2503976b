package funcs

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

var anything = function.Parameter{Name: "value", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true}

var allTrue = quantifier(func(yes, no int) bool { return no == 0 })

var anyTrue = quantifier(func(yes, no int) bool { return yes > 0 })

func quantifier(holds func(yes, no int) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() {
				return cty.UnknownVal(cty.Bool), nil
			}
			yes, no := 0, 0
			for _, v := range args[0].Elements() {
				if !v.IsNull() && v.True() {
					yes++
				} else {
					no++
				}
			}
			return cty.BoolVal(holds(yes, no)), nil
		},
	})
}

// coalesce skips empty strings as well as nulls, as Terraform's does.
var coalesce = function.New(&function.Spec{
	VarParam: &function.Parameter{Name: "values", Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true,
		AllowDynamicType: true},
	Type: func(args []cty.Value) (cty.Type, error) {
		var types []cty.Type
		for _, arg := range args {
			// A bare null has no type, and does not decide the type.
			if arg.Type() != cty.DynamicPseudoType || !arg.IsKnown() {
				types = append(types, arg.Type())
			}
		}
		unified, _ := convert.UnifyUnsafe(types)
		if unified == cty.NilType {
			return cty.NilType, errors.New("all arguments must have the same type")
		}
		return unified, nil
	},
	Impl: func(args []cty.Value, want cty.Type) (cty.Value, error) {
		for _, arg := range args {
			if !arg.IsKnown() {
				return cty.UnknownVal(want), nil
			}
			if arg.IsNull() || arg.Type() == cty.String && arg.AsString() == "" {
				continue
			}
			return convert.Convert(arg, want)
		}
		return cty.NilVal, errors.New("every argument is null or empty")
	},
})

// distinct is the standard function, but without quadratic time for strings and numbers.
var distinct = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.List(cty.DynamicPseudoType)}},
	Type:   func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if element := args[0].Type().ElementType(); element != cty.String && element != cty.Number ||
			!args[0].IsWhollyKnown() {
			return stdlib.Distinct(args[0])
		}
		seen := map[any]bool{}
		var kept []cty.Value
		for _, v := range args[0].Elements() {
			var same any = v
			if v.Type() == cty.Number && !v.IsNull() {
				same = v.AsBigFloat().Text('f', -1) // to cty, numbers with the same digits are equal
			}
			if !seen[same] {
				seen[same] = true
				kept = append(kept, v)
			}
		}
		if kept == nil {
			return args[0], nil
		}
		return cty.ListVal(kept), nil
	},
})

// index returns the position of a value in a list, as in Terraform; the standard function of that name is the [ ]
// operator.
var index = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}, anything},
	Type: func(args []cty.Value) (cty.Type, error) {
		if ty := args[0].Type(); ty != cty.DynamicPseudoType && !ty.IsListType() && !ty.IsTupleType() {
			return cty.NilType, function.NewArgErrorf(0, "a list is required")
		}
		return cty.Number, nil
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		for i, v := range args[0].AsValueSlice() {
			equal, err := stdlib.Equal(v, args[1])
			if err != nil {
				return cty.NilVal, err
			}
			if !equal.IsKnown() {
				return cty.UnknownVal(cty.Number), nil
			}
			if equal.True() {
				return cty.NumberIntVal(int64(i)), nil
			}
		}
		return cty.NilVal, errors.New("the list has no such item")
	},
})

// length also counts the characters of a string.
var length = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowMarked: true}},
	Type: func(args []cty.Value) (cty.Type, error) {
		ty := args[0].Type()
		if ty == cty.String || ty == cty.DynamicPseudoType || ty.IsCollectionType() || ty.IsTupleType() ||
			ty.IsObjectType() {
			return cty.Number, nil
		}
		return cty.NilType, function.NewArgErrorf(0, "a list, map, object, set or string is required")
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		switch {
		case args[0].Type() == cty.String && Contains(args[0]):
			return cty.NilVal, function.NewArgErrorf(0, "a reference has no length")
		case args[0].Type() == cty.String:
			return stdlib.Strlen(args[0])
		case args[0].Type().IsObjectType():
			return cty.NumberIntVal(int64(len(args[0].Type().AttributeTypes()))), nil
		}
		return args[0].Length(), nil
	},
})

// lookup requires no default, as in Terraform; without a default a missing key is an error. Its parameters allow marks,
// which no value here has, so that cty does not search every part of a large map for marks in each call. The same holds
// for other functions below.
var lookup = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "map", Type: cty.DynamicPseudoType, AllowMarked: true},
		{Name: "key", Type: cty.String}},
	VarParam: &function.Parameter{Name: "default", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true,
		AllowMarked: true},
	Type: func(args []cty.Value) (cty.Type, error) {
		if len(args) > 3 {
			return cty.NilType, errors.New("lookup takes two or three arguments")
		}
		ty := args[0].Type()
		if ty != cty.DynamicPseudoType && !ty.IsMapType() && !ty.IsObjectType() {
			return cty.NilType, function.NewArgErrorf(0, "a map or an object is required")
		}
		return cty.DynamicPseudoType, nil
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		key := args[1].AsString()
		switch ty := args[0].Type(); {
		case ty.IsObjectType() && ty.HasAttribute(key):
			return args[0].GetAttr(key), nil
		case ty.IsMapType() && args[0].HasIndex(args[1]).True():
			return args[0].Index(args[1]), nil
		case len(args) == 3:
			return args[2], nil
		}
		return cty.NilVal, fmt.Errorf("there is no key %q, and no default is given", key)
	},
})

// matchKeys returns the values whose counterparts in keys are among the searched keys, as in Terraform.
var matchKeys = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "values", Type: cty.List(cty.DynamicPseudoType)}, {Name: "keys", Type: cty.List(cty.DynamicPseudoType)},
		{Name: "searched", Type: cty.List(cty.DynamicPseudoType)},
	},
	Type: func(args []cty.Value) (cty.Type, error) {
		if ty, _ := convert.UnifyUnsafe([]cty.Type{args[1].Type(), args[2].Type()}); ty == cty.NilType {
			return cty.NilType, errors.New("the keys and those searched for must be of one type")
		}
		return args[0].Type(), nil
	},
	Impl: func(args []cty.Value, want cty.Type) (cty.Value, error) {
		if !args[1].IsWhollyKnown() || !args[2].IsWhollyKnown() {
			return cty.UnknownVal(want), nil
		}
		unified, _ := convert.UnifyUnsafe([]cty.Type{args[1].Type(), args[2].Type()})
		left, err := convert.Convert(args[1], unified)
		if err != nil {
			return cty.NilVal, function.NewArgError(1, err)
		}
		right, err := convert.Convert(args[2], unified)
		if err != nil {
			return cty.NilVal, function.NewArgError(2, err)
		}
		values, keys := args[0].AsValueSlice(), left.AsValueSlice()
		if len(values) != len(keys) {
			return cty.NilVal, function.NewArgErrorf(1, "there are %d keys for %d values", len(keys), len(values))
		}
		var kept []cty.Value
		for i, key := range keys {
			for _, searched := range right.Elements() {
				equal, err := stdlib.Equal(key, searched)
				if err != nil {
					return cty.NilVal, err
				}
				if equal.True() {
					kept = append(kept, values[i])
					break
				}
			}
		}
		if kept == nil {
			return cty.ListValEmpty(want.ElementType()), nil
		}
		return cty.ListVal(kept), nil
	},
})

var one = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType, AllowMarked: true}},
	Type: func(args []cty.Value) (cty.Type, error) {
		ty := args[0].Type()
		switch {
		case ty == cty.DynamicPseudoType, ty.IsTupleType():
			return cty.DynamicPseudoType, nil
		case ty.IsListType(), ty.IsSetType():
			return ty.ElementType(), nil
		}
		return cty.NilType, function.NewArgErrorf(0, "a list or a set is required")
	},
	Impl: func(args []cty.Value, want cty.Type) (cty.Value, error) {
		switch n := args[0].LengthInt(); n {
		case 0:
			return cty.NullVal(want), nil
		case 1:
			return args[0].AsValueSlice()[0], nil
		default:
			return cty.NilVal, function.NewArgErrorf(0, "it has %d elements; one or none is expected", n)
		}
	},
})

// sequence is range without the standard limit of 1024 elements; amounts has a higher limit.
var sequence = function.New(&function.Spec{
	VarParam: &function.Parameter{Name: "limits", Type: cty.Number},
	Type:     function.StaticReturnType(cty.List(cty.Number)),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		start, step := cty.Zero, cty.NumberIntVal(1)
		var end cty.Value
		switch len(args) {
		case 1:
			end = args[0]
		case 2:
			start, end = args[0], args[1]
		case 3:
			start, end, step = args[0], args[1], args[2]
		default:
			return cty.NilVal, errors.New("range takes one, two or three numbers")
		}
		down := end.LessThan(start).True()
		if len(args) < 3 && down {
			step = cty.NumberIntVal(-1)
		}
		if step.AsBigFloat().Sign() == 0 {
			return cty.NilVal, function.NewArgErrorf(2, "the step must not be zero")
		}
		if down != (step.AsBigFloat().Sign() < 0) && !end.RawEquals(start) {
			return cty.NilVal, function.NewArgErrorf(2, "the step leads away from the end")
		}
		var out []cty.Value
		for v := start; down && v.GreaterThan(end).True() || !down && v.LessThan(end).True(); v = v.Add(step) {
			out = append(out, compact(v))
		}
		if out == nil {
			return cty.ListValEmpty(cty.Number), nil
		}
		return cty.ListVal(out), nil
	},
})

// compact returns a computed number in the memory of a written one, which for whole numbers is a third.
func compact(v cty.Value) cty.Value {
	f := v.AsBigFloat()
	if i, accuracy := f.Int64(); accuracy == big.Exact {
		return cty.NumberVal(new(big.Float).SetPrec(f.Prec()).SetInt64(i))
	}
	return v
}

var sum = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Number)}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		total := new(big.Float).SetPrec(512)
		for _, v := range args[0].Elements() {
			if v.IsNull() || !v.IsKnown() {
				return cty.NilVal, function.NewArgErrorf(0, "a list of numbers is required")
			}
			total.Add(total, v.AsBigFloat())
		}
		return cty.NumberVal(total), nil
	},
})

var transpose = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "map", Type: cty.Map(cty.List(cty.String))}},
	Type:   function.StaticReturnType(cty.Map(cty.List(cty.String))),
	Impl: func(args []cty.Value, want cty.Type) (cty.Value, error) {
		if !args[0].IsWhollyKnown() {
			return cty.UnknownVal(want), nil
		}
		turned := map[string][]cty.Value{}
		for key, list := range args[0].Elements() {
			for _, v := range list.Elements() {
				if v.IsNull() {
					return cty.NilVal, function.NewArgErrorf(0, "a list holds null")
				}
				turned[v.AsString()] = append(turned[v.AsString()], key)
			}
		}
		if len(turned) == 0 {
			return cty.MapValEmpty(cty.List(cty.String)), nil
		}
		out := map[string]cty.Value{}
		for key, list := range turned {
			out[key] = cty.ListVal(list)
		}
		return cty.MapVal(out), nil
	},
})
