package funcs

import (
	"fmt"
	"math/bits"

	"github.com/zclconf/go-cty/cty"
)

// What the evaluation of a project may make and do. They are counts, not times, so that the same files end in the same
// way on every machine. They let through some hundred thousand instances, and keep what a mistake or malice can take at
// a few seconds and 256 MiB.
const (
	maxElements = 2_000_000  // items of lists and, twice each, attributes of objects and maps: some 60 bytes each
	maxBytes    = 64 << 20   // of texts
	maxWork     = 80_000_000 // some 40 ns each
	maxDepth    = 1000       // of lists and objects in each other: all who look at a value do so by recursion
	maxExponent = 4096       // binary, of a number: 1e1233 as a text has as many digits
)

// Meter counts what an evaluation makes and does. When that would be too much the evaluation of the expression stops:
// whatever is spent from then on panics with Stop, until Guard has ended it. So no function that catches errors, as try
// does, and no loop that collects them goes on.
type Meter struct {
	elements, bytes, work int
	why                   string
	spent                 bool
}

// Stop is what Meter panics with.
type Stop struct{}

// Why says what there is too much of in the expression that is being evaluated; empty while there is not.
func (m *Meter) Why() string { return m.why }

// Spent says whether nothing more can be evaluated. It is false as long as only single steps were refused because they
// alone would have been too much.
func (m *Meter) Spent() bool { return m.spent }

// Elements counts elements that are made.
func (m *Meter) Elements(n int) {
	if !m.spend(&m.elements, n, maxElements) {
		m.stop(fmt.Sprintf("The expressions of the files make more than %d elements of lists and maps. Make fewer of them here", maxElements))
	}
}

// Bytes counts bytes of text that are made.
func (m *Meter) Bytes(n int) {
	if !m.spend(&m.bytes, n, maxBytes) {
		m.stop("The expressions of the files make more than 64 MiB of text. Make less of it here, or leave it in a file that a task reads")
	}
}

// Work counts what is done, in units of some 40 ns.
func (m *Meter) Work(n int) {
	if !m.spend(&m.work, n, maxWork) {
		m.stop("The expressions of the files take too many steps. Go over fewer elements here, or let a task compute it")
	}
}

// spend adds to a count, unless it would be too much.
func (m *Meter) spend(count *int, n, limit int) bool {
	if n < 0 || n > limit-*count {
		m.spent = m.spent || n >= 0 && n < limit/100
		return false
	}
	*count += n
	return m.why == ""
}

func (m *Meter) stop(why string) {
	if m.why == "" {
		m.why = why
	}
	panic(Stop{})
}

// saturated is the sum of two numbers that are not negative.
func saturated(a, b int) int {
	if sum := a + b; b >= 0 && sum >= a {
		return sum
	}
	return int(^uint(0) >> 1)
}

// Guard calls f, and says why it did not come to its end: empty when it did.
func (m *Meter) Guard(f func()) (why string) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(Stop); !ok {
				panic(r)
			}
		}
		why, m.why = m.why, ""
	}()
	f()
	return
}

// Made counts a value whose elements are new but the elements' own parts are not, and what it takes to walk all of it.
func (m *Meter) Made(v cty.Value) {
	m.Number(v)
	if ty := v.Type(); v.IsKnown() && !v.IsNull() && !ty.IsPrimitiveType() && v.CanIterateElements() {
		m.Elements(fresh(v))
		m.Walk(v)
	}
}

// fresh is what v and its elements count, without their parts. An object brings a type of its own.
func fresh(v cty.Value) int {
	switch ty := v.Type(); {
	case ty.IsObjectType():
		return 8 + 2*v.LengthInt()
	case ty.IsMapType():
		return 2 * v.LengthInt()
	}
	return v.LengthInt()
}

// Number refuses numbers whose text would be very long.
func (m *Meter) Number(v cty.Value) {
	if Huge(v) {
		m.stop("A number here has more than 1233 digits")
	}
}

// Huge says whether v is a number whose text would be very long.
func Huge(v cty.Value) bool {
	if v.Type() != cty.Number || !v.IsKnown() || v.IsNull() {
		return false
	}
	f := v.AsBigFloat()
	exponent := f.MantExp(nil)
	return f.IsInf() || exponent > maxExponent || exponent < -maxExponent
}

