package printable

import (
	"fmt"
	"time"
)

// Duration returns a duration in at most two units: 3 h 20 min, 12 min 5 s, 4.2 s, 30 ms.
func Duration(d time.Duration) string {
	d = d.Round(time.Millisecond)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	d = d.Round(time.Second)
	two := func(big, small time.Duration, bigName, smallName string) string {
		text := fmt.Sprintf("%d %s", d/big, bigName)
		if rest := d % big / small; rest > 0 {
			text += fmt.Sprintf(" %d %s", rest, smallName)
		}
		return text
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return two(time.Minute, time.Second, "min", "s")
	case d < 48*time.Hour:
		return two(time.Hour, time.Minute, "h", "min")
	}
	return two(24*time.Hour, time.Hour, "d", "h")
}
