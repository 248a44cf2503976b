package units

import (
	"slices"
	"strings"
	"unicode"
)

// Words of a key that tell the meaning of a time at its end.
var (
	durations = []string{"time", "latency", "duration", "elapsed", "delay", "wait", "jitter", "ttft", "tpot", "itl",
		"e2el", "e2e", "first", "last", "inter", "per", "each"}
	rates  = []string{"throughput", "goodput", "bandwidth", "bw", "rate", "speed", "tps", "rps", "qps"}
	totals = []string{"output", "input", "total", "prompt", "generated", "decode", "prefill"}
)

// OfPath guesses a unit from the last key of a path such as results.0.latency_ms. Empty: the key does not tell, or has
// two readings. A wrong guess turns a win into a loss; a missing one costs the user a line in the file.
func OfPath(path string) string {
	key := strings.TrimSpace(path[strings.LastIndexByte(path, '.')+1:])
	if strings.HasSuffix(key, ")") || strings.HasSuffix(key, "]") {
		return labelled(key)
	}
	amount, per, ok := strings.Cut(key, "/")
	if per = Spelling(strings.TrimSpace(per)); ok && IsTime(per) {
		if of := words(amount); len(of) > 0 {
			return counted(of[len(of)-1]) + "/" + per
		}
		return ""
	}
	of := words(key)
	n := len(of)
	if n == 0 {
		return ""
	}
	switch last := strings.ToLower(of[n-1]); {
	case last == "rps" || last == "qps":
		return "req/s"
	case n >= 2 && (last == "bytes" || last == "percent"):
		return Spelling(last)
	case n >= 2 && IsTime(Spelling(last)):
		return timed(of[:n-1], last)
	}
	return ""
}

// timed returns the unit of a key that ends in a time: that time, or a rate with the amount before it.
func timed(before []string, last string) string {
	per := Spelling(last)
	lower := words(strings.ToLower(strings.Join(before, " ")))
	has := func(of []string) bool {
		return slices.ContainsFunc(lower, func(w string) bool { return slices.Contains(of, w) })
	}
	word := lower[len(lower)-1]
	amount := counted(before[len(before)-1])
	of, known := scaleOf(amount)
	known = known && of.dimension != "time" && of.dimension != "ratio"
	switch {
	case word == "per" && len(before) >= 2:
		return counted(before[len(before)-2]) + "/" + per
	case word == "per" || last == "min": // min rather means the minimum
		return ""
	case has(durations):
		return per
	case known && (has(rates) || per == "s" && whole(lower)):
		return amount + "/" + per
	case known || slices.Contains(rates, word) || last == "h":
		return ""
	}
	return per
}

// whole reports whether the words before a time end in an amount, so that the key is a rate. The keys 3 tokens s and
// load requests s may be the times of these tokens and requests instead.
func whole(of []string) bool {
	n := len(of)
	switch of[n-1] {
	case "token", "request", "byte", "item", "op":
		return false
	case "tokens", "requests", "bytes", "items":
		return n == 1 || slices.Contains(totals, of[n-2])
	}
	return n == 1 || !unicode.IsDigit(rune(of[n-2][0]))
}

// counted returns the spelling of an amount: Ops is ops, and gb is GB.
func counted(word string) string {
	switch unit := Spelling(word); {
	case Known(unit):
		return unit
	case len(word) > 1 && Known(strings.ToUpper(word)):
		return strings.ToUpper(word)
	case word == strings.ToUpper(word):
		return unit
	}
	return Spelling(strings.ToLower(word))
}

// words returns the words of a key with their case.
func words(key string) []string {
	return strings.FieldsFunc(key, func(r rune) bool {
		return r != '%' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
