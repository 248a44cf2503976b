package jsondoc

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/number"
)

// shown is the number of bytes of a value that a message quotes.
const shown = 80

// Parts splits a path into its keys: a.b.0.c, a.b[0].c and $.a["b"] are all accepted.
func Parts(path string) []string {
	path = strings.NewReplacer(`["`, ".", `"]`, "", "['", ".", "']", "", "[", ".", "]",
		"").Replace(strings.TrimPrefix(path, "$"))
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
}

// Follow returns the value at a path. A key may itself hold dots: the shortest key that leads to a value is taken.
// Indices count from 0, negative ones from the end.
func Follow(v any, parts []string) (any, bool) {
	if len(parts) == 0 {
		return v, true
	}
	switch v := v.(type) {
	case map[string]any:
		for n := 1; n <= len(parts); n++ {
			if child, ok := v[strings.Join(parts[:n], ".")]; ok {
				if found, ok := Follow(child, parts[n:]); ok {
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
			return Follow(v[i], parts[1:])
		}
	}
	return nil, false
}

// Leaf is one value that is neither an object nor an array, with its path.
type Leaf struct {
	Path  string
	Value any
}

// Leaves returns the values below v, at most limit.
func Leaves(v any, limit int) []Leaf { return below(v, "", nil, limit) }

// below appends the values below v in the order of their paths. It reads only the first hundred items of an array,
// since longer ones are raw data.
func below(v any, path string, to []Leaf, limit int) []Leaf {
	const longest = 100
	const longestPath = 4 << 10 // deeper values are no metrics, and cost the square of their depth
	if len(path) > longestPath {
		return to
	}
	join := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if len(to) < limit {
				to = below(v[key], join(key), to, limit)
			}
		}
	case []any:
		for i, child := range v[:min(len(v), longest)] {
			if len(to) < limit {
				to = below(child, join(strconv.Itoa(i)), to, limit)
			}
		}
	default:
		if name := lines.Plain(path); name != "" {
			to = append(to, Leaf{lines.Clip(name, 500), v})
		}
	}
	return to
}

// Digits returns the text of a number in a document. A number in quotes is accepted, with a remark.
func Digits(v any) (text, remark string, err error) {
	switch v := v.(type) {
	case json.Number:
		return v.String(), "", nil
	case string:
		if v == NotFinite {
			return "", "", number.ErrInfinite
		}
		if _, err := number.Parse(v); err != nil {
			return "", "", fmt.Errorf("%q %w", lines.Clip(v, shown), err)
		}
		return v, fmt.Sprintf("the number %s stands in quotes", lines.Clip(v, shown)), nil
	case nil:
		return "", "", errors.New("is null")
	case bool:
		return "", "", errors.New("is true or false")
	}
	return "", "", errors.New("is an object or an array")
}

// List returns the first items of a list, at most most; nil: the value is no list.
func List(v any, most int) []any {
	all, _ := v.([]any)
	return all[:min(len(all), most)]
}

// Object returns an object in a document; nil: the value is no object.
func Object(v any) map[string]any { d, _ := v.(map[string]any); return d }

// Text returns a string in a document; empty: the value is no string.
func Text(v any) string { s, _ := v.(string); return s }
