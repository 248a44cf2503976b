// Package printable makes foreign text safe to print: output of commands, names of files, addresses, subjects of
// commits, answers of servers. Its results do not move the cursor, change colours, reverse the writing direction or
// hide other text.
package printable

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Line returns any text as one printable line: it removes terminal sequences, turns white space into spaces, and
// turns invisible characters (control and format characters, invalid UTF-8) into U+FFFD. It breaks texts like
// ##[set-output name=x], which the log of a CI would execute as a command.
func Line(text string) string {
	if plain(text) {
		return unordered(strings.TrimSpace(text))
	}
	var b strings.Builder
	b.Grow(len(text))
	each([]byte(text), func(r rune, _ int) {
		if unicode.IsSpace(r) {
			r = ' '
		}
		b.WriteRune(r)
	})
	return unordered(strings.TrimSpace(b.String()))
}

// order matches the beginning of a command for GitHub's runner, Azure's agent or TeamCity.
var order = regexp.MustCompile(`#(#\w*\[)`)

func unordered(line string) string {
	if !strings.Contains(line, "##") {
		return line
	}
	return order.ReplaceAllString(line, "# $1")
}

// Lines applies Line to each line of a text and keeps the indentation. It removes empty lines at the end.
func Lines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		if lines[i] = Line(line); lines[i] != "" {
			lines[i] = indent + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// Cells returns how many columns of a terminal, or how many halves of a square in another font, a text needs at most.
func Cells(text string) int {
	n := 0
	for _, r := range text {
		n++
		if unicode.In(r, unicode.Mn, unicode.Me) {
			n--
		} else if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
			n++
		}
	}
	return n
}

// Fit cuts a text to a number of columns.
func Fit(text string, columns int) string {
	if Cells(text) <= columns {
		return text
	}
	n := 0
	for i, r := range text {
		if n += Cells(string(r)); n > columns-1 {
			if columns < 1 {
				return ""
			}
			return text[:i] + "…"
		}
	}
	return text
}

// plain reports whether a text is only printable ASCII, as most are.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// each passes the printable runes of a text to a function, with their length, and skips terminal sequences.
func each(text []byte, to func(r rune, size int)) {
	for i := 0; i < len(text); {
		if text[i] == '\x1b' {
			i += Sequence(text[i:])
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if !unicode.IsSpace(r) && !unicode.IsPrint(r) {
			r = utf8.RuneError
		}
		to(r, size)
		i += size
	}
}

// Sequence returns the length of the terminal sequence at the start of b, which begins with an escape character. For
// a sequence without an end it returns only the length of the introducer, so that no output can hide the rest of a
// line.
func Sequence(b []byte) int {
	if len(b) < 2 {
		return 1
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
			if b[i] < 0x20 || b[i] > 0x7e {
				return i
			}
		}
		return 2
	case ']', 'P', 'X', '^', '_':
		text := b[2:min(len(b), longestSequence)]
		end := bytes.Index(text, []byte("\x1b\\"))
		if bell := bytes.IndexByte(text, '\a'); bell >= 0 && (end < 0 || bell < end) {
			return 2 + bell + 1
		}
		if end >= 0 {
			return 2 + end + 2
		}
		return 2
	}
	if b[1] >= 0x20 && b[1] <= 0x7e {
		return 2
	}
	return 1
}

// Covered returns a line including the text that its terminal sequences hide; nil: there are none. It keeps the last
// letter of a colour or cursor sequence: an escape character before foreign text would take that text's first letter.
func Covered(line []byte) []byte {
	if bytes.IndexByte(line, '\x1b') < 0 {
		return nil
	}
	parts := bytes.Split(line, []byte("\x1b"))
	out := bytes.Clone(parts[0])
	for _, part := range parts[1:] {
		rest := bytes.TrimLeft(bytes.TrimPrefix(part, []byte("[")), "0123456789;?")
		if len(rest) > 0 && part[0] == '[' && unicode.IsLetter(rune(rest[0])) {
			part = rest
		}
		out = append(out, part...)
	}
	return out
}

// longestSequence limits the search for the end of a string sequence: otherwise, a text with many beginnings would
// take quadratic time.
const longestSequence = 2 << 10

// Source returns a file's text with a question mark for every unprintable byte. Positions do not change.
func Source(text []byte) []byte {
	out := bytes.Clone(text)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 || r != '\n' && r != '\t' && !unicode.IsPrint(r) &&
			!unicode.Is(unicode.Zs, r) {
			for j := range size {
				out[i+j] = '?'
			}
		}
		i += size
	}
	return out
}

// JSON escapes characters of a JSON text that must not be printed. Encoders escape only the control characters of
// ASCII.
func JSON(text []byte) []byte {
	hidden := func(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
	if bytes.IndexFunc(text, hidden) < 0 {
		return text
	}
	out := make([]byte, 0, len(text)+16)
	for _, r := range string(text) {
		switch {
		case !hidden(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// Writer passes text to a terminal line by line: tabs and line ends stay, and a carriage return ends a line. It is
// safe for concurrent use.
type Writer struct {
	w io.Writer

	mu  sync.Mutex
	buf []byte
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// longestWait is the largest part of an unfinished line that is held back.
const longestWait = 64 << 10

// Write passes on finished lines.
func (p *Writer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buf = append(p.buf, b...)
	end := bytes.LastIndexByte(p.buf, '\n') + 1
	if end == 0 && len(p.buf) > longestWait {
		end = len(p.buf)
	}
	if err := p.pass(end); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close passes on the rest. It does not close the underlying writer.
func (p *Writer) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pass(len(p.buf))
}

func (p *Writer) pass(n int) error {
	if n == 0 {
		return nil
	}
	text := bytes.ReplaceAll(p.buf[:n], []byte("\r\n"), []byte("\n"))
	out := make([]byte, 0, len(text))
	each(text, func(r rune, _ int) {
		switch {
		case r == '\r':
			r = '\n'
		case r != '\t' && r != '\n' && unicode.IsSpace(r):
			r = ' '
		}
		out = utf8.AppendRune(out, r)
	})
	p.buf = append(p.buf[:0], p.buf[n:]...)
	_, err := p.w.Write(out)
	return err
}
