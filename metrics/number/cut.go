package number

import (
	"bytes"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Narrow is the blank to which an output's blanks between two digits are changed that are none of the keyboard's.
const Narrow = '\u2009'

var (
	// after matches what goes on with a number in front of it: digits, also behind a mark or a mark of groups; an
	// exponent; letters that digits follow, as in 1m3s; the second half of 0x1F and of 1:05
	after = lazyregexp.New(`^(?:[0-9]|[.,'’\x{2009}][0-9]|_[0-9A-Za-z]|[eE][-+]?[0-9]|[A-Za-z]+[0-9]` +
		`|:[0-5][0-9](?:[^0-9]|$))`)
	// radix matches what goes on with a 0
	radix = lazyregexp.New(`^(?:[xX][0-9A-Fa-f]|[bB][01]|[oO][0-7])`)
	// before matches what a number behind it goes on with
	before = lazyregexp.New(`(?:[0-9]|[0-9][.,'’_\x{2009}]|[0-9][eE][-+]?|[0-9][xXmh]|(?:^|[^.0-9])\.)$`)
	// sign matches a minus that belongs to the number behind it
	sign = lazyregexp.New(`(?:^|[ \t:=(\[,;|])[-−]$`)
	// group matches three digits behind a blank, which may be the rest of a number
	group = lazyregexp.New(`^(?: [0-9]{3})+(?:[.,][0-9]+)?(?:[^0-9]|$)`)
	// onwards and began match all that belongs to the number behind and before such a place
	onwards = lazyregexp.New(`^[0-9A-Za-z_.,'’\x{2009}:+-]*`)
	began   = lazyregexp.New(`(?:[-+−]?[0-9][0-9A-Za-z_.,'’\x{2009}+-]*|[-−.])$`)

	leading = lazyregexp.New(
		`^(?i:[-+]?(?:[0-9][0-9,]*(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?|\.[0-9]+|nan|inf(?:inity)?))`)
)

// around is how many bytes beside a number are looked at.
const around = 80

// Cut returns the number of which line[from:to] is only a part, as 30,000 where that is its 30; empty: it is no part of
// a longer one. The characters of ends begin and end a number, whatever stands beside them.
func Cut(line []byte, from, to int, ends string) string {
	if to <= from || from < 0 || to > len(line) || !bytes.ContainsAny(line[from:to], "0123456789") {
		return ""
	}
	head, tail := line[max(0, from-around):from], line[to:min(len(line), to+around)]
	cut := false
	if r, size := utf8.DecodeRune(tail); size > 0 && !strings.ContainsRune(ends, r) && lastDigit(line[from:to]) {
		cut = after().Match(tail) || isZero(line[from:to]) && radix().Match(tail)
	}
	if r, size := utf8.DecodeLastRune(head); size > 0 && !strings.ContainsRune(ends, r) && !cut {
		cut = isDigit(line[from]) && (before().Match(head) || sign().Match(head)) ||
			line[from] == '.' && isDigit(head[len(head)-1])
	}
	if !cut {
		return ""
	}
	head = began().Find(head)
	if ends != "" {
		head = head[bytes.LastIndexAny(head, ends)+1:]
	}
	return string(head) + string(line[from:to]) + string(goesOn(tail, ends))
}

// Groups reports whether a blank and groups of three digits stand at the beginning of a text, which may belong to a
// number in front of it.
func Groups(rest []byte) bool { return group().Match(rest[:min(len(rest), around)]) }

// Leading splits a text into the number at its beginning and the rest. Digits that go on in a form that is no number,
// such as 1.037,28, are split off as a whole, for Parse to refuse; empty: no digit, nan or inf stands there.
func Leading(text string) (digits, behind string) {
	digits = leading().FindString(text)
	if digits == "" {
		return "", text
	}
	line := []byte(text[:min(len(text), len(digits)+around)])
	if Cut(line, 0, len(digits), "") != "" {
		digits += string(goesOn(line[len(digits):], ""))
	} else if Groups(line[len(digits):]) && !strings.ContainsAny(digits, ".nN") {
		digits += group().FindString(text[len(digits):])
		digits = strings.TrimRight(digits, " \t")
	}
	return digits, text[len(digits):]
}

// goesOn is the part of a text that belongs to a number in front of it.
func goesOn(tail []byte, ends string) []byte {
	tail = onwards().Find(tail)
	if ends != "" {
		if at := bytes.IndexAny(tail, ends); at >= 0 {
			tail = tail[:at]
		}
	}
	return bytes.TrimRight(tail, ",:.'’_")
}

func lastDigit(b []byte) bool { return isDigit(b[len(b)-1]) || b[len(b)-1] == '.' }

func isZero(b []byte) bool { return b[len(b)-1] == '0' && (len(b) == 1 || !isDigit(b[len(b)-2])) }

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// Begins says whether a text begins as a number does.
func Begins(b []byte) bool {
	if len(b) > 1 && (b[0] == '-' || b[0] == '+' || b[0] == '.') {
		b = b[1:]
	}
	return len(b) > 0 && b[0] >= '0' && b[0] <= '9'
}

// mostApart is how far two statements of one number may be from each other, beyond the digits that were cut off.
const mostApart = 0.005

// Same says whether two numbers with their digits may be one, of which fewer digits were printed in one place. Digits
// that are empty say nothing of where they were cut off.
func Same(a float64, digits string, b float64, others string) bool {
	apart := math.Abs(a - b)
	return apart <= mostApart*max(math.Abs(a), math.Abs(b)) || apart <= last(digits) || apart <= last(others)
}

// last is what one in the last digit of a number stands for; 0: its digits do not say.
func last(digits string) float64 {
	_, decimals, _ := strings.Cut(digits, ".")
	if digits == "" || strings.Trim(decimals, "0123456789") != "" {
		return 0
	}
	return math.Pow10(-len(decimals))
}
