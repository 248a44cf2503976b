package eval

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/project"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Number reads a number; 0 if the attribute is absent.
func (r Reader) Number(name string) float64 {
	if given, ok := r.Value(name); ok && instead(given) != "" {
		r.Fail(r.At(name), "Wrong type", "%s must be a number, not %s%s.", name, Describe(given), instead(given))
		return 0
	}
	v, ok := r.As(name, cty.Number, "a number")
	if !ok {
		return 0
	}
	f, _ := v.AsBigFloat().Float64()
	return f
}

// Whole reads a whole number of at least low.
func (r Reader) Whole(name string, low, standard int64) int64 {
	v, ok := r.As(name, cty.Number, "a whole number")
	if !ok {
		return standard
	}
	n, accuracy := v.AsBigFloat().Int64()
	if accuracy != big.Exact {
		r.Fail(r.At(name), "Not a whole number", "%s must be a whole number, not %s.", name,
			v.AsBigFloat().Text('g', 10))
		return standard
	}
	if n < low {
		r.Fail(r.At(name), "Number too small", "%s must be at least %d, not %d.", name, low, n)
		return standard
	}
	return n
}

// Fraction reads a number between low and high, both excluded.
func (r Reader) Fraction(name string, low, high, standard float64) float64 {
	given, ok := r.Value(name)
	if !ok {
		return standard
	}
	if percent, is := percentage(given); is && percent/100 > low && percent/100 < high {
		r.Fail(r.At(name), "Wrong type", "%s must be a number, not a percentage: write %g.", name, percent/100)
		return standard
	} else if is {
		r.Fail(r.At(name), "Wrong type", "%s must be a number that lies between %g and %g, not a percentage.", name,
			low, high)
		return standard
	}
	v, ok := r.As(name, cty.Number, "a number")
	if !ok {
		return standard
	}
	f, _ := v.AsBigFloat().Float64()
	if !(f > low && f < high) {
		r.Fail(r.At(name), "Number out of range", "%s must lie between %g and %g, not %g.", name, low, high, f)
	}
	return f
}

// percentage reads a text such as "3%".
func percentage(v cty.Value) (percent float64, ok bool) {
	if v.Type() != cty.String || v.IsNull() || !v.IsKnown() {
		return 0, false
	}
	text, ok := strings.CutSuffix(v.AsString(), "%")
	percent, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return percent, ok && err == nil
}

// instead returns the number to write instead of a percentage, which may be a value in an object.
func instead(v cty.Value) string {
	for _, item := range items(v) {
		if percent, is := percentage(item); is {
			return fmt.Sprintf(" (write %g)", percent/100)
		}
	}
	return ""
}

// digits matches the digits of a number.
var digits = lazyregexp.New(`[0-9]+`)

// Duration reads a text such as "40m", or a number of seconds.
func (r Reader) Duration(name string, standard time.Duration) time.Duration {
	v, ok := r.As(name, cty.String, "a duration such as \"40m\"")
	if !ok {
		return standard
	}
	given := r.Literal(name, v)
	d, err := time.ParseDuration(given)
	if err != nil {
		if d, err = time.ParseDuration(given + "s"); err != nil {
			if _, err := time.ParseDuration(digits().ReplaceAllString(given, "1")); err == nil {
				r.Fail(r.At(name), "Duration too long", "%s can be at most \"2562047h\", not %q.", name, given)
				return standard
			}
			r.Fail(r.At(name), "Not a duration", "%s must be a duration such as \"90s\", \"40m\" or \"1h30m\", not %q.",
				name, given)
			return standard
		}
	}
	if d <= 0 {
		r.Fail(r.At(name), "Not a duration", "%s must be longer than 0, not %q.", name, given)
	}
	return d
}

// Size reads a text such as "64GiB" (binary) or "64GB" (decimal). A number without a unit is refused: nobody means 64
// bytes.
func (r Reader) Size(name string) int64 {
	v, ok := r.As(name, cty.String, "a size such as \"64GiB\"")
	if !ok {
		return 0
	}
	given := r.Literal(name, v)
	parse := units.FromHumanSize
	if strings.ContainsAny(given, "iI") {
		parse = units.RAMInBytes
	}
	n, err := parse(given)
	switch _, bare := strconv.ParseFloat(given, 64); {
	case bare == nil && n >= units.MiB:
		r.Fail(r.At(name), "Size without a unit", "%s = %s has no unit: write \"%s\".", name, given, withUnit(n))
	case bare == nil && n > 0:
		r.Fail(r.At(name), "Size without a unit", "%s = %s has no unit: write \"%[2]sGiB\" or \"%[2]sMiB\".", name,
			given)
	case err != nil || n <= 0:
		r.Fail(r.At(name), "Not a size", "%s must be a size such as \"64GiB\" or \"64GB\", not %q.", name, given)
	default:
		return n
	}
	return 0
}

