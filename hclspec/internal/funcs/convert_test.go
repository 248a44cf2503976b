package funcs_test

import (
	"fmt"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
)

// anyValue draws values up to the given depth, of the kinds that expressions make.
func anyValue(depth int) *rapid.Generator[cty.Value] {
	leaf := rapid.OneOf(
		rapid.Map(rapid.StringMatching(`[a-c0-9]{0,3}`), cty.StringVal),
		rapid.Map(rapid.Int64Range(-2, 2), cty.NumberIntVal),
		rapid.Map(rapid.Bool(), cty.BoolVal),
		rapid.Just(cty.NullVal(cty.String)), rapid.Just(cty.NullVal(cty.DynamicPseudoType)),
	)
	if depth == 0 {
		return leaf
	}
	part := anyValue(depth - 1)
	return rapid.OneOf(
		leaf,
		rapid.Map(rapid.SliceOfN(part, 0, 80), cty.TupleVal),
		rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}`), part, 0, 80), cty.ObjectVal),
		rapid.Map(part, func(v cty.Value) cty.Value { return cty.TupleVal([]cty.Value{v, v, v}) }),
		rapid.Map(rapid.Int64Range(60, 90), func(n int64) cty.Value { // large, and all of one type
			all := make([]cty.Value, n)
			for i := range all {
				all[i] = cty.StringVal(fmt.Sprint(i % 70))
			}
			return cty.TupleVal(all)
		}),
	)
}

func TestConvertIsWhatCtyMakesOfIt(t *testing.T) {
	element := rapid.SampledFrom([]cty.Type{cty.String, cty.Number, cty.Bool, cty.DynamicPseudoType,
		cty.List(cty.String), cty.Map(cty.DynamicPseudoType)})
	rapid.Check(t, func(t *rapid.T) {
		v := anyValue(2).Draw(t, "value")
		of := rapid.SampledFrom([]func(cty.Type) cty.Type{cty.List, cty.Set, cty.Map}).Draw(t, "collection")
		want := of(element.Draw(t, "element"))
		expected, failure := convert.Convert(v, want)
		got, err := funcs.Convert(v, want)
		switch {
		case (err == nil) != (failure == nil):
			t.Fatalf("%#v to %#v: got %v, %v; want %v, %v", v, want, got, err, expected, failure)
		case err == nil && !got.RawEquals(expected):
			t.Fatalf("%#v to %#v: got %#v, want %#v", v, want, got, expected)
		}
	})
}

// TestScalarsAreWhatCtyMakesOfThem has whole numbers near the limits of the short way, and texts that only look like
// them. Numbers must have cty's precision, since later divisions depend on it.
func TestScalarsAreWhatCtyMakesOfThem(t *testing.T) {
	values := []cty.Value{cty.NumberFloatVal(0.5), cty.MustParseNumberVal("-0"), cty.PositiveInfinity,
		cty.NullVal(cty.String), cty.NullVal(cty.Number), cty.UnknownVal(cty.String), cty.UnknownVal(cty.Number)}
	for _, text := range []string{"0", "-0", "+1", "-1", "007", "1_000", "1e3", " 1", "", "0x1", "1.0", "true",
		"9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616"} {
		values = append(values, cty.StringVal(text))
		if n, err := cty.ParseNumberVal(text); err == nil {
			values = append(values, n)
		}
	}
	for _, want := range []cty.Type{cty.String, cty.Number, cty.Bool} {
		for _, v := range values {
			expected, failure := convert.Convert(v, want)
			got, err := funcs.Convert(v, want)
			if (err == nil) != (failure == nil) || err == nil && !got.RawEquals(expected) {
				t.Errorf("%#v to %#v: got %#v, %v; want %#v, %v", v, want, got, err, expected, failure)
			} else if err == nil && want == cty.Number && got.IsKnown() && !got.IsNull() &&
				got.AsBigFloat().Prec() != expected.AsBigFloat().Prec() {
				t.Errorf("%#v to a number of %d bits, not %d", v, got.AsBigFloat().Prec(), expected.AsBigFloat().Prec())
			}
		}
	}
}
