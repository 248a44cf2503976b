package cache

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Op is a kind of difference between two descriptions.
type Op string

// The kinds of differences.
const (
	Changed Op = "changed" // other values
	Added   Op = "added"   // only in the new text
	Removed Op = "removed" // only in the old text
	Moved   Op = "moved"   // the same lines in another order; Label is the first of them
)

// Change is one difference between two descriptions.
type Change struct {
	Op    Op
	Label string
	Old   []string // values before; nil when added
	New   []string // values after; nil when removed
}

// Diff lists the differences between two texts of descriptions: first in the order of the new text, then the removed
// lines. A changed line is paired with the removed line of its label that has the most first values in common: so the
// lines of one variable are paired among many lines labelled env. A text that cannot be read counts as empty.
func Diff(old, new string) []Change {
	before, _ := ParseText(old)
	after, _ := ParseText(new)
	if slices.EqualFunc(before, after, sameLine) {
		return nil
	}
	gone, fresh := unmatched(before, after)
	if len(gone) == 0 && len(fresh) == 0 {
		for i := range after {
			if !sameLine(before[i], after[i]) {
				return []Change{{Op: Moved, Label: after[i].Label, Old: before[i].Values, New: after[i].Values}}
			}
		}
	}
	pairs := pair(gone, fresh)
	paired := make([]bool, len(gone))
	var changes []Change
	for i, line := range fresh {
		if pairs[i] < 0 {
			changes = append(changes, Change{Op: Added, Label: line.Label, New: line.Values})
			continue
		}
		paired[pairs[i]] = true
		changes = append(changes, Change{Op: Changed, Label: line.Label, Old: gone[pairs[i]].Values, New: line.Values})
	}
	for i, line := range gone {
		if !paired[i] {
			changes = append(changes, Change{Op: Removed, Label: line.Label, Old: line.Values})
		}
	}
	return changes
}

func sameLine(a, b Line) bool { return a.Label == b.Label && slices.Equal(a.Values, b.Values) }

// signature returns a line's label and first values as one string.
func signature(l Line, values int) string {
	parts := []string{strconv.Quote(l.Label)}
	for _, v := range l.Values[:values] {
		parts = append(parts, strconv.Quote(v))
	}
	return strings.Join(parts, " ")
}

// unmatched returns the lines that only one of the two texts has.
func unmatched(before, after []Line) (gone, fresh []Line) {
	count := map[string]int{}
	for _, l := range before {
		count[signature(l, len(l.Values))]++
	}
	for _, l := range after {
		s := signature(l, len(l.Values))
		if count[s] > 0 {
			count[s]--
		} else {
			fresh = append(fresh, l)
		}
	}
	for _, l := range slices.Backward(before) {
		s := signature(l, len(l.Values))
		if count[s] > 0 {
			count[s]--
			gone = append(gone, l)
		}
	}
	slices.Reverse(gone)
	return gone, fresh
}

// pair returns for each fresh line the index of the gone line that it replaces, or -1. Lines with the most first values
// in common are paired first.
func pair(gone, fresh []Line) []int {
	pairs := slices.Repeat([]int{-1}, len(fresh))
	taken := make([]bool, len(gone))
	longest := 0
	for _, l := range gone {
		longest = max(longest, len(l.Values))
	}
	for common := min(longest, 8); common >= 0; common-- {
		waiting := map[string][]int{}
		for i, l := range gone {
			if !taken[i] && len(l.Values) >= common {
				s := signature(l, common)
				waiting[s] = append(waiting[s], i)
			}
		}
		for i, l := range fresh {
			if pairs[i] >= 0 || len(l.Values) < common {
				continue
			}
			s := signature(l, common)
			if found := waiting[s]; len(found) > 0 {
				pairs[i], taken[found[0]] = found[0], true
				waiting[s] = found[1:]
			}
		}
	}
	return pairs
}

// After is the label of a line about a node that must end before this one. The values are the kind of that node, its
// key or the digest of its result, and how it ended.
const After = "after"

// Try is the label of the lines about attempts without a result. The first value is the number of the block.
const Try = "try"

