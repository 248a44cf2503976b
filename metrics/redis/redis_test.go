package redis

import (
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/metricstest"
)

// A line that is longer than any line of a result causes a warning, and does not shift the numbers of later lines.
func TestLongLines(t *testing.T) {
	r := metricstest.Parse(t, Parser{}, strings.Repeat("x", lines.Max)+"\n"+strings.Repeat("y",
		lines.Max+1)+"\nSET: 1 requests per second\n")
	if len(r.Samples) != 2 || r.Samples[0].Line != 3 || len(r.Warnings) != 1 || r.Warnings[0].Line != 2 {
		t.Errorf("%+v", r)
	}
}
