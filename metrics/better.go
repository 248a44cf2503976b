package metrics

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/metrics/names"
	"github.com/benchgraph/benchgraph/metrics/units"
)

// shortestTime is the shortest duration that counts as measured, in any unit: a shorter one has underflowed.
const shortestTime = 1e-300

// Vanished returns the reason why a sample is no measurement: it is a duration of zero, or next to zero; empty: it is a
// measurement.
func (s Sample) Vanished() string {
	amount, per, _ := strings.Cut(units.Canonical(s.Unit), "/")
	if !units.IsTime(amount) || units.IsTime(per) || math.Abs(s.Value) >= shortestTime {
		return ""
	}
	return fmt.Sprintf("%s is %s %s, and a duration of zero is no measurement", s.Metric,
		cmp.Or(s.Printed, strconv.FormatFloat(s.Value, 'g', -1, 64)), s.Unit)
}

// Better returns the direction in which a metric improves. known is false if there is none, as for counts of requests
// and tokens, or if name and unit do not tell.
func Better(metric, unit string) (higher, known bool) {
	unit = units.Canonical(unit)
	words := names.Words(metric)
	has := func(names ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(names, w) })
	}
	bad := has("error", "errors", "miss", "misses", "failed", "failures", "failure", "retries", "retry", "drops",
		"dropped", "moved", "ask")
	amount, per, ratio := strings.Cut(unit, "/")
	switch {
	case ratio && (per == "s" || units.IsTime(per) && !units.IsTime(amount)),
		strings.HasSuffix(strings.ToLower(unit), "flops"):
		return !bad, true
	case units.IsTime(amount), ratio && per == "op":
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
