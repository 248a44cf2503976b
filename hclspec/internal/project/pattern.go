package project

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds on a pattern. The time of matching grows with the product of the numbers of alternatives.
const (
	maxPattern      = 4096 // bytes
	maxAlternatives = 256
)

// Pattern is a doublestar pattern, split into one pattern without braces for each combination of alternatives: to match
// the original takes a time that doubles with each pair of braces.
type Pattern []string

// ParsePattern splits a pattern. The error says what is wrong with the pattern.
func ParsePattern(pattern string) (Pattern, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("a pattern of %d bytes is too long; %d are possible", len(pattern), maxPattern)
	}
	if !utf8.ValidString(pattern) || !doublestar.ValidatePattern(pattern) {
		return nil, fmt.Errorf("%q is not a valid pattern", pattern)
	}
	choices := []string{pattern}
	for i := 0; i < len(choices); {
		from, to := braces(choices[i])
		if from < 0 {
			i++
			continue
		}
		p := choices[i]
		choices = append(choices[:i], choices[i+1:]...)
		for _, choice := range alternatives(p[from+1 : to]) {
			choices = append(choices, p[:from]+choice+p[to+1:])
		}
		if len(choices) > maxAlternatives {
			return nil,
				fmt.Errorf("%.60q has more than %d combinations of alternatives; divide it into several patterns",
					pattern, maxAlternatives)
		}
	}
	for _, choice := range choices {
		if !doublestar.ValidatePattern(choice) { // a character class begins inside of braces and ends outside
			return nil, fmt.Errorf("%q is not a valid pattern", pattern)
		}
	}
	return choices, nil
}

// Match reports whether the pattern matches the whole of a slash-separated name.
func (p Pattern) Match(name string) bool {
	return slices.ContainsFunc(p, func(choice string) bool { return doublestar.MatchUnvalidated(choice, name) })
}

// braces returns the offsets of the first pair of braces with alternatives; -1: there is none.
func braces(p string) (from, to int) {
	depth := 0
	from = -1
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '[':
			if depth == 0 {
				i = endOfClass(p, i)
			}
		case '{':
			if depth == 0 {
				from = i
			}
			depth++
		case '}':
			if depth--; depth == 0 {
				return from, i
			}
		}
	}
	return -1, -1
}

// endOfClass returns the offset of the bracket that ends a character class.
func endOfClass(p string, start int) int {
	for i := start + 1; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case ']':
			return i
		}
	}
	return len(p)
}

// alternatives returns the parts between the commas of the outermost level.
func alternatives(p string) []string {
	var parts []string
	depth, start := 0, 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, p[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, p[start:])
}

// FixedNames returns the patterns that match exactly one name, without duplicates.
func FixedNames(patterns []string) []string {
	var names []string
	seen := map[string]bool{}
	for _, p := range patterns {
		if p = strings.TrimPrefix(p, "./"); !strings.ContainsAny(p, `*?[{\!`) && !seen[p] {
			seen[p] = true
			names = append(names, p)
		}
	}
	return names
}