// Written counts what it takes to write the numbers of v in decimal, as cty also does to compare or hash those that are
// not whole.
func (m *Meter) Written(v cty.Value) { m.Work(m.digits(v)) }

// digits is the work of Written.
func (m *Meter) digits(v cty.Value) (work int) {
	ty := v.Type()
	switch {
	case !v.IsKnown() || v.IsNull() || ty == cty.String || ty == cty.Bool:
		return 0
	case ty == cty.Number:
		f := v.AsBigFloat()
		exponent := f.MantExp(nil)
		if f.IsInt() {
			return exponent / 16
		}
		return 400 + 4*max(exponent, -exponent)
	case !v.CanIterateElements() || ty.IsCollectionType() && (ty.ElementType() == cty.String || ty.ElementType() == cty.Bool):
		return 0
	}
	m.Work(v.LengthInt())
	for _, part := range v.Elements() {
		work = saturated(work, m.digits(part))
	}
	return work
}

// Walk counts what it takes to look at every part of v: parts that v has in several places count as often.
func (m *Meter) Walk(v cty.Value) { m.walk(v, false, 0) }

// Whole counts a value all of whose parts are new, texts and numbers included.
func (m *Meter) Whole(v cty.Value) { m.walk(v, true, 0) }

func (m *Meter) walk(v cty.Value, whole bool, depth int) {
	if depth > maxDepth {
		m.stop("A value here is nested deeper than 1000 levels")
	}
	ty := v.Type()
	if !v.IsKnown() || v.IsNull() || ty == cty.DynamicPseudoType {
		return
	}
	if ty.IsPrimitiveType() {
		m.Work(1)
		if whole {
			m.leaf(v)
		}
		return
	}
	if !v.CanIterateElements() {
		return
	}
	n := v.LengthInt()
	m.Work(n + 1)
	if ty.IsSetType() {
		m.Work(2 * n * bits.Len(uint(n))) // cty sorts a set each time
	}
	if whole || !flat(ty) {
		m.Work(2 * n) // cty makes a number for each place in a list
	}
	if whole {
		m.Elements(fresh(v))
	}
	switch {
	case ty.IsObjectType():
		for name, part := range ty.AttributeTypes() {
			if whole || !part.IsPrimitiveType() {
				m.walk(v.GetAttr(name), whole, depth+1)
			}
		}
	case ty.IsTupleType():
		types := ty.TupleElementTypes()
		i := 0
		for _, part := range v.Elements() {
			if whole || !types[i].IsPrimitiveType() {
				m.walk(part, whole, depth+1)
			}
			i++
		}
	case whole || !ty.ElementType().IsPrimitiveType():
		for _, part := range v.Elements() {
			m.walk(part, whole, depth+1)
		}
	}
}

// flat says whether the elements of all values of a type are texts, numbers or truth values.
func flat(ty cty.Type) bool {
	switch {
	case ty.IsObjectType() || ty.IsTupleType():
		return false
	default:
		return ty.ElementType().IsPrimitiveType()
	}
}

func (m *Meter) leaf(v cty.Value) {
	switch v.Type() {
	case cty.String:
		m.Bytes(len(v.AsString()))
	case cty.Number:
		m.Elements(2) // it has 64 bytes and what leads to them
		m.Number(v)
	}
}

// size is the number of bytes in the texts of v, and the longest of them.
func (m *Meter) size(v cty.Value) (total, longest int) {
	ty := v.Type()
	if !v.IsKnown() || v.IsNull() {
		return 4, 4
	}
	switch {
	case ty == cty.String:
		n := len(v.AsString())
		return n, n
	case ty == cty.Number:
		n := 20 + max(v.AsBigFloat().MantExp(nil), 0)/3
		return n, n
	case ty.IsPrimitiveType() || !v.CanIterateElements():
		return 8, 8
	}
	m.Work(v.LengthInt())
	for key, part := range v.Elements() {
		n, l := m.size(part)
		total, longest = saturated(total, n), max(longest, l)
		if !ty.IsListType() && !ty.IsSetType() && !ty.IsTupleType() {
			total = saturated(total, len(key.AsString()))
		}
	}
	return total, longest
}
