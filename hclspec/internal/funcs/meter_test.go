package funcs_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
	"github.com/benchgraph/benchgraph/hclspec/internal/project"
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
	element := rapid.SampledFrom([]cty.Type{cty.String, cty.Number, cty.Bool, cty.DynamicPseudoType, cty.List(cty.String), cty.Map(cty.DynamicPseudoType)})
	rapid.Check(t, func(t *rapid.T) {
		v := anyValue(2).Draw(t, "value")
		of := rapid.SampledFrom([]func(cty.Type) cty.Type{cty.List, cty.Set, cty.Map}).Draw(t, "collection")
		want := of(element.Draw(t, "element"))
		expected, failure := convert.Convert(v, want)
		got, err := new(funcs.Meter).Convert(v, want)
		switch {
		case (err == nil) != (failure == nil):
			t.Fatalf("%#v to %#v: got %v, %v; want %v, %v", v, want, got, err, expected, failure)
		case err == nil && !got.RawEquals(expected):
			t.Fatalf("%#v to %#v: got %#v, want %#v", v, want, got, expected)
		}
	})
}

// stopped calls f and says why the meter stopped it.
func stopped(f func(m *funcs.Meter)) string {
	m := new(funcs.Meter)
	return m.Guard(func() { f(m) })
}

func TestMeterStops(t *testing.T) {
	shared := cty.StringVal("x")
	for range 60 {
		shared = cty.TupleVal([]cty.Value{shared, shared})
	}
	deep := cty.StringVal("x")
	for range 1002 {
		deep = cty.TupleVal([]cty.Value{deep})
	}
	huge := cty.NumberVal(new(big.Float).SetMantExp(big.NewFloat(1), 5000))
	for name, test := range map[string]struct {
		f    func(m *funcs.Meter)
		want string
	}{
		"nothing much":            {func(m *funcs.Meter) { m.Work(1000); m.Elements(1000); m.Bytes(1000) }, ""},
		"what is shared is not":   {func(m *funcs.Meter) { m.Walk(shared) }, "too many steps"},
		"depth":                   {func(m *funcs.Meter) { m.Walk(deep) }, "nested deeper"},
		"many elements":           {func(m *funcs.Meter) { m.Elements(1 << 40) }, "elements"},
		"a sum beyond an integer": {func(m *funcs.Meter) { m.Bytes(1 << 62); m.Bytes(1 << 62) }, "64 MiB"},
		"less than nothing":       {func(m *funcs.Meter) { m.Work(-1) }, "too many steps"},
		"little, very often": {func(m *funcs.Meter) {
			for {
				m.Work(1000)
			}
		}, "too many steps"},
		"a huge number":  {func(m *funcs.Meter) { m.Number(huge) }, "digits"},
		"a small number": {func(m *funcs.Meter) { m.Number(cty.MustParseNumberVal("1e-2000")) }, "digits"},
	} {
		if got := stopped(test.f); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestMeterGoesOnAfterOneLargeStep(t *testing.T) {
	m := new(funcs.Meter)
	if why := m.Guard(func() { m.Elements(1 << 40) }); why == "" || m.Spent() {
		t.Errorf("got %q, %v: a single large step is refused, and no more", why, m.Spent())
	}
	if why := m.Guard(func() { m.Elements(10) }); why != "" {
		t.Errorf("got %q", why)
	}
	m.Guard(func() {
		for {
			m.Elements(10)
		}
	})
	if !m.Spent() {
		t.Error("after many small steps there is nothing left")
	}
}

// TestNothingCatchesStop makes sure that a function which recovers from panics, as those of cty do, is no way out.
func TestNothingCatchesStop(t *testing.T) {
	m := new(funcs.Meter)
	rounds := 0
	why := m.Guard(func() {
		for {
			func() {
				defer func() { _ = recover() }()
				m.Elements(1 << 40)
			}()
			rounds++
			m.Work(1)
		}
	})
	if why == "" || rounds != 1 {
		t.Errorf("got %q after %d rounds", why, rounds)
	}
}

func table(t *testing.T, m *funcs.Meter) map[string]function.Function {
	t.Helper()
	dir, err := project.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return funcs.Table(dir, m)
}

func TestRegularExpressionsAreBounded(t *testing.T) {
	long := strings.Repeat("a", 100_000)
	lines := strings.Repeat("commit 0123456789abcdef\n", 2000)
	for _, test := range []struct {
		function string
		args     []string
		stops    bool
	}{
		{"regex", []string{"a+$", long}, false},
		{"regex", []string{"(a?){900}b", long}, true},
		{"regexall", []string{"a.*b|a", long}, true},
		{"regexall", []string{"commit ([0-9a-f]+)", lines}, false},
		{"regexreplace", []string{lines, "[0-9a-f]+", "x"}, false},
		{"regexreplace", []string{long, "a", long}, true},
		{"replace", []string{long, "/a*b|a/", "x"}, true},
		{"replace", []string{long, "a", long}, true},
	} {
		m := new(funcs.Meter)
		f := table(t, m)[test.function]
		var args []cty.Value
		for _, arg := range test.args {
			args = append(args, cty.StringVal(arg))
		}
		why := m.Guard(func() {
			if _, err := f.Call(args); err != nil && m.Why() == "" {
				t.Errorf("%s(%.30q): %s", test.function, test.args, err)
			}
		})
		if (why != "") != test.stops {
			t.Errorf("%s(%.30q): got %q, stops should be %v", test.function, test.args, why, test.stops)
		}
	}
}
