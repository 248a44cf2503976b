package metrics

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/metrics/jsondoc"
	"github.com/benchgraph/benchgraph/metrics/lines"
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
		if name := lines.Plain(path); name != "" {
			to = append(to, leaf{lines.Clip(name, 500), v})
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
		if v == jsondoc.NotFinite {
			return "", "", number.ErrInfinite
		}
		if _, err := number.Parse(v); err != nil {
			return "", "", fmt.Errorf("%q %w", lines.Clip(v, maxLabel), err)
		}
		return v, fmt.Sprintf("the number %s stands in quotes", lines.Clip(v, maxLabel)), nil
	case nil:
		return "", "", errors.New("is null")
	case bool:
		return "", "", errors.New("is true or false")
	}
	return "", "", errors.New("is an object or an array")
}
