package stats

import (
	"fmt"

	"github.com/benchgraph/benchgraph/stats/settle"
)

// TwoDigits writes a number with two significant digits, and a large one without an exponent.
func TwoDigits(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// OpenText describes an inconclusive row: the smallest effect that its blocks could have shown, and the blocks that
// would settle the row. It is empty for other rows, and if neither is known.
func (c Comparison) OpenText() string {
	if c.Outcome != Inconclusive || c.Detectable <= 0 {
		return ""
	}
	text := "could have seen ≥ " + TwoDigits(100*c.Detectable) + " %; "
	switch {
	case c.Settle != nil:
		return text + c.Settle.String() + " would settle it"
	case c.Needed > c.Blocks:
		return text + settle.Estimate{Blocks: c.Needed - c.Blocks}.String() + " would settle it"
	}
	return text + fmt.Sprintf("not even %d blocks would settle an effect that is as large as the margin", farthest)
}

// Why returns the reason of a row for people. For an inconclusive row, it includes the time and money that would settle
// the row.
func (c Comparison) Why() string {
	switch open := c.OpenText(); {
	case open == "" || c.Settle != nil && c.Settle.Took == 0:
		return c.Reason
	case c.Settle != nil:
		return c.Reason + " (" + c.Settle.String() + ")"
	case c.Needed == 0:
		return c.Reason + "; it " + open
	}
	return c.Reason
}
