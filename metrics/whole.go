package metrics

import "strings"

// partial reports whether line[from:to] is only a part of the number that stands there, as the 1 of 1,100, the 1.0 of
// 1.0e3, the 12 of 12.5 and the 1 of the duration 1m3s.
func partial(line []byte, from, to int) bool {
	if to <= from || !isDigit(line[to-1]) {
		return false
	}
	if from > 0 && isDigit(line[from]) && (isDigit(line[from-1]) || from > 1 && line[from-1] == '.' &&
		isDigit(line[from-2])) {
		return true
	}
	digit := func(i int) bool { return i < len(line) && isDigit(line[i]) }
	if to == len(line) {
		return false
	}
	switch line[to] {
	case '.', 'm', 'h':
		return digit(to + 1)
	case ',':
		return digit(to+1) && digit(to+2) && digit(to+3) && !digit(to+4)
	case 'e', 'E':
		return digit(to+1) || to+1 < len(line) && (line[to+1] == '+' || line[to+1] == '-') && digit(to+2)
	}
	return isDigit(line[to])
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// multiple returns the letter that multiplies a number such as 1.1k, or 0 if there is none.
func multiple(rest []byte) string {
	if len(rest) == 0 || !strings.ContainsRune("kKMGT", rune(rest[0])) {
		return ""
	}
	if len(rest) > 1 && (isDigit(rest[1]) || rest[1]|0x20 >= 'a' && rest[1]|0x20 <= 'z') {
		return ""
	}
	return string(rest[:1])
}

// labelled returns the unit in brackets at the end of a label, as in "Latency (ms): "; empty: there is none that is
// known.
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
	unit := canonicalUnit(label[begin+1 : len(label)-1])
	amount, per, _ := strings.Cut(unit, "/")
	if _, known := scaleOf(amount); !known {
		return ""
	}
	if _, known := scaleOf(per); per != "" && !known {
		return ""
	}
	return unit
}
