package failure

import (
	"fmt"
	"regexp"
	"time"
)

// Rule says what a line of a log means. If Attempts and Backoff are zero, they are those of the class.
type Rule struct {
	Name     string
	Match    string   // RE2, tried on every line by itself
	Stages   []string // fetch, build, start, run, stop, parse, verify; empty: everywhere
	Class    Class
	Remedy   string // what the user can do
	Wrapper  bool   // the line only reports that something failed: every other rule goes before it
	Attempts int    // number of attempts in all
	Backoff  time.Duration
}

// Pattern compiles Match. The error names the rule.
func (r *Rule) Pattern() (*regexp.Regexp, error) {
	pattern, err := regexp.Compile(r.Match)
	if err != nil {
		return nil, fmt.Errorf("failure rule %s: %w", r.Name, err)
	}
	return pattern, nil
}
