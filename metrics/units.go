package metrics

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// spelling returns the canonical spelling of a unit, or of one side of its slash.
func spelling(word string) string {
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

// canonicalUnit spells a unit in the one way that samples use: "requests per second" is req/s, msec is ms. A unit that
// it does not know stays as it is.
func canonicalUnit(unit string) string {
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
		return spelling(unit)
	}
	return spelling(strings.TrimSpace(amount)) + "/" + spelling(strings.TrimSpace(per))
}

// pathUnit guesses a unit from the last key of a path such as results.0.latency_ms. Empty: the key does not say.
func pathUnit(path string) string {
	key := path[strings.LastIndexByte(path, '.')+1:]
	if amount, per, ok := strings.Cut(key, "/"); ok && spelling(per) == "s" {
		amount = amount[strings.LastIndexByte(amount, ' ')+1:]
		if amount != strings.ToUpper(amount) {
			amount = strings.ToLower(amount) // Ops/sec, but KB/sec
		}
		return canonicalUnit(amount + "/s")
	}
	words := tokens(key)
	n := len(words)
	switch {
	case n >= 3 && words[n-2] == "per" && spelling(words[n-1]) == "s":
		return canonicalUnit(words[n-3] + "/" + words[n-1])
	case n >= 1 && (words[n-1] == "rps" || words[n-1] == "qps"):
		return "req/s"
	case n >= 2 && (isTime(spelling(words[n-1])) || words[n-1] == "bytes" || words[n-1] == "percent"):
		return spelling(words[n-1])
	}
	return ""
}

// Better says which direction of a metric is the better one. Known is false where neither is: counts of requests and
// tokens, and names and units that say nothing.
func Better(metric, unit string) (higher, known bool) {
	unit = canonicalUnit(unit)
	words := tokens(metric)
	has := func(names ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(names, w) })
	}
	bad := has("error", "errors", "miss", "misses", "failed", "failures", "failure", "retries", "retry", "drops",
		"dropped", "moved", "ask")
	amount, per, ratio := strings.Cut(unit, "/")
	switch {
	case ratio && per == "s", strings.HasSuffix(strings.ToLower(unit), "flops"):
		return !bad, true
	case isTime(amount), ratio && per == "op":
		return false, true
	case unit == "req" || unit == "tok":
		return false, false
	case bad, has("latency", "time", "duration", "elapsed", "delay", "ttft", "tpot", "itl", "e2el", "memory", "rss",
		"jitter"):
		return false, true
	case has("throughput", "goodput", "bandwidth", "rps", "qps", "tps", "ops", "speed", "speedup", "accuracy", "score",
		"flops", "hits", "hit", "accept", "acceptance", "correct", "rtfx"):
		return true, true
	}
	if n := len(words); n >= 2 && (words[n-1] == "s" || words[n-1] == "sec" || words[n-1] == "second") &&
		words[n-2] == "per" {
		return true, true
	}
	return false, false
}

// isTime says whether a unit's numerator is a time; Go benchmarks write p99-ns for a percentile.
func isTime(unit string) bool {
	unit = unit[strings.LastIndexByte(unit, '-')+1:]
	return slices.Contains([]string{"ns", "us", "ms", "s", "min", "h", "sec"}, unit)
}

// thousands is a number with separators, as in 1,234.5.
var thousands = regexp.MustCompile(`^[-+]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?$`)

var (
	errNoNumber  = errors.New("is not a number")
	errNotFinite = errors.New("is not finite")
	errTooLarge  = errors.New("is too large")
)

// number reads a decimal number.
func number(digits string) (float64, error) {
	digits = strings.TrimSpace(digits)
	if thousands.MatchString(digits) {
		digits = strings.ReplaceAll(digits, ",", "")
	}
	if strings.ContainsAny(digits, "xX_pP") {
		return 0, errNoNumber // hexadecimal and separated forms are Go's, not a benchmark's
	}
	v, err := strconv.ParseFloat(digits, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errTooLarge
	case err != nil:
		return 0, errNoNumber
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0, errNotFinite
	}
	return v, nil
}
