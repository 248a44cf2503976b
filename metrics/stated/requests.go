package stated

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Arguments with the number of requests, and with the number of iterations of an offline benchmark.
var (
	commandCount      = lazyregexp.New(`--(?:num[-_]prompts?|request[-_]count)(?:=| +)["']?([0-9]+)\b`)
	commandIterations = lazyregexp.New(`--num[-_]iter(?:ation)?s(?:=| +)["']?([0-9]+)\b`)
)

// Requests returns the number of requests that a command line asks for; 0: not known, or the command names several
// numbers.
func Requests(command string) int {
	if CountsOtherwise(command) {
		return 0
	}
	return asked(commandCount(), command)
}

// Iterations returns the number of iterations that a command line asks for; 0: not known.
func Iterations(command string) int { return asked(commandIterations(), command) }

func asked(argument *regexp.Regexp, command string) int {
	asked := 0
	for _, m := range argument.FindAllStringSubmatch(command, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			n = 0 // more digits than a number of requests has
		}
		if asked != 0 && n != asked {
			return 0
		}
		asked = n
	}
	return asked
}

// CountsOtherwise reports whether the number of requests follows from other arguments than the number of prompts, as
// for some data sets.
func CountsOtherwise(arguments string) bool {
	return strings.Contains(arguments, "generated-shared-prefix") || strings.Contains(arguments, "mooncake")
}
