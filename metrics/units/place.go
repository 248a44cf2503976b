package units

import (
	"cmp"
	"strings"
)

// near is the number of bytes on either side of a number in which its unit is searched.
const near = 80

// At returns the unit of the number at line[from:to]: the declared one, unless the output prints another one of the
// same dimension.
func At(declared string, line []byte, from, to int) string {
	rest := line[to:]
	if letter := multiple(rest); letter != "" {
		next := following(string(rest[1:min(len(rest), near)]))
		return strings.TrimSpace(letter + " " + cmp.Or(next, declared))
	}
	printed := following(string(rest[:min(len(rest), near)]))
	if printed == "" {
		printed = labelled(string(line[max(0, from-near):from]))
	}
	return printedUnit(declared, printed)
}

// printedUnit returns the declared unit of a number, unless the output prints another one of the same dimension.
func printedUnit(declared, printed string) string {
	if declared == "" {
		return printed
	}
	if _, ok := Convert(1, printed, declared); ok {
		return printed
	}
	return declared
}

// following returns the unit right after a number; empty: the word there is no known unit.
func following(rest string) string {
	fields := strings.Fields(strings.TrimLeft(rest, " \t("))
	if len(fields) == 0 {
		return ""
	}
	word := strings.TrimRight(fields[0], ".,;:)")
	if len(fields) >= 3 && fields[1] == "per" {
		return word + "/" + strings.TrimRight(fields[2], ".,;:)")
	}
	unit := Canonical(word)
	if Known(unit) || strings.Contains(unit, "/") || IsTime(unit) || unit == "%" || unit == "B" ||
		unit == "req" || unit == "tok" {
		return unit
	}
	return ""
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// multiple returns the letter that multiplies a number such as 1.1k; empty: there is none.
func multiple(rest []byte) string {
	if len(rest) == 0 || !strings.ContainsRune("kKMGT", rune(rest[0])) {
		return ""
	}
	if len(rest) > 1 && (isDigit(rest[1]) || rest[1]|0x20 >= 'a' && rest[1]|0x20 <= 'z') {
		return ""
	}
	return string(rest[:1])
}

// labelled returns the unit in brackets at the end of a label, as in "Latency (ms): "; empty: there is no known unit.
func labelled(label string) string {
	label = strings.TrimRight(label, " \t:=|")
	if label == "" {
		return ""
	}
	begin := -1
	switch label[len(label)-1] {
	case ')':
		begin = strings.LastIndexByte(label, '(')
	case ']':
		begin = strings.LastIndexByte(label, '[')
	}
	if begin < 0 {
		return ""
	}
	unit := Canonical(label[begin+1 : len(label)-1])
	amount, per, _ := strings.Cut(unit, "/")
	if !Known(amount) {
		return ""
	}
	if per != "" && !Known(per) {
		return ""
	}
	return unit
}
