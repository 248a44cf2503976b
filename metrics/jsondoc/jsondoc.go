// Package jsondoc finds the JSON documents in the output of a program, and the values in them.
package jsondoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode"
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
		rest := src[at:]
		if src[at] == '[' {
			if next := upTo(rest); next >= 0 && rest[next] == '{' {
				at += next // [rank0]: {"a": 1}
				continue
			}
		}
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			break
		}
		at += end + 1
	}
	return document, cut
}

// start returns the place where a document may begin: a bracket at the start of a line, or {" anywhere in a line; -1:
// none. It reads no further than that place: one line may hold millions of documents.
func start(src []byte) int {
	for at := 0; at < len(src); {
		text := bytes.TrimLeft(src[at:], " \t\r\ufeff")
		at = len(src) - len(text)
		if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
			return at
		}
		next := upTo(text)
		if next < 0 {
			break
		}
		if text[next] == '{' {
			return at + next
		}
		at += next + 1
	}
	return -1
}

// upTo returns the place of the first line feed or {" of a text; -1: it has neither.
func upTo(text []byte) int {
	for at := 0; ; at++ {
		next := bytes.IndexAny(text[at:], "\n{")
		if next < 0 {
			return -1
		}
		if at += next; text[at] == '\n' || bytes.HasPrefix(text[at:], []byte(`{"`)) {
			return at
		}
	}
}

// restBlank reports whether the rest of the line is blank.
func restBlank(src []byte) bool {
	at := bytes.IndexFunc(src, func(r rune) bool { return r == '\n' || !unicode.IsSpace(r) })
	return at < 0 || src[at] == '\n'
}

// finite reads JSON and replaces NaN, Infinity and -Infinity by NotFinite of the same length, so that offsets stay
// valid.
type finite struct {
	src     []byte
	quoted  bool
	escaped bool
}

func (f *finite) Read(p []byte) (int, error) {
	if len(f.src) == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	n, at := 0, 0
	for n < len(p) && at < len(f.src) {
		c := f.src[at]
		if !f.quoted && (c == 'N' || c == 'I' || c == '-') {
			if word := infinite(f.src[at:]); len(word) > len(p)-n {
				if n == 0 {
					return 0, io.ErrShortBuffer
				}
				break
			} else if word != "" {
				n += copy(p[n:], `"`+NotFinite+`"`+strings.Repeat(" ", len(word)-3))
				at += len(word)
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
		at++
	}
	f.src = f.src[at:]
	return n, nil
}

// infinite returns the word for a number that is not finite at the start of a text; empty: there is none.
func infinite(src []byte) string {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(src, []byte(word)) {
			return word
		}
	}
	return ""
}

// Characters returns the number of characters that the texts of a list have together, and the number of empty texts.
// Space around a text does not count.
func Characters(list []any) (n, empty float64) {
	for _, item := range list {
		if text, ok := item.(string); ok {
			of := utf8.RuneCountInString(strings.TrimSpace(text))
			if n += float64(of); of == 0 {
				empty++
			}
		}
	}
	return n, empty
}