// String returns the change as a sentence: commit.rev changed from "a1b2" to "c3d4".
func (c Change) String() string {
	if c.Label == After { // keys and words of the engine mean nothing to people
		return "the end or the result of one " + slices.Concat(c.New, c.Old, []string{"node"})[0] + " changed"
	}
	if c.Label == Try && len(c.New) > 0 {
		return "an attempt at block " + c.New[0] + " ended without a result"
	}
	switch c.Op {
	case Added:
		return strings.TrimSpace(title(c.Label)+" "+words(c.New, nil)) + " is new"
	case Removed:
		return strings.TrimSpace(title(c.Label)+" "+words(c.Old, nil)) + " is gone"
	case Moved:
		return "the order of " + title(c.Label) + " and other lines changed"
	}
	if names := valueNames(c.Label); len(names) == len(c.Old) && len(names) == len(c.New) {
		var parts []string
		for i, name := range names {
			if c.Old[i] != c.New[i] {
				old, new := c.Old[i:i+1], c.New[i:i+1]
				parts = append(parts, name+" changed from "+words(old, new)+" to "+words(new, old))
			}
		}
		return strings.Join(parts, ", ")
	}
	common := 0
	for common < len(c.Old) && common < len(c.New) && c.Old[common] == c.New[common] {
		common++
	}
	name := strings.TrimSpace(title(c.Label) + " " + words(c.Old[:common], nil))
	old, new := c.Old[common:], c.New[common:]
	if max(len(old), len(new)) > mostWords { // a list: a value that both have says nothing
		inNew := func(v string) bool { return slices.Contains(c.New, v) }
		inOld := func(v string) bool { return slices.Contains(c.Old, v) }
		less, more := slices.DeleteFunc(slices.Clone(old), inNew), slices.DeleteFunc(slices.Clone(new), inOld)
		if len(less)+len(more) > 0 {
			old, new = less, more
		}
		name = title(c.Label)
	}
	return name + " changed from " + cmp.Or(words(old, new), "nothing") + " to " + cmp.Or(words(new, old), "nothing")
}

// mostWords limits the values of a line that are shown.
const mostWords = 6

// valueNames returns the names that the values of a line have in the file; nil if the label alone is clear.
func valueNames(label string) []string {
	switch label {
	case "limits":
		return []string{"cpus", "memory", "quiet"}
	case "design":
		return []string{"warmup", "pairing", "seed"}
	}
	return nil
}

// title returns a label for people: quoted unless it is plain.
func title(label string) string {
	if plain(label) {
		return label
	}
	return strconv.Quote(label)
}

// words returns values for people: quoted, with digests and long values cut. others are the values that are shown
// beside them: if two values differ only in a part that would be cut, the beginning that both share is cut instead.
func words(values, others []string) string {
	const longest, before = 48, 16 // before the difference, in bytes
	short := make([]string, len(values))
	for i, v := range values {
		if _, err := ParseKey(v); err == nil {
			v = v[:12]
		}
		if i < len(others) && v != others[i] {
			same := 0
			for same < len(v) && same < len(others[i]) && v[same] == others[i][same] {
				same++
			}
			if cut := same - before; same+before > longest && max(len(v), len(others[i])) > longest {
				for cut > 0 && !utf8.RuneStart(v[cut]) {
					cut--
				}
				v = "…" + v[cut:]
			}
		}
		if len(v) > longest {
			cut := longest
			for cut > 0 && !utf8.RuneStart(v[cut]) {
				cut--
			}
			v = v[:cut] + "…"
		}
		short[i] = strconv.Quote(v)
	}
	if more := len(short) - mostWords; more > 0 {
		short = append(short[:mostWords], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(short, " ")
}

// Explain returns in one sentence how a description changed: the first two changes, and the number of the others. It
// returns "" if nothing changed.
func Explain(old, new string) string {
	if old == new {
		return ""
	}
	if _, err := ParseText(old); err != nil {
		return "the stored result was described by another version of benchgraph"
	}
	var changes []string // each once: all members of a block may change alike
	for _, c := range Diff(old, new) {
		if text := c.String(); !slices.Contains(changes, text) {
			changes = append(changes, text)
		}
	}
	if more := len(changes) - 2; more > 0 {
		return fmt.Sprintf("%s, %s, and %d more changed", changes[0], changes[1], more)
	}
	return strings.Join(changes, ", and ")
}
