// Package lazyregexp has regular expressions for package variables that are compiled at their first use: compiling
// all of them would take a large part of benchgraph's start.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// New returns a function with the regular expression of a pattern, as regexp.MustCompile does. A test program
// compiles it at once, so that tests find invalid patterns.
func New(pattern string) func() *regexp.Regexp {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
	if len(os.Args) > 0 && strings.HasSuffix(os.Args[0], ".test") {
		compiled()
	}
	return compiled
}
