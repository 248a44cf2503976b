package collect

import (
	"testing"

	"github.com/benchgraph/benchgraph/metrics"
)

// A mean has values of one unit: the mean of 100 ns and 4 ms is not 20.
func TestMeansConvert(t *testing.T) {
	c := New("")
	for _, s := range []metrics.Sample{
		{Metric: "a time", Value: 100, Unit: "ns"}, {Metric: "b time", Value: 4, Unit: "ms"},
		{Metric: "a size", Value: 2, Unit: "KiB"}, {Metric: "b size", Value: 3, Unit: "widgets"},
		{Metric: "a count", Value: 2}, {Metric: "b count", Value: 8},
	} {
		c.Put(s)
	}
	c.Means(func(s metrics.Sample) string { return s.Metric[2:] })
	if s, ok := c.Sample("time"); !ok || s.Value != 20000 || s.Unit != "ns" || len(s.Over) != 2 {
		t.Errorf("%+v, %v", s, ok)
	}
	if s, ok := c.Sample("size"); ok {
		t.Errorf("a mean over two dimensions: %+v", s)
	}
	if s, ok := c.Sample("count"); !ok || s.Value != 4 {
		t.Errorf("%+v, %v", s, ok)
	}
}
