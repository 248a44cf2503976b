package units

import (
	"strings"

	"github.com/benchgraph/benchgraph/metrics/names"
)

// OfPath guesses a unit from the last key of a path such as results.0.latency_ms. Empty: the key does not say.
func OfPath(path string) string {
	key := path[strings.LastIndexByte(path, '.')+1:]
	if amount, per, ok := strings.Cut(key, "/"); ok && Spelling(per) == "s" {
		amount = amount[strings.LastIndexByte(amount, ' ')+1:]
		if amount != strings.ToUpper(amount) {
			amount = strings.ToLower(amount) // Ops/sec, but KB/sec
		}
		return Canonical(amount + "/s")
	}
	words := names.Words(key)
	n := len(words)
	switch {
	case n >= 3 && words[n-2] == "per" && Spelling(words[n-1]) == "s":
		return Canonical(words[n-3] + "/" + words[n-1])
	case n >= 1 && (words[n-1] == "rps" || words[n-1] == "qps"):
		return "req/s"
	case n >= 2 && (IsTime(Spelling(words[n-1])) || words[n-1] == "bytes" || words[n-1] == "percent"):
		return Spelling(words[n-1])
	}
	return ""
}
