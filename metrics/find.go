package metrics

import (
	"strings"

	"github.com/benchgraph/benchgraph/metrics/names"
)

// Find returns the sample of a metric: the one with that name, or else the only one whose name has the same words, so
// that "SET requests per second" finds set_requests_per_second. A leading Benchmark is ignored. False: there is no such
// sample, or more than one.
func Find(samples []Sample, metric string) (Sample, bool) {
	for _, s := range samples {
		if s.Metric == metric {
			return s, true
		}
	}
	want := strings.Join(names.Words(strings.TrimPrefix(metric, "Benchmark")), " ")
	var found []Sample
	for _, s := range samples {
		if want != "" && strings.Join(names.Words(s.Metric), " ") == want {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		return Sample{}, false
	}
	return found[0], true
}
