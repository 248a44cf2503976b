package funcs

import (
	"errors"
	"maps"
	"math/big"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// small is the number of elements, at any depth, up to which cty's own conversions are used. They compare the types of
// all elements of a tuple with each other, which takes ten seconds for 40,000 texts.
const small = 64

// Convert is convert.Convert, but its time grows only with the size of v.
func Convert(v cty.Value, want cty.Type) (cty.Value, error) {
	ty := v.Type()
	if want == cty.DynamicPseudoType {
		return v, nil
	}
	if v.Type().Equals(want) {
		return v, nil
	}
	if whole, ok := wholeNumber(v, want); ok {
		return whole, nil
	}
	few := !v.IsKnown() || v.IsNull() || extent(v, small) <= small
	if want.IsObjectType() && ty.IsObjectType() && !few {
		var err error
		if v, err = attributes(v, want); err != nil {
			return cty.NilVal, err
		}
	}
	if !want.IsCollectionType() || !(ty.IsTupleType() || ty.IsObjectType()) || !v.IsKnown() || v.IsNull() ||
		ty.IsObjectType() != want.IsMapType() ||
		few && !(uniform(ty, want) && v.LengthInt() > 0) {
		return convert.Convert(v, want)
	}
	element := want.ElementType()
	if element.HasDynamicTypes() {
		if element != cty.DynamicPseudoType {
			// Each element determines the types for "any" in itself.
			parts, keyed, err := elements(v, element)
			if err != nil {
				return cty.NilVal, err
			}
			if v = cty.TupleVal(parts); ty.IsObjectType() {
				v = cty.ObjectVal(keyed)
			}
		}
		var err error
		if element, err = unified(v); err != nil {
			return cty.NilVal, err
		}
	}
	parts, keyed, err := elements(v, element)
	switch {
	case err != nil:
		return cty.NilVal, err
	case want.IsMapType():
		return cty.MapVal(keyed), nil
	case want.IsListType():
		return cty.ListVal(parts), nil
	}
	return cty.SetVal(parts), nil
}

// wholeNumber converts a whole number to a text, or back: cty's conversions go through all digits of a binary fraction.
// ok is false for all other values.
func wholeNumber(v cty.Value, want cty.Type) (converted cty.Value, ok bool) {
	switch ty := v.Type(); {
	case !v.IsKnown() || v.IsNull() || v.IsMarked():
	case ty == cty.Number && want == cty.String:
		n, accuracy := v.AsBigFloat().Int64()
		return cty.StringVal(strconv.FormatInt(n, 10)), accuracy == big.Exact && n != 0 // there is a negative zero
	case ty == cty.String && want == cty.Number && len(v.AsString()) < 20: // an error would copy a long text
		n, err := strconv.ParseUint(v.AsString(), 10, 64)
		return cty.NumberVal(new(big.Float).SetPrec(precision).SetUint64(n)), err == nil
	}
	return cty.NilVal, false
}

// precision is that of all numbers that cty reads from a text, in bits.
const precision = 512

// elements converts the elements of a tuple or an object; keyed holds those of an object by name.
func elements(v cty.Value, want cty.Type) (parts []cty.Value, keyed map[string]cty.Value, err error) {
	parts, keyed = make([]cty.Value, 0, v.LengthInt()), map[string]cty.Value{}
	for key, part := range v.Elements() {
		converted, err := Convert(part, want)
		if err != nil {
			return nil, nil, err
		}
		if parts = append(parts, converted); v.Type().IsObjectType() {
			keyed[key.AsString()] = converted
		}
	}
	return parts, keyed, nil
}

// attributes converts the attributes of an object that the wanted type has, too.
func attributes(v cty.Value, want cty.Type) (cty.Value, error) {
	all := v.AsValueMap()
	for name, ty := range want.AttributeTypes() {
		if part, ok := all[name]; ok {
			converted, err := Convert(part, ty)
			if err != nil {
				return cty.NilVal, err
			}
			all[name] = converted
		}
	}
	return cty.ObjectVal(all), nil
}

// extent returns the number of elements in v at any depth, or some number above enough.
func extent(v cty.Value, enough int) int {
	if ty := v.Type(); !v.IsKnown() || v.IsNull() || ty.IsPrimitiveType() || !v.CanIterateElements() {
		return 0
	} else if n := v.LengthInt(); n > enough || ty.IsCollectionType() {
		return n // the elements of a list already have one type
	}
	n := 0
	for _, part := range v.Elements() {
		if n += 1 + extent(part, enough-n); n > enough {
			break
		}
	}
	return n
}

// uniform reports whether all elements of a tuple or an object have the wanted type, so that the conversion only
// collects them.
func uniform(ty, want cty.Type) bool {
	var parts []cty.Type
	if ty.IsObjectType() {
		parts = slices.Collect(maps.Values(ty.AttributeTypes()))
	} else {
		parts = ty.TupleElementTypes()
	}
	element := want.ElementType()
	return element.IsPrimitiveType() &&
		!slices.ContainsFunc(parts, func(part cty.Type) bool { return part != element })
}

// unified returns the type into which all elements of a tuple or an object can be converted.
func unified(v cty.Value) (cty.Type, error) {
	var distinct []cty.Type
	last := 0
elements:
	for _, part := range v.Elements() {
		ty := part.Type()
		if len(distinct) > 0 && distinct[last].Equals(ty) {
			continue
		}
		for i, known := range distinct {
			if known.Equals(ty) {
				last = i
				continue elements
			}
		}
		last = len(distinct)
		distinct = append(distinct, ty)
	}
	if len(distinct) == 1 {
		return distinct[0], nil
	}
	ty, _ := convert.UnifyUnsafe(distinct)
	if ty == cty.NilType || ty.HasDynamicTypes() {
		return ty, errors.New("all elements must have the same type")
	}
	return ty, nil
}
