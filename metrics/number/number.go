// Package number decides which texts of an output are numbers, and where in a line a number ends.
package number

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Errors of Parse; each is the end of a sentence about the text.
var (
	ErrNone     = errors.New("is not a number")
	ErrInfinite = errors.New("is not finite")
	ErrTooLarge = errors.New("is too large")
)

// largest is the largest number that is accepted. No tool measures as much. A larger number has no finite square, or no
// finite value in another unit: its figures would be infinite, and a compare with such a row is refused for all of its
// candidates.
const largest = 1e150

// divided matches a number with commas between groups of three digits; plainly matches one that has no other reading.
var (
	divided = lazyregexp.New(`^[-+]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?$`)
	plainly = lazyregexp.New(`,.*[,.]`)
)

// Parse reads a text that is one decimal number with blanks around it. Commas may divide its digits into groups of
// three if there is no other reading, as in 1,234,567 and 1,234.5. The text 1,234 is refused: the comma may be a
// decimal mark.
func Parse(text string) (float64, error) {
	text = strings.TrimSpace(text)
	if plainly().MatchString(text) {
		return Divided(text)
	}
	if strings.ContainsAny(text, "xX_pP") {
		return 0, ErrNone // Go's hexadecimal and separated forms, which no benchmark prints
	}
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, ErrNone
	case err == nil && (math.IsNaN(v) || math.IsInf(v, 0)):
		return 0, ErrInfinite
	case math.Abs(v) > largest:
		return 0, ErrTooLarge
	}
	return v, nil
}

// Divided is Parse for a text in which a comma can only divide digits: 1,234 is 1234.
func Divided(text string) (float64, error) {
	text = strings.TrimSpace(text)
	if strings.Contains(text, ",") {
		if !divided().MatchString(text) {
			return 0, ErrNone
		}
		text = strings.ReplaceAll(text, ",", "")
	}
	return Parse(text)
}

// Round removes the digits that logarithms add by rounding: the mean of equal values is that value.
func Round(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64)
	if err != nil {
		return v
	}
	return r
}
