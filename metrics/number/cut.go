package number

import (
	"bytes"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Narrow replaces a blank between two digits that is not an ordinary space.
const Narrow = '\u2009'

var (
	// after matches the continuation of a number in front of it: digits, also behind a decimal mark or a group mark; an
	// exponent; letters that digits follow, as in 1m3s; the second half of 0x1F and of 1:05
	after = lazyregexp.New(`^(?:[0-9]|[.,'’\x{2009}][0-9]|_[0-9A-Za-z]|[eE][-+]?[0-9]|[A-Za-z]+[0-9]` +
		`|:[0-5][0-9](?:[^0-9]|$))`)
	// radix matches the continuation of a 0
	radix = lazyregexp.New(`^(?:[xX][0-9A-Fa-f]|[bB][01]|[oO][0-7])`)
	// before matches the beginning of a number that continues behind it
	before = lazyregexp.New(`(?:[0-9]|[0-9][.,'’_\x{2009}]|[0-9][eE][-+]?|[0-9][xXmh]|(?:^|[^.0-9])\.)$`)
	// sign matches a minus that belongs to the number behind it
	sign = lazyregexp.New(`(?:^|[ \t:=(\[,;|])[-−]$`)
	// group matches groups of three digits behind blanks, which may be the rest of a number
	group = lazyregexp.New(`^(?: [0-9]{3})+(?:[.,][0-9]+)?(?:[^0-9]|$)`)
	// onwards and began match all that belongs to a number, behind and before a place inside it
	onwards = lazyregexp.New(`^[0-9A-Za-z_.,'’\x{2009}:+-]*`)
	began   = lazyregexp.New(`(?:[-+−]?[0-9][0-9A-Za-z_.,'’\x{2009}+-]*|[-−.])$`)

	leading = lazyregexp.New(
		`^(?i:[-+]?(?:[0-9][0-9,]*(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?|\.[0-9]+|nan|inf(?:inity)?))`)
)

// around is the number of bytes on either side of a number that are read.
const around = 80

// Cut returns the number of which line[from:to] is only a part, such as 30,000 for its 30; empty: it is no part of a
// longer number. Each character of ends is the end of a number, on both sides.
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

// Groups reports whether a text begins with a blank and groups of three digits, which may belong to a number in front
// of it.
func Groups(rest []byte) bool { return group().Match(rest[:min(len(rest), around)]) }

// Leading splits a text into the number at its beginning and the rest. Digits in a form that is no number, such as
// 1.037,28, are split off as a whole, so that Parse refuses them; empty: no digit, nan or inf is there.
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

// goesOn returns the part of a text that belongs to a number in front of it.
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

// Begins reports whether a text begins like a number.
func Begins(b []byte) bool {
	if len(b) > 1 && (b[0] == '-' || b[0] == '+' || b[0] == '.') {
		b = b[1:]
	}
	return len(b) > 0 && b[0] >= '0' && b[0] <= '9'
}

// mostApart is the relative difference up to which two printed numbers may be the same, beyond their missing digits.
const mostApart = 0.005

// Same reports whether two numbers, given with their digits, may be the same one, printed with fewer digits in one
// place. Empty digits tell nothing about the precision.
func Same(a float64, digits string, b float64, others string) bool {
	apart := math.Abs(a - b)
	return apart <= mostApart*max(math.Abs(a), math.Abs(b)) || apart <= last(digits) || apart <= last(others)
}

// last returns the value of a one in the last digit of a number; 0: not known.
func last(digits string) float64 {
	_, decimals, _ := strings.Cut(digits, ".")
	if digits == "" || strings.Trim(decimals, "0123456789") != "" {
		return 0
	}
	return math.Pow10(-len(decimals))
}
