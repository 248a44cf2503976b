package units

import (
	"strings"

	"github.com/benchgraph/benchgraph/metrics/number"
)

// scale is a unit as a multiple of the first unit of its dimension.
type scale struct {
	dimension string
	factor    float64
}

// scaleOf returns the scale of one side of a unit, in canonical spelling. Prefixes of bytes have the meaning that
// programs use: KB and kB are 1,000 bytes, KiB are 1,024.
func scaleOf(unit string) (scale, bool) {
	switch unit {
	case "ns":
		return scale{"time", 1e-9}, true
	case "us":
		return scale{"time", 1e-6}, true
	case "ms":
		return scale{"time", 1e-3}, true
	case "s", "sec":
		return scale{"time", 1}, true
	case "min":
		return scale{"time", 60}, true
	case "h":
		return scale{"time", 3600}, true
	case "%":
		return scale{"ratio", 0.01}, true
	}
	for i, prefix := range []string{"", "K", "M", "G", "T", "P"} {
		switch decimal, binary := power(1000, i), power(1024, i); unit {
		case prefix + "B", strings.ToLower(prefix) + "B":
			return scale{"bytes", decimal}, true
		case prefix + "iB":
			return scale{"bytes", binary}, true
		case prefix + "bit", strings.ToLower(prefix) + "bit":
			return scale{"bytes", decimal / 8}, true
		case prefix + "FLOPS", prefix + "FLOP":
			return scale{"flops", decimal}, true
		}
	}
	for i, prefix := range []string{"", "k", "M", "G"} {
		for _, count := range []string{"req", "tok", "op", "ops", "items"} {
			if unit == prefix+count || unit == strings.ToUpper(prefix)+count {
				return scale{strings.TrimSuffix(count, "s"), power(1000, i)}, true
			}
		}
	}
	return scale{}, false
}

func power(base float64, n int) float64 {
	p := 1.0
	for range n {
		p *= base
	}
	return p
}

// Convert converts a value into another unit of the same dimension: ms into s, KB/s into MB/s, tok/s into tok/min.
// False: the dimensions differ, or one of the units is unknown. Equal units always convert, even unknown ones.
func Convert(value float64, from, to string) (float64, bool) {
	from, to = Canonical(from), Canonical(to)
	if from == to {
		return value, true
	}
	amount, per, rate := strings.Cut(from, "/")
	otherAmount, otherPer, otherRate := strings.Cut(to, "/")
	if rate != otherRate {
		return 0, false
	}
	factor, ok := ratio(amount, otherAmount)
	if ok && rate {
		var below float64
		below, ok = ratio(per, otherPer)
		factor /= below
	}
	if !ok {
		return 0, false
	}
	return number.Round(value * factor), true
}

// ratio returns the factor that converts one unit into another; false: they do not convert.
func ratio(from, to string) (float64, bool) {
	if from == to {
		return 1, true
	}
	a, known := scaleOf(from)
	b, also := scaleOf(to)
	if !known || !also || a.dimension != b.dimension {
		return 0, false
	}
	return a.factor / b.factor, true
}

// Known reports whether one side of a unit, in canonical spelling, can be converted.
func Known(unit string) bool {
	_, known := scaleOf(unit)
	return known
}
