package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/metrics/number"
)

// maxDocument is how much of an output is searched for a JSON document: its last 64 MiB.
const maxDocument = 64 << 20

// tail keeps the last maxDocument bytes of what is written to it.
type tail struct {
	buf     []byte
	dropped bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*maxDocument {
		t.trim()
	}
	return len(p), nil
}

func (t *tail) trim() {
	if extra := len(t.buf) - maxDocument; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
		t.dropped = true
	}
}

// notFinite stands where a document says NaN or Infinity, which encoding/json refuses although Python writes it.
// No document holds this control character by accident.
const notFinite = "\x7f"

// eachDocument calls found for every whole JSON object or array in src, and returns the last one; nil: there is none.
// They may stand among other text: JSON lines, documents one after the other, a document after a log. Cut says that
// another one begins behind the last one, and has no end.
func eachDocument(src []byte, found func(any)) (document any, cut bool) {
	// What failed attempts may read in all; without a bound, hostile input would make this quadratic.
	spare := 4*len(src) + 64<<10
	for at := 0; at < len(src); {
		begin := documentStart(src[at:])
		if begin < 0 {
			break
		}
		at += begin
		decoder := json.NewDecoder(&finite{src: src[at:]})
		decoder.UseNumber()
		var whole any
		err := decoder.Decode(&whole)
		if err == nil && (src[at] == '{' || restBlank(src[at+int(decoder.InputOffset()):])) {
			document, cut = whole, false
			found(whole)
			at += int(decoder.InputOffset())
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
		next := bytes.IndexByte(src[at:], '\n')
		line := src[at:]
		if next >= 0 {
			line = src[at : at+next]
		}
		if inside := bytes.Index(line, []byte(`{"`)); src[at] == '[' && inside > 0 {
			at += inside // [rank0]: {"a": 1}
			continue
		}
		if next < 0 {
			break
		}
		at += next + 1
	}
	return document, cut
}

// documentStart finds where a document may begin: at a bracket that begins a line, or at {" anywhere in it.
func documentStart(src []byte) int {
	for at := 0; at < len(src); {
		end := bytes.IndexByte(src[at:], '\n')
		line := src[at:]
		if end >= 0 {
			line = src[at : at+end]
		}
		text := bytes.TrimLeft(line, " \t\r\ufeff")
		if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
			return at + len(line) - len(text)
		}
		if inside := bytes.Index(line, []byte(`{"`)); inside >= 0 {
			return at + inside
		}
		if end < 0 {
			break
		}
		at += end + 1
	}
	return -1
}

// restBlank says whether nothing more follows on the line.
func restBlank(src []byte) bool {
	line, _, _ := bytes.Cut(src, []byte("\n"))
	return len(bytes.TrimSpace(line)) == 0
}

// finite reads JSON with NaN, Infinity and -Infinity replaced by notFinite, at their length, so that offsets stay.
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
				n += copy(p[n:], `"`+notFinite+`"`+strings.Repeat(" ", len(word)-3))
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

// pathParts splits a path: a.b.0.c, a.b[0].c and $.a["b"] are the same kind of thing.
func pathParts(path string) []string {
	path = strings.NewReplacer(`["`, ".", `"]`, "", "['", ".", "']", "", "[", ".", "]",
		"").Replace(strings.TrimPrefix(path, "$"))
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
}

// follow returns what stands at a path. A key may itself hold dots: the shortest that leads on is taken. Indices count
// from 0, negative ones from the end.
func follow(v any, parts []string) (any, bool) {
	if len(parts) == 0 {
		return v, true
	}
	switch v := v.(type) {
	case map[string]any:
		for n := 1; n <= len(parts); n++ {
			if child, ok := v[strings.Join(parts[:n], ".")]; ok {
				if found, ok := follow(child, parts[n:]); ok {
					return found, true
				}
			}
		}
	case []any:
		i, err := strconv.Atoi(parts[0])
		if i < 0 {
			i += len(v)
		}
		if err == nil && i >= 0 && i < len(v) {
			return follow(v[i], parts[1:])
		}
	}
	return nil, false
}

// leaf is one value that is neither an object nor an array, with its path.
type leaf struct {
	path  string
	value any
}

// leaves lists the values below v in the order of their paths; of long arrays of values only the first hundred, since
// those are raw data.
func leaves(v any, path string, to []leaf, limit int) []leaf {
	const longest = 100
	const longestPath = 4 << 10 // deeper ones are nobody's metrics, and would cost the square of their depth
	if len(path) > longestPath {
		return to
	}
	join := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if len(to) < limit {
				to = leaves(v[key], join(key), to, limit)
			}
		}
	case []any:
		for i, child := range v[:min(len(v), longest)] {
			if len(to) < limit {
				to = leaves(child, join(strconv.Itoa(i)), to, limit)
			}
		}
	default:
		if name := string(scrub([]byte(path), 0)); name != "" {
			to = append(to, leaf{clip(name, 500), v})
		}
	}
	return to
}

// digits returns the text of a number in a document. A number in quotes is one, with a remark.
func digits(v any) (text, remark string, err error) {
	switch v := v.(type) {
	case json.Number:
		return v.String(), "", nil
	case string:
		if v == notFinite {
			return "", "", number.ErrInfinite
		}
		if _, err := number.Parse(v); err != nil {
			return "", "", fmt.Errorf("%q %w", clip(v, maxLabel), err)
		}
		return v, fmt.Sprintf("the number %s stands in quotes", clip(v, maxLabel)), nil
	case nil:
		return "", "", errors.New("is null")
	case bool:
		return "", "", errors.New("is true or false")
	}
	return "", "", errors.New("is an object or an array")
}
