package stats

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Settle estimates the further blocks that would settle an inconclusive row, by the blocks that were measured.
type Settle struct {
	Blocks   int
	Took     time.Duration // of these blocks, which all variants of the commit share; 0: not known
	GPUHours float64
	Money    float64 // in the currency of the file's cost block; 0: no price is declared for the devices
}

// MarshalJSON writes null for what is not known.
func (s Settle) MarshalJSON() ([]byte, error) {
	document := struct {
		Blocks   int      `json:"blocks"`
		Seconds  *float64 `json:"seconds"`
		GPUHours *float64 `json:"gpu_hours"`
		Money    *float64 `json:"money"`
	}{Blocks: s.Blocks}
	if s.Took > 0 {
		seconds := s.Took.Seconds()
		document.Seconds, document.GPUHours = &seconds, &s.GPUHours
	}
	if s.Money > 0 {
		document.Money = &s.Money
	}
	return json.Marshal(document)
}

// String is the estimate for people: 40 more blocks, about 2.1 h, 4.3 GPU-hours, a cost of 17.20.
func (s Settle) String() string {
	parts := []string{fmt.Sprintf("%d more blocks", s.Blocks)}
	if s.Blocks == 1 {
		parts[0] = "1 more block"
	}
	if s.Took > 0 {
		parts = append(parts, "about "+timeText(s.Took))
	}
	if s.GPUHours > 0 {
		parts = append(parts, fmt.Sprintf("%.2g GPU-hours", s.GPUHours))
		if s.GPUHours >= 10 {
			parts[len(parts)-1] = fmt.Sprintf("%.0f GPU-hours", s.GPUHours)
		}
	}
	switch {
	case s.Money >= 0.01:
		parts = append(parts, fmt.Sprintf("a cost of %.2f", s.Money))
	case s.Money > 0:
		parts = append(parts, "a cost below 0.01")
	}
	return strings.Join(parts, ", ")
}

// twoDigits is a number with two digits that count, and never with an exponent where it is large.
func twoDigits(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// timeText is a duration for people, with two digits that count.
func timeText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.2g s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	}
	return fmt.Sprintf("%.0f h", d.Hours())
}

// OpenText describes an inconclusive row: the smallest effect that its blocks could have shown, and the blocks that
// would settle the row. It is empty for other rows, and if neither is known.
func (c Comparison) OpenText() string {
	if c.Outcome != Inconclusive || c.Detectable <= 0 {
		return ""
	}
	text := "could have seen ≥ " + twoDigits(100*c.Detectable) + " %; "
	switch {
	case c.Settle != nil:
		return text + c.Settle.String() + " would settle it"
	case c.Needed > c.Blocks:
		return text + Settle{Blocks: c.Needed - c.Blocks}.String() + " would settle it"
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
