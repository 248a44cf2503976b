package document

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec/recorded"
)

// Statement returns a line of another study in words.
func Statement(l recorded.Line) string {
	parts := []string{l.Commit, l.Variant(), cmp.Or(l.Claim, l.Verdict, l.Metric, l.Status)}
	if l.Count != nil {
		parts = append(parts, fmt.Sprint(*l.Count))
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// Bar returns a bar whose length is proportional to value; most is the full length.
func Bar(value, most float64) string {
	const width = 10
	if most == 0 {
		return ""
	}
	return strings.Repeat("█", int(math.Round(width*value/most)))
}

// scale identifies values that share an axis.
type scale struct{ commit, metric, unit string }

// ScaleOf returns the scale of an entry.
func ScaleOf(e recorded.Entry) scale { return scale{e.Commit, e.Metric, e.Unit} }

// Largest returns the largest value of each scale.
func Largest(b *recorded.Book) map[scale]float64 {
	most := map[scale]float64{}
	for _, e := range b.Entries {
		if e.Value != nil {
			most[ScaleOf(e)] = max(most[ScaleOf(e)], math.Abs(*e.Value))
		}
	}
	return most
}
