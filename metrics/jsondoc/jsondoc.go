// Package jsondoc finds the JSON documents in the output of a program, and the values in them.
package jsondoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// NotFinite is the text that replaces NaN and Infinity, which Python writes and encoding/json refuses. No document
// holds this control character by accident.
const NotFinite = "\x7f"

// Last returns the last whole JSON object or array in src, which may stand among other text: JSON lines, documents one
// after the other, a document after a log. Nil: there is none. cut is the one of Each.
func Last(src []byte) (document any, cut bool) {
	return Each(src, func(any) {})
}

// Each calls found for every whole document in src, and returns the last one. cut reports that another document begins
// behind it, and has no end. If an object has a key twice, found is called twice: with the first value of each key,
// then with the last.
func Each(src []byte, found func(any)) (document any, cut bool) {
	// spare bounds the bytes that failed attempts may read in all: without a bound, hostile input makes them quadratic.
	spare := 4*len(src) + 64<<10
	for at := 0; at < len(src); {
		begin := start(src[at:])
		if begin < 0 {
			break
		}
		at += begin
		decoder := json.NewDecoder(&finite{src: src[at:]})
		decoder.UseNumber()
		var whole any
		err := decoder.Decode(&whole)
		if err == nil && (src[at] == '{' || restBlank(src[at+int(decoder.InputOffset()):])) {
			text := src[at : at+int(decoder.InputOffset())]
			if colons(text) > members(whole) {
				found(firsts(text))
			}
			document, cut = whole, false
			found(whole)
			at += len(text)
			continue
		}
		var syntax *json.SyntaxError
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			cut = true
			spare -= len(src) - at
		case errors.As(err, &syntax):
			spare -= int(syntax.Offset)
		}
		if spare < 0 {
			cut = true
			break
		}
		line, _, more := bytes.Cut(src[at:], []byte("\n"))
		if inside := bytes.Index(line, []byte(`{"`)); src[at] == '[' && inside > 0 {
			at += inside // [rank0]: {"a": 1}
			continue
		}
		if !more {
			break
		}
		at += len(line) + 1
	}
	return document, cut
}

// start returns the place where a document may begin: a bracket at the start of a line, or {" anywhere in a line; -1:
// none.
func start(src []byte) int {
	for at := 0; at < len(src); {
		line, _, more := bytes.Cut(src[at:], []byte("\n"))
		text := bytes.TrimLeft(line, " \t\r\ufeff")
		if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
			return at + len(line) - len(text)
		}
		if inside := bytes.Index(line, []byte(`{"`)); inside >= 0 {
			return at + inside
		}
		if !more {
			break
		}
		at += len(line) + 1
	}
	return -1
}

// restBlank reports whether the rest of the line is blank.
func restBlank(src []byte) bool {
	line, _, _ := bytes.Cut(src, []byte("\n"))
	return len(bytes.TrimSpace(line)) == 0
}

// finite reads JSON and replaces NaN, Infinity and -Infinity by NotFinite of the same length, so that offsets stay
// valid.
type finite struct {
	src     []byte
	quoted  bool
	escaped bool
}

func (f *finite) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && len(f.src) > 0 {
		c := f.src[0]
		if !f.quoted && (c == 'N' || c == 'I' || c == '-') {
			for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
				if !bytes.HasPrefix(f.src, []byte(word)) {
					continue
				}
				if len(p)-n < len(word) {
					if n > 0 {
						return n, nil
					}
					return 0, io.ErrShortBuffer
				}
				n += copy(p[n:], `"`+NotFinite+`"`+strings.Repeat(" ", len(word)-3))
				f.src = f.src[len(word):]
				c = 0
				break
			}
			if c == 0 {
				continue
			}
		}
		switch {
		case f.escaped:
			f.escaped = false
		case f.quoted && c == '\\':
			f.escaped = true
		case c == '"':
			f.quoted = !f.quoted
		}
		p[n] = c
		n++
		f.src = f.src[1:]
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Characters returns the number of characters that the texts of a list have together.
func Characters(list []any) (n float64) {
	for _, item := range list {
		if text, ok := item.(string); ok {
			n += float64(utf8.RuneCountInString(strings.TrimSpace(text)))
		}
	}
	return n
}
