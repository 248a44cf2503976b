// Package lazyregexp has regular expressions for variables of packages, each compiled at its first use: those of all
// packages would be a good part of the time in which benchgraph starts.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// New gives the regular expression of a pattern, as regexp.MustCompile does. A test program compiles it at once, so
// that no wrong pattern passes the tests.
func New(pattern string) func() *regexp.Regexp {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
	if len(os.Args) > 0 && strings.HasSuffix(os.Args[0], ".test") {
		compiled()
	}
	return compiled
}
