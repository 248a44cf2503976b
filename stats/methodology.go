package stats

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Field is one named part of how a number was measured.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Methodology is all that must be equal before two numbers are compared: model and revision, commands, client revision,
// data digests, environment, parameters, device class and count, fixes that may change speed, warm-up, definitions of
// metrics. Names are unique; their order means nothing.
type Methodology struct {
	Fields []Field `json:"fields"`
}

// Digest is the SHA-256, in hexadecimal digits, of the fields by name. Both name and value are quoted, so that no two
// lists of fields give the same text.
func (m Methodology) Digest() string {
	sum := sha256.New()
	values := m.values()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			fmt.Fprintf(sum, "%s %s\n", strconv.Quote(name), strconv.Quote(value))
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// values is the values by name, each a list because nothing but our word makes names unique.
func (m Methodology) values() map[string][]string {
	values := map[string][]string{}
	for _, f := range m.Fields {
		values[f.Name] = append(values[f.Name], f.Value)
	}
	for _, list := range values {
		slices.Sort(list)
	}
	return values
}

// FieldDiff is one field in which two methodologies differ.
type FieldDiff struct {
	Name     string `json:"name"`
	A        string `json:"a"`
	B        string `json:"b"`
	InA, InB bool   `json:"-"` // the field is there
}

func (d FieldDiff) String() string {
	return fmt.Sprintf("%s: %s against %s", d.Name, side(d.A, d.InA), side(d.B, d.InB))
}

func side(value string, present bool) string {
	if !present {
		return "nothing"
	}
	return strconv.Quote(value)
}

// Diff lists the fields in which a and b differ, by name. It is empty exactly when their digests are equal.
func Diff(a, b Methodology) []FieldDiff {
	left, right := a.values(), b.values()
	names := map[string]bool{}
	for name := range left {
		names[name] = true
	}
	for name := range right {
		names[name] = true
	}
	var diff []FieldDiff
	for _, name := range slices.Sorted(maps.Keys(names)) {
		x, inA := left[name]
		y, inB := right[name]
		if !slices.Equal(x, y) {
			diff = append(diff, FieldDiff{name, strings.Join(x, "\n"), strings.Join(y, "\n"), inA, inB})
		}
	}
	return diff
}

// Compatible says whether numbers of two methodologies may be compared. diff lists the fields that forbid it; labels
// are the caveats that every figure must carry for the differing fields that were explicitly allowed: by their name, or
// by the first word of a name, which stands for all fields of that sort (env for "env MODE").
func Compatible(a, b Methodology, allowed []string) (diff []FieldDiff, labels []Caveat) {
	for _, d := range Diff(a, b) {
		sort, _, _ := strings.Cut(d.Name, " ")
		if slices.Contains(allowed, d.Name) || slices.Contains(allowed, sort) {
			labels = append(labels, Caveat{CaveatMismatch, "compared in spite of a different " + d.String()})
		} else {
			diff = append(diff, d)
		}
	}
	return diff, labels
}

// Refuse is the error for numbers of different methodology, or nil when nothing forbids their comparison.
func Refuse(candidate, against string, diff []FieldDiff) error {
	if len(diff) == 0 {
		return nil
	}
	refused := &RefusedError{What: fmt.Sprintf("%s and %s are not comparable", candidate, against)}
	for _, d := range diff {
		refused.Reasons = append(refused.Reasons, d.String())
	}
	return refused
}
