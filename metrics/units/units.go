// Package units describes the units that benchmarks print: their spellings, their dimensions, and their conversion.
package units

import (
	"slices"
	"strings"
)

// Spelling returns the canonical spelling of a unit, or of one side of its slash.
func Spelling(word string) string {
	switch strings.ToLower(word) {
	case "nsec", "nsecs", "nanosecond", "nanoseconds":
		return "ns"
	case "usec", "usecs", "microsecond", "microseconds", "µs", "μs":
		return "us"
	case "msec", "msecs", "millisecond", "milliseconds":
		return "ms"
	case "sec", "secs", "second", "seconds":
		return "s"
	case "minute", "minutes":
		return "min"
	case "request", "requests", "reqs":
		return "req"
	case "token", "tokens", "toks":
		return "tok"
	case "byte", "bytes":
		return "B"
	case "percent":
		return "%"
	}
	return word
}

// Canonical spells a unit in the one way that samples use: "requests per second" is req/s, msec is ms. An unknown unit
// stays as it is.
func Canonical(unit string) string {
	unit = strings.TrimSpace(unit)
	switch strings.ToLower(unit) {
	case "rps", "qps":
		return "req/s"
	case "ns/op", "b/op", "allocs/op":
		return unit
	}
	if amount, per, ok := strings.Cut(unit, " per "); ok {
		unit = amount + "/" + per
	}
	amount, per, ok := strings.Cut(unit, "/")
	if !ok {
		return Spelling(unit)
	}
	return Spelling(strings.TrimSpace(amount)) + "/" + Spelling(strings.TrimSpace(per))
}

// Quantity returns the kind of amount that a unit measures if such amounts cannot be negative: duration, size, rate or
// count; empty: they can, or the unit is unknown.
func Quantity(unit string) string {
	unit = Canonical(unit)
	amount, per, ratio := strings.Cut(unit, "/")
	of, known := scaleOf(amount)
	switch {
	case ratio && (IsTime(per) || per == "op"):
		return "rate"
	case ratio || !known:
		return ""
	}
	return map[string]string{"time": "duration", "bytes": "size", "flops": "rate", "req": "count", "tok": "count",
		"op": "count", "item": "count"}[of.dimension]
}

// IsTime reports whether a unit's numerator is a time; Go benchmarks write p99-ns for a percentile.
func IsTime(unit string) bool {
	unit = unit[strings.LastIndexByte(unit, '-')+1:]
	return slices.Contains([]string{"ns", "us", "ms", "s", "min", "h", "sec"}, unit)
}
