// Package glob matches paths with lists of doublestar patterns.
package glob

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Check returns an error for the first pattern that is malformed.
func Check(patterns []string) error {
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) {
			return fmt.Errorf("pattern %q: malformed", p)
		}
	}
	return nil
}

// Match reports whether one of the patterns matches a slash-separated path below the root of a tree. A pattern may
// begin with "./".
func Match(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return doublestar.MatchUnvalidated(strings.TrimPrefix(p, "./"), path)
	})
}