// withUnit writes a size of at least 1 MiB in the form that Size reads: exactly in the largest unit in which it is a
// whole number, else rounded.
func withUnit(n int64) string {
	switch {
	case n%units.GiB == 0:
		return fmt.Sprintf("%dGiB", n/units.GiB)
	case n%units.MiB == 0:
		return fmt.Sprintf("%dMiB", n/units.MiB)
	}
	return units.BytesSize(float64(n))
}

// Frequency reads a text such as "1410MHz", in MHz; 0: there is none.
func (r Reader) Frequency(name string) int {
	v, ok := r.As(name, cty.String, "a frequency such as \"1410MHz\"")
	if !ok {
		return 0
	}
	given := r.Literal(name, v)
	for unit, mhz := range map[string]float64{"MHz": 1, "GHz": 1000} {
		number, ok := strings.CutSuffix(given, unit)
		f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if whole := math.Round(f * mhz); ok && err == nil && whole >= 1 && whole < math.MaxInt32 &&
			math.Abs(whole-f*mhz) < 1e-6 {
			return int(whole)
		}
	}
	r.Fail(r.At(name), "Not a frequency",
		"%s must be a frequency in whole MHz such as \"1410MHz\" or \"1.41GHz\", not %q.", name, given)
	return 0
}

// around matches lookahead and lookbehind of other dialects of regular expressions.
var around = lazyregexp.New(`\(\?<?[=!]`)

// Pattern reads an RE2 regular expression with at least the given number of groups.
func (r Reader) Pattern(name string, groups int) string {
	given := r.Str(name)
	re, err := regexp.Compile(given)
	if err != nil && around().MatchString(given) {
		r.Fail(r.At(name), "Invalid regular expression", "%s: RE2 can look neither ahead nor behind. Write the text "+
			"around the value as it is, and put a group around the value alone: \"rate: ([0-9.]+) tok\".", name)
	} else if err != nil {
		r.Fail(r.At(name), "Invalid regular expression", "%s: %s.", name,
			strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	} else if v, ok := r.Value(name); ok && given == "" && v.Type() == cty.String {
		r.Fail(r.At(name), "Empty regular expression",
			"%s is empty, and would match every line. Write what the line holds, or leave it out.", name)
	} else if re.NumSubexp() < groups && given != "" {
		r.Fail(r.At(name), "No group",
			"%s needs a group, as in \"rate: ([0-9.]+)\": the value is the match of the first group.", name)
	}
	return given
}

// path matches keys and indices of a JSON document: a.b.0.c, a.b[0].c, $.a["b"].
var path = lazyregexp.New(`^\$?(?:\.?[^.\[\]]+|\[[^\[\]]+\])(?:\.[^.\[\]]+|\[[^\[\]]+\])*$`)

// Path reads a path to a value in a JSON document.
func (r Reader) Path(name string) string {
	given := r.Str(name)
	if v, ok := r.Value(name); ok && v.Type() == cty.String && !path().MatchString(given) {
		r.Fail(r.At(name), "Not a path",
			"%s = %q leads nowhere: name the keys and indices from the top of the document, as in \"results.0.p99\" "+
				"or \"results[0].p99\".", name, given)
	}
	return given
}

// Globs reads doublestar patterns. If one is invalid, there are none.
func (r Reader) Globs(name string, standard ...string) []string {
	v, ok := r.Value(name)
	if !ok {
		return standard
	}
	patterns := r.Strs(name)
	for i, v := range items(v) {
		if v.Type() == cty.Number || v.Type() == cty.Bool {
			r.Fail(r.AtItem(name, i), "Wrong type", "%s must be a list of patterns of files, not %s.", name,
				Describe(v))
			return nil
		}
	}
	valid := patterns
	for i, p := range patterns {
		if err := project.CheckPattern(strings.TrimPrefix(p, "!")); err != nil {
			r.Fail(r.AtItem(name, i), "Invalid pattern", "%s: %s.", name, err)
			valid = nil
		}
	}
	return valid
}

// Inside reads a relative path that does not lead out of its directory.
func (r Reader) Inside(name, standard string) string {
	if _, ok := r.Value(name); !ok {
		return standard
	}
	clean, err := project.Clean(r.Str(name))
	if err != nil {
		r.Fail(r.At(name), "Path outside the project", "%s: %s.", name, err)
	}
	return clean
}
