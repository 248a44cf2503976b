// Package methodology describes how a number was measured, and decides whether two numbers may be compared.
package methodology

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/stats"
)

// Field is one named part of how a number was measured.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Description is all that must be equal before two numbers are compared: model and revision, commands, client revision,
// data digests, environment, parameters, device class and count, fixes that may change speed, warm-up, definitions of
// metrics. Names are unique; their order means nothing.
type Description struct {
	Fields []Field `json:"fields"`
}

// Digest is the SHA-256, in hexadecimal digits, of the fields by name. Both name and value are quoted, so that no two
// lists of fields give the same text.
func (m Description) Digest() string {
	sum := sha256.New()
	values := m.values()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			fmt.Fprintf(sum, "%s %s\n", strconv.Quote(name), strconv.Quote(value))
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// values returns the values by name. Each is a list, because nothing enforces that names are unique.
func (m Description) values() map[string][]string {
	values := map[string][]string{}
	for _, f := range m.Fields {
		values[f.Name] = append(values[f.Name], f.Value)
	}
	for _, list := range values {
		slices.Sort(list)
	}
	return values
}

// Difference is one field in which two methodologies differ.
type Difference struct {
	Name     string `json:"name"`
	A        string `json:"a"`
	B        string `json:"b"`
	InA, InB bool   `json:"-"` // the side has the field
}

func (d Difference) String() string {
	a, b := d.Sides()
	return fmt.Sprintf("%s: %s against %s", d.Name, a, b)
}

// Of values longer than mostSide bytes only the difference is shown, with up to around bytes before and after it.
const mostSide, around = 160, 30

// Sides returns both values, quoted. The beginning and end that two long values have in common are left out.
func (d Difference) Sides() (a, b string) {
	if !d.InA || !d.InB {
		return side(d.A, d.InA), side(d.B, d.InB)
	}
	begins, ends, short := 0, 0, min(len(d.A), len(d.B))
	if max(len(d.A), len(d.B)) > mostSide {
		for begins < short && d.A[begins] == d.B[begins] {
			begins++
		}
		for ends < short-begins && d.A[len(d.A)-1-ends] == d.B[len(d.B)-1-ends] {
			ends++
		}
	}
	return cut(d.A, begins-around, ends-around), cut(d.B, begins-around, ends-around)
}

// cut quotes a value without about so many bytes at its beginning and end. It cuts at a space near these positions, and
// not at all if there is none.
func cut(value string, begins, ends int) string {
	before, after := "", ""
	if i := strings.IndexByte(value[max(0, begins):], ' '); begins > 0 && i >= 0 && i < around {
		value, before = value[begins+i+1:], "… "
	}
	last := len(value) - max(0, ends)
	if i := strings.LastIndexByte(value[:last], ' '); last < len(value) && i >= 0 && last-i < around {
		value, after = value[:i], " …"
	}
	return before + strconv.Quote(value) + after
}

func side(value string, present bool) string {
	if !present {
		return "nothing"
	}
	return strconv.Quote(value)
}

// Diff lists the fields in which a and b differ, by name. It is empty exactly when their digests are equal.
func Diff(a, b Description) []Difference {
	left, right := a.values(), b.values()
	names := map[string]bool{}
	for name := range left {
		names[name] = true
	}
	for name := range right {
		names[name] = true
	}
	var diff []Difference
	for _, name := range slices.Sorted(maps.Keys(names)) {
		x, inA := left[name]
		y, inB := right[name]
		if !slices.Equal(x, y) {
			diff = append(diff, Difference{name, strings.Join(x, "\n"), strings.Join(y, "\n"), inA, inB})
		}
	}
	return diff
}

// Compatible decides whether numbers of two methodologies may be compared. diff lists the fields that forbid it; labels
// are the caveats that every figure must carry for the differing fields that were explicitly allowed: by their name, or
// by the first word of a name, which stands for all fields of that sort (env for "env MODE").
func Compatible(a, b Description, allowed []string) (diff []Difference, labels []stats.Caveat) {
	for _, d := range Diff(a, b) {
		sort, _, _ := strings.Cut(d.Name, " ")
		if slices.Contains(allowed, d.Name) || slices.Contains(allowed, sort) {
			labels = append(labels, stats.Caveat{Kind: stats.CaveatMismatch,
				Text: "compared in spite of a different " + d.String()})
		} else {
			diff = append(diff, d)
		}
	}
	return diff, labels
}

// Sorts returns the first words of the names of all fields.
func Sorts() []string {
	return []string{"benchmark", "cache", "canary", "check", "client", "command", "data", "devices", "env", "fill",
		"fix", "hardware", "limits", "metric", "metrics", "mount", "network", "pairing", "quiet", "ready", "repeat",
		"require", "runs", "samples", "sandbox", "server", "sm", "timeout", "warmup"}
}

// Refuse returns a *stats.RefusedError for numbers of different methodologies, or nil if diff is empty.
func Refuse(candidate, against string, diff []Difference) error {
	if len(diff) == 0 {
		return nil
	}
	refused := &stats.RefusedError{What: fmt.Sprintf("%s and %s are not comparable", candidate, against)}
	for _, d := range diff {
		refused.Reasons = append(refused.Reasons, d.String())
	}
	return refused
}
