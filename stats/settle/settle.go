// Package settle estimates the blocks, time and money that would settle an inconclusive row.
package settle

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Estimate is extrapolated from the measured blocks of a row.
type Estimate struct {
	Blocks   int
	Took     time.Duration // of these blocks, which all variants of the commit share; 0: not known
	GPUHours float64
	Money    float64 // in the currency of the file's cost block; 0: no price is declared for the devices
}

// MarshalJSON writes null for values that are not known.
func (s Estimate) MarshalJSON() ([]byte, error) {
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

// String returns the estimate for people: 40 more blocks, about 2.1 h, 4.3 GPU-hours, a cost of 17.20.
func (s Estimate) String() string {
	parts := []string{fmt.Sprintf("%d more blocks", s.Blocks)}
	if s.Blocks == 1 {
		parts[0] = "1 more block"
	}
	if s.Took > 0 {
		parts = append(parts, "about "+text(s.Took))
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

// text returns a duration for people, with about two significant digits.
func text(d time.Duration) string {
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
