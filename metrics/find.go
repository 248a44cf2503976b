package metrics

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/agext/levenshtein"
)

// Find returns the sample of a metric: the one of that very name, else the only one whose name has the same words, so
// that "SET requests per second" finds set_requests_per_second; a leading Benchmark is ignored. False: there is none,
// or more than one.
func Find(samples []Sample, metric string) (Sample, bool) {
	for _, s := range samples {
		if s.Metric == metric {
			return s, true
		}
	}
	want := strings.Join(tokens(strings.TrimPrefix(metric, "Benchmark")), " ")
	var found []Sample
	for _, s := range samples {
		if want != "" && strings.Join(tokens(s.Metric), " ") == want {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		return Sample{}, false
	}
	return found[0], true
}

// Nearest returns the n names that look most like want, best first, for the diagnostic when want was not found.
// Spelling and common words count. It returns fewer only when there are fewer.
func Nearest(want string, have []string, n int) []string {
	type candidate struct {
		name  string
		score float64
	}
	words := tokens(want)
	plain := strings.Join(words, " ")
	var all []candidate
	for _, name := range have {
		if slices.ContainsFunc(all, func(c candidate) bool { return c.name == name }) {
			continue
		}
		other := tokens(name)
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
	names := make([]string, 0, min(n, len(all)))
	for _, c := range all[:cap(names)] {
		names = append(names, c.name)
	}
	return names
}

// tokens splits a name into its words, in lower case.
func tokens(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// slug joins the words of a name with underscores.
func slug(name string) string { return strings.Join(tokens(name), "_") }
