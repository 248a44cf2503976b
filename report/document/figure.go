package document

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/stats"
)

// TestP returns the p-value of a row after the name of its test.
func TestP(c stats.Comparison) string {
	name, p := c.TestP()
	return name + " " + Probability(p)
}

// Probability returns a p or q as text; it never prints 0.
func Probability(p float64) string {
	if p < 0.0001 {
		return "<0.0001"
	}
	return strconv.FormatFloat(p, 'f', 4, 64)
}

// Number returns a value with four significant digits, or rounded to a whole number if it has more than four digits
// before the point.
func Number(v float64) string {
	size := math.Abs(v)
	switch {
	case size >= 1000 && size < 1e9:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 1e-3 && size < 1000:
		return strconv.FormatFloat(v, 'f', max(0, 3-int(math.Floor(math.Log10(size)))), 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// Share returns a percentage with its numbers: part of whole things of a kind.
func Share(part, whole int, kind string) string {
	if whole == 0 {
		return "0 of 0 " + kind
	}
	return fmt.Sprintf("%d of %d %s (%.0f %%)", part, whole, kind, 100*float64(part)/float64(whole))
}

// CaveatTexts returns the texts of a row's caveats.
func CaveatTexts(c stats.Comparison) []string {
	texts := make([]string, len(c.Caveats))
	for i, caveat := range c.Caveats {
		texts[i] = caveat.Text
	}
	return texts
}

// OptionalTime returns a time in words; empty: not known.
func OptionalTime(seconds *float64) string {
	if seconds == nil {
		return ""
	}
	return printable.Duration(time.Duration(*seconds * float64(time.Second)))
}

// Shorten returns text as one printable line of at most that many columns.
func Shorten(text string, columns int) string { return printable.Fit(printable.Line(text), columns) }
