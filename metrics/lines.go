package metrics

import (
	"bufio"
	"bytes"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/metrics/number"
)

// maxLine is how much of a line is looked at at once, in bytes. It stays below the 64 KiB that benchfmt's scanner can
// hold.
const maxLine = 63 << 10

const (
	// overlap is how much of a piece of a longer line the next piece begins with, in bytes: an expression finds what is
	// shorter wherever it stands.
	overlap = 8 << 10
	// margin is how much of the next piece stands at the end of one, so that a number is seen as a whole.
	margin = 1 << 10
)

// lines reads an output line by line in bounded memory. A carriage return ends a line, too, since progress bars
// overwrite themselves with it, but only a line feed counts for the number.
type lines struct {
	number       int  // of the current line, from 1
	unterminated bool // the current line is the last one and has no end: it may have been cut off
	cut          int  // the first line of which a part was not read; 0: none
	whole        bool // set before the first call of next: a longer line comes in pieces that overlap
	from, to     int  // a piece has what ends after from, and not after to: other pieces have the rest

	scanner *bufio.Scanner
	current []byte
	newline bool // the current line ended with a line feed
	skip    bool // the rest of an overlong line is being passed over
	overrun bool // the current line is longer than maxLine
	resumed bool // the current piece is not the first one of its line
}

func newLines(r io.Reader) *lines {
	l := &lines{scanner: bufio.NewScanner(r), newline: true}
	l.scanner.Buffer(make([]byte, 0, 8<<10), maxLine+1)
	l.scanner.Split(l.split)
	return l
}

// next goes to the next line and reports whether there is one.
func (l *lines) next() bool {
	after := l.newline
	l.newline = false
	if !l.scanner.Scan() {
		return false
	}
	if after {
		l.number++
	}
	if l.overrun && !l.whole && l.cut == 0 {
		l.cut = l.number
	}
	raw := l.scanner.Bytes()
	if !l.whole {
		l.current = clean(raw)
		return true
	}
	l.current = withoutStamp(scrubbed(raw))
	l.from, l.to = -1, len(l.current)
	if l.resumed {
		l.current = scrubbed(raw)
		l.from, l.to = len(scrubbed(raw[:overlap-margin])), len(l.current)
	}
	if l.overrun {
		l.to -= len(scrubbed(raw[len(raw)-margin:]))
	}
	l.resumed = l.overrun
	return true
}

// bytes is the current line, cleaned, without its end and without a leading RFC 3339 time stamp. It is valid UTF-8,
// and valid until next is called.
func (l *lines) bytes() []byte { return l.current }

func (l *lines) text() string { return string(l.current) }

func (l *lines) err() error { return l.scanner.Err() }

func (l *lines) split(data []byte, atEOF bool) (int, []byte, error) {
	end := bytes.IndexByte(data, '\n')
	head := data
	if end >= 0 {
		head = data[:end]
	}
	if cr := bytes.IndexByte(head, '\r'); cr >= 0 {
		end = cr
	}
	switch {
	case end >= 0 && l.skip:
		l.skip = false
		if data[end] == '\n' {
			l.number++
		}
		return end + 1, nil, nil
	case end >= 0:
		l.newline, l.overrun = data[end] == '\n', false
		return end + 1, data[:end:end], nil
	case l.skip:
		return len(data), nil, nil
	case len(data) > maxLine && l.whole:
		l.overrun = true
		return len(data) - overlap, data, nil
	case len(data) > maxLine:
		l.skip, l.overrun = true, true
		return len(data), data, nil
	case atEOF && len(data) > 0:
		l.unterminated, l.overrun = true, false
		return len(data), data, nil
	}
	return 0, nil, nil
}

// clean returns a line as a person reads it: without escape sequences, control and format characters, with U+FFFD for
// bytes that are not UTF-8. Most lines need no copy.
func clean(b []byte) []byte {
	b = scrubbed(b)
	if len(b) > maxLine {
		b = bytes.ToValidUTF8(b[:maxLine], nil)
	}
	return withoutStamp(b)
}

// scrubbed is clean for any length, and with the time stamp.
func scrubbed(b []byte) []byte {
	for i, c := range b {
		if c < ' ' && c != '\t' || c >= 0x7f {
			return scrub(b, i)
		}
	}
	return b
}

// scrub copies b without what does not belong to the text; the first n bytes are known to be good.
func scrub(b []byte, n int) []byte {
	out := append(make([]byte, 0, len(b)), b[:n]...)
	for i := n; i < len(b); {
		if b[i] == '\x1b' {
			i += printable.Sequence(b[i:])
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		i += size
		switch {
		case r == '\t':
			out = append(out, '\t')
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
		case unicode.IsSpace(r):
			if n := len(out); n > 0 && startsNumber(out[n-1:]) && startsNumber(b[i:]) && r != ' ' {
				out = utf8.AppendRune(out, number.Narrow)
			} else {
				out = append(out, ' ')
			}
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// withoutStamp removes the time stamp that container runtimes and CI services put before every line.
func withoutStamp(b []byte) []byte {
	const shape = "0000-00-00T00:00:00"
	rest := bytes.TrimPrefix(b, []byte("["))
	if len(rest) <= len(shape) {
		return b
	}
	for i, want := range []byte(shape) {
		c := rest[i]
		if want == '0' && (c < '0' || c > '9') || want != '0' && c != want {
			return b
		}
	}
	rest = rest[len(shape):]
	for len(rest) > 0 && (rest[0] == '.' || rest[0] == ',' || rest[0] >= '0' && rest[0] <= '9') {
		rest = rest[1:]
	}
	if len(rest) > 0 && rest[0] == 'Z' {
		rest = rest[1:]
	} else if len(rest) >= 6 && (rest[0] == '+' || rest[0] == '-') && rest[3] == ':' {
		rest = rest[6:]
	}
	rest = bytes.TrimPrefix(rest, []byte("]"))
	if len(rest) > 0 && rest[0] != ' ' && rest[0] != '\t' {
		return b
	}
	if len(rest) > 0 {
		rest = rest[1:]
	}
	return rest
}
