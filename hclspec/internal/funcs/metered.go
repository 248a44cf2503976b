package funcs

import (
	"math/bits"
	"regexp"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// design is a function that is to be metered, with all of it that does not depend on who evaluates.
type design struct {
	name  string
	f     function.Function
	plain bool
	spec  function.Spec // without Impl
	want  []cty.Type    // of the parameters
	more  cty.Type      // of the variadic one

	conversion bool                             // it only converts its argument
	foresee    func(m *Meter, args []cty.Value) // counts what a call is going to make; nil: that is little
	whole      bool                             // its results share nothing with its arguments
}

// newDesign prepares f for metering.
//
// A plain function takes no references, since it would look into them or write them down: what a reference becomes is not
// known before the graph runs.
func newDesign(name string, f function.Function, plain bool) design {
	collection, conversion := collections[name]
	d := design{name: name, f: f, plain: plain, conversion: conversion, foresee: costs[name], whole: made[name]}
	d.spec = function.Spec{Params: f.Params(), VarParam: f.VarParam(), Type: function.StaticReturnType(cty.DynamicPseudoType)}
	// Conversions are made by metered, where they are counted.
	open := func(p *function.Parameter) cty.Type {
		want := p.Type
		*p = function.Parameter{
			Name: p.Name, Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true, AllowMarked: true,
		}
		if conversion {
			want = collection
		}
		return want
	}
	for i := range d.spec.Params {
		d.want = append(d.want, open(&d.spec.Params[i]))
	}
	if d.spec.VarParam != nil {
		p := *d.spec.VarParam
		d.more, d.spec.VarParam = open(&p), &p
	}
	return d
}

// metered is a function with everything that it does counted: its arguments before it is called, what it is going to make
// where that can be much more than its arguments, and what it has made.
func (m *Meter) metered(d *design) function.Function {
	spec := d.spec
	spec.Impl = func(given []cty.Value, _ cty.Type) (cty.Value, error) { return m.call(d, given) }
	return function.New(&spec)
}

func (m *Meter) call(d *design, given []cty.Value) (cty.Value, error) {
	m.Work(40 + 10*len(given))
	args := make([]cty.Value, len(given))
	for i, arg := range given {
		// cty looks at every part of an argument several times.
		for range 6 {
			m.Walk(arg)
		}
		want := d.more
		if i < len(d.want) {
			want = d.want[i]
		}
		converted, err := m.Convert(arg, want)
		if err != nil {
			return cty.NilVal, function.NewArgError(i, err)
		}
		if d.plain && Contains(converted) {
			return cty.NilVal, function.NewArgErrorf(i, "%s cannot take a reference: what stands for it is known only when the node has run", d.name)
		}
		args[i] = converted
	}
	if d.conversion && args[0].IsKnown() && !args[0].IsNull() {
		return args[0], nil
	}
	if d.foresee != nil && known(args) {
		d.foresee(m, args)
	}
	out, err := d.f.Call(args)
	if err != nil {
		return out, err
	}
	if d.whole {
		m.Whole(out)
	} else {
		m.Made(out)
	}
	return out, nil
}

// collections are the functions that do nothing but convert their argument, which costs enough to be done once.
var collections = map[string]cty.Type{
	"tolist": cty.List(cty.DynamicPseudoType), "toset": cty.Set(cty.DynamicPseudoType), "tomap": cty.Map(cty.DynamicPseudoType),
}

func known(args []cty.Value) bool {
	for _, arg := range args {
		if !arg.IsWhollyKnown() || arg.IsNull() {
			return false
		}
	}
	return true
}

// made are the functions whose results share nothing with their arguments.
var made = map[string]bool{
	"chunklist": true, "csvdecode": true, "fileset": true, "format": true, "formatlist": true, "join": true, "jsondecode": true,
	"regex": true, "regexall": true, "setproduct": true, "split": true, "transpose": true, "yamldecode": true,
}

// costs says what a call is going to make, of those functions that can make much of little. Arguments are converted and
// known.
var costs = map[string]func(m *Meter, args []cty.Value){
	"base64encode": textTimes(2), "jsonencode": encodeCost, "urlencode": textTimes(3), "yamlencode": encodeCost,
	"lower": textTimes(2), "upper": textTimes(2), "title": textTimes(2), "strrev": textTimes(1), "substr": textTimes(1),
	"md5": textTimes(0), "sha1": textTimes(0), "sha256": textTimes(0), "sha512": textTimes(0), "base64decode": textTimes(1),
	"chomp": textTimes(0), "trimspace": textTimes(0), "pep440_match": textTimes(0), "formatdate": textTimes(1), "timeadd": textTimes(0),
	"csvdecode": pieces(30, ",\n"), "jsondecode": pieces(50, ",[{:"), "yamldecode": pieces(80, "\n,[{:-"),
	"format": formatCost, "formatlist": formatCost, "join": joinCost, "indent": indentCost,
	"replace": replaceCost, "regexreplace": regexreplaceCost, "regexall": regexallCost,
	"regex": func(m *Meter, args []cty.Value) {
		_, groups := regexCost(m, args[0].AsString(), args[1].AsString(), false)
		m.Elements(groups)
	},
	"split": func(m *Meter, args []cty.Value) {
		m.Elements(strings.Count(args[1].AsString(), args[0].AsString()) + 1)
	},
	"concat": func(m *Meter, args []cty.Value) {
		for _, arg := range args {
			m.Elements(arg.LengthInt())
		}
	},
	"trim": func(m *Meter, args []cty.Value) {
		m.Work(len(args[0].AsString()) / 16 * (1 + len(args[1].AsString())))
	},
	"setproduct": func(m *Meter, args []cty.Value) {
		total := 1
		for _, arg := range args {
			if total *= arg.LengthInt(); total > maxElements {
				break
			}
		}
		m.Elements(saturated(0, total) * (1 + len(args)))
	},
	"range": rangeCost,
	"distinct": func(m *Meter, args []cty.Value) {
		n := args[0].LengthInt()
		if element := args[0].Type().ElementType(); element == cty.Number {
			n = 1
		} else if element != cty.String {
			m.Work(n / 2 * n)
		}
		m.Work(n * m.digits(args[0]))
	},
	"contains": searchCost, "index": searchCost,
	"matchkeys": func(m *Meter, args []cty.Value) {
		keys := args[1].LengthInt()
		m.Work(args[2].LengthInt() * m.digits(args[1]))
		m.Work(keys * m.digits(args[2]))
		for _, searched := range args[2].Elements() {
			for range keys {
				m.Walk(searched)
				m.Work(10)
			}
		}
	},
	"setunion": setCost, "setintersection": setCost, "setsubtract": setCost,
}

// textTimes is the cost of a function that makes up to so many times the text of its arguments.
func textTimes(times int) func(m *Meter, args []cty.Value) {
	return func(m *Meter, args []cty.Value) {
		total := 0
		for _, arg := range args {
			n, _ := m.size(arg)
			total = saturated(total, n)
		}
		m.Work(total / 8)
		m.Bytes(min(total, maxBytes) * times)
	}
}

// pieces is the cost of a function that decodes a text: for every one of the characters, some elements.
func pieces(each int, characters string) func(m *Meter, args []cty.Value) {
	return func(m *Meter, args []cty.Value) {
		text, n := args[0].AsString(), 0
		for i := range len(text) {
			if strings.IndexByte(characters, text[i]) >= 0 {
				n++
			}
		}
		m.Work(len(text) / 4)
		m.Work(n * each)
		m.Elements(n) // what it is decoded to first
	}
}

func rangeCost(m *Meter, args []cty.Value) {
	start, end, step := cty.Zero, args[0], cty.NumberIntVal(1)
	if len(args) > 1 {
		start, end = args[0], args[1]
	}
	if len(args) > 2 {
		step = args[2]
	}
	if step.AsBigFloat().Sign() == 0 {
		return // an error
	}
	n := end.Subtract(start).Divide(step).Absolute()
	if n.GreaterThan(cty.NumberIntVal(maxElements)).True() {
		m.Elements(maxElements + 1)
	}
	count, _ := n.AsBigFloat().Int64()
	each := 2
	if !start.AsBigFloat().IsInt() || !step.AsBigFloat().IsInt() {
		each = 5
	}
	m.Elements(each * int(count))
}

// encodeCost is that of a text of the arguments with quotes and escapes.
func encodeCost(m *Meter, args []cty.Value) {
	textTimes(6)(m, args)
	m.Written(args[0])
}

// searchCost is that of comparing the elements of the first argument with the second one.
func searchCost(m *Meter, args []cty.Value) {
	if args[0].CanIterateElements() {
		m.Written(args[0])
		m.Work(args[0].LengthInt() * m.digits(args[1]))
	}
}

func setCost(m *Meter, args []cty.Value) {
	for _, arg := range args {
		if arg.CanIterateElements() {
			n := arg.LengthInt()
			m.Work(n * (40 + 20*bits.Len(uint(n))))
			m.Written(arg)
		}
	}
}

func joinCost(m *Meter, args []cty.Value) {
	separator := len(args[0].AsString())
	for _, list := range args[1:] {
		n, _ := m.size(list)
		m.Bytes(n)
		m.Bytes(list.LengthInt() * separator)
	}
}

func indentCost(m *Meter, args []cty.Value) {
	spaces, _ := args[0].AsBigFloat().Int64()
	text := args[1].AsString()
	m.Bytes(len(text) + strings.Count(text, "\n")*int(min(max(spaces, 0), 10_000)))
}

// numberIn refuses a text that a verb such as %d would read as a very long number.
func (m *Meter) numberIn(v cty.Value) {
	if v.Type() != cty.String || !v.IsKnown() || v.IsNull() || !strings.ContainsAny(v.AsString(), "eE") || len(v.AsString()) > 100 {
		return
	}
	if n, err := cty.ParseNumberVal(v.AsString()); err == nil {
		m.Number(n)
	}
}

// formatCost goes by the longest text that each verb could write.
func formatCost(m *Meter, args []cty.Value) {
	if args[0].Type() != cty.String {
		return // formatlist takes lists of formats, too: what it makes is counted after
	}
	pattern := args[0].AsString()
	verbs := strings.Count(pattern, "%")
	calls, longest, total := 1, 0, 0
	for _, arg := range args[1:] {
		m.Work(max(verbs, 1) * m.digits(arg))
		all, one := m.size(arg)
		m.numberIn(arg)
		if arg.CanIterateElements() && arg.LengthInt() > 0 {
			for _, part := range arg.Elements() {
				m.numberIn(part)
			}
		}
		if arg.CanIterateElements() {
			calls = max(calls, arg.LengthInt())
		} else {
			one = all
		}
		longest, total = max(longest, one), saturated(total, one)
	}
	if strings.Contains(pattern, "[") {
		total = saturated(0, min(longest, maxBytes)*verbs)
	}
	if wide.MatchString(pattern) {
		total = saturated(total, verbs*10_000)
	}
	each := saturated(len(pattern)+100*verbs, 6*min(total, maxBytes))
	m.Work(calls * 20)
	m.Bytes(min(each, maxBytes+1) * calls)
}

var wide = regexp.MustCompile(`%[^a-zA-Z%]*[0-9*]{3,}`)

func replaceCost(m *Meter, args []cty.Value) {
	text, old := args[0].AsString(), args[1].AsString()
	if len(old) > 2 && strings.HasPrefix(old, "/") && strings.HasSuffix(old, "/") {
		regexreplaceCost(m, []cty.Value{args[0], cty.StringVal(old[1 : len(old)-1]), args[2]})
		return
	}
	m.Work(len(text) / 4)
	m.Bytes(len(text) + min(strings.Count(text, old), maxBytes)*min(len(args[2].AsString()), maxBytes))
}
