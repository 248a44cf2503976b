// Package names splits and compares the names of metrics and settings, as programs and people write them.
package names

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/agext/levenshtein"
)

// Words splits a name into its words, in lower case.
func Words(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// Slug joins the words of a name with underscores.
func Slug(name string) string { return strings.Join(Words(name), "_") }

// Nearest returns the n names that look most like want, best first, for a message about an unknown want. Spelling and
// common words count. It returns fewer only if there are fewer.
func Nearest(want string, have []string, n int) []string {
	type candidate struct {
		name  string
		score float64
	}
	words := Words(want)
	plain := strings.Join(words, " ")
	var all []candidate
	for _, name := range have {
		if slices.ContainsFunc(all, func(c candidate) bool { return c.name == name }) {
			continue
		}
		other := Words(name)
		common := 0
		for _, w := range words {
			if slices.Contains(other, w) {
				common++
			}
		}
		score := levenshtein.Match(plain, strings.Join(other, " "), nil)
		if both := len(words) + len(other) - common; both > 0 {
			score += float64(common) / float64(both)
		}
		all = append(all, candidate{name, score})
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	nearest := make([]string, 0, min(n, len(all)))
	for _, c := range all[:cap(nearest)] {
		nearest = append(nearest, c.name)
	}
	return nearest
}
