package stated

import (
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// commandCount is an argument with the number of requests.
var commandCount = lazyregexp.New(`--(?:num[-_]prompts?|request[-_]count)(?:=| +)["']?([0-9]+)\b`)

// Requests finds how many requests a command line asks for; 0: it does not say. Commands that name several numbers do
// not.
func Requests(command string) int {
	asked := 0
	if CountsOtherwise(command) {
		return 0
	}
	for _, m := range commandCount().FindAllStringSubmatch(command, -1) {
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

// CountsOtherwise reports whether the number of requests follows from other arguments than the number of prompts, as it
// does for some data sets.
func CountsOtherwise(arguments string) bool {
	return strings.Contains(arguments, "generated-shared-prefix") || strings.Contains(arguments, "mooncake")
}
