package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// Size reads a size in bytes, such as 20GiB, that has a unit as sizes of the language have. It is of what is called
// name: a flag, or a variable of the environment. The error is a *UsageError.
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

// Age reads a duration that may be given in days, such as 30d or 12h. It is the value of the flag name. The error is a
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
