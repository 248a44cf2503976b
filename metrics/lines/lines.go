// Package lines reads the output of programs line by line. Output is hostile: memory is bounded, and control characters
// and escape sequences are removed.
package lines

import (
	"bufio"
	"bytes"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/metrics/number"
)

// Max is the length in bytes up to which a line is read in one piece. It is below the 64 KiB that benchfmt's scanner
// can hold.
const Max = 63 << 10

const (
	// overlap is the number of bytes that two successive pieces of a long line have in common: an expression finds
	// every match that is shorter.
	overlap = 8 << 10
	// margin is the number of bytes at the end of a piece whose matches belong to the next piece, so that a number is
	// never seen in part.
	margin = 1 << 10
)

// Reader reads an output line by line in bounded memory. A carriage return also ends a line, since progress bars
// overwrite themselves with it, but only line feeds count for the line number.
type Reader struct {
	Number       int  // number of the current line, from 1
	Unterminated bool // the current line is the last one and has no end: it may have been cut off
	Cut          int  // number of the first line that was not read to its end; 0: none
	Whole        bool // set before the first Next: a line longer than Max comes in pieces that overlap
	From, To     int  // matches that end after From and up to To belong to this piece

	scanner *bufio.Scanner
	current []byte
	newline bool // the current line ended with a line feed
	skip    bool // the rest of an overlong line is skipped
	overrun bool // the current line is longer than Max
	resumed bool // the current piece is not the first one of its line
}

// New returns a reader of the lines of r. Next reads the first one.
func New(r io.Reader) *Reader {
	l := &Reader{scanner: bufio.NewScanner(r), newline: true}
	l.scanner.Buffer(make([]byte, 0, 8<<10), Max+1)
	l.scanner.Split(l.split)
	return l
}

// Next goes to the next line and reports whether there is one.
func (l *Reader) Next() bool {
	after := l.newline
	l.newline = false
	if !l.scanner.Scan() {
		return false
	}
	if after {
		l.Number++
	}
	if l.overrun && !l.Whole && l.Cut == 0 {
		l.Cut = l.Number
	}
	raw := l.scanner.Bytes()
	if !l.Whole {
		l.current = clean(raw)
		return true
	}
	l.current = withoutStamp(scrubbed(raw))
	l.From, l.To = -1, len(l.current)
	if l.resumed {
		l.current = scrubbed(raw)
		l.From, l.To = len(scrubbed(raw[:overlap-margin])), len(l.current)
	}
	if l.overrun {
		l.To -= len(scrubbed(raw[len(raw)-margin:]))
	}
	l.resumed = l.overrun
	return true
}

// Bytes returns the current line, cleaned, without its end and without a leading RFC 3339 time stamp. It is valid
// UTF-8, and valid until Next is called.
func (l *Reader) Bytes() []byte { return l.current }

// Raw returns the current line as it was read.
func (l *Reader) Raw() []byte { return l.scanner.Bytes() }

// Text returns a copy of Bytes as a string.
func (l *Reader) Text() string { return string(l.current) }

// Err returns the error of the underlying reader, once Next has returned false; nil: the output was read to its end.
func (l *Reader) Err() error { return l.scanner.Err() }

func (l *Reader) split(data []byte, atEOF bool) (int, []byte, error) {
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
			l.Number++
		}
		return end + 1, nil, nil
	case end >= 0:
		l.newline, l.overrun = data[end] == '\n', false
		return end + 1, data[:end:end], nil
	case l.skip:
		return len(data), nil, nil
	case len(data) > Max && l.Whole:
		l.overrun = true
		return len(data) - overlap, data, nil
	case len(data) > Max:
		l.skip, l.overrun = true, true
		return len(data), data, nil
	case atEOF && len(data) > 0:
		l.Unterminated, l.overrun = true, false
		return len(data), data, nil
	}
	return 0, nil, nil
}

// clean returns a line as a person reads it: without escape sequences, control and format characters, with U+FFFD for
// bytes that are not UTF-8. Most lines need no copy.
func clean(b []byte) []byte {
	b = scrubbed(b)
	if len(b) > Max {
		b = bytes.ToValidUTF8(b[:Max], nil)
	}
	return withoutStamp(b)
}

// scrubbed is clean for lines of any length, and keeps the time stamp.
func scrubbed(b []byte) []byte {
	for i, c := range b {
		if c < ' ' && c != '\t' || c >= 0x7f {
			return scrub(b, i)
		}
	}
	return b
}

// scrub copies b without escape sequences and control characters; the first n bytes are known to be clean.
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
			if n := len(out); n > 0 && number.Begins(out[n-1:]) && number.Begins(b[i:]) && r != ' ' {
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
