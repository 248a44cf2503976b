// Package nearest finds the name that a misspelt name probably means.
package nearest

import (
	"slices"

	"github.com/agext/levenshtein"
)

// Bounds on the comparison of names, whose time grows with the product of their lengths.
const maxName, maxNames = 200, 20_000

// Name returns the candidate that a misspelt name probably means; empty: there is none. Of two candidates with the same
// distance, it is the one with the longer common beginning.
func Name(given string, candidates []string) string {
	best, distance, alike := "", max(2, len(given)/3)+1, maxName
	if len(given) > maxName || len(candidates) > maxNames {
		return ""
	}
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if difference := len(c) - len(given); difference > distance || -difference > distance {
			continue // farther away
		}
		d, begin, _ := levenshtein.Calculate([]rune(given), []rune(c), 0, 1, 1, 1)
		if d < distance || d == distance && begin > alike {
			best, distance, alike = c, d, begin
		}
	}
	if best == "" || distance >= max(len(given), len(best)) {
		return ""
	}
	return best
}
