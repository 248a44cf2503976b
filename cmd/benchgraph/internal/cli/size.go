package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// Size reads a size in bytes that has a unit, such as 20GiB, like sizes in the file. name is the flag or the
// environment variable with the text. The error is a *UsageError.
func Size(name, text string) (int64, error) {
	n, err := units.RAMInBytes(text)
	if _, bare := strconv.ParseFloat(text, 64); bare == nil && err == nil && n > 0 {
		return 0, usage(fmt.Sprintf("write %[1]sGiB or %[1]sMiB", text), "%s %q has no unit", name, text)
	}
	if err != nil || n <= 0 {
		return 0, usage("write it like 20GiB", "%s %q is no size", name, text)
	}
	return n, nil
}

// Age reads a duration, which may be in days, such as 30d or 12h. name is the flag with the text. The error is a
// *UsageError.
func Age(name, text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err == nil && n > 0 && n < 1e5 {
			return time.Duration(n * float64(24*time.Hour)), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, usage("write it like 30d or 12h", "%s %q is no age", name, text)
	}
	return d, nil
}
