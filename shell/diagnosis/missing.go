package diagnosis

import (
	"errors"
	iofs "io/fs"
	"os"
	"regexp"

	"github.com/benchgraph/benchgraph/failure"
)

// PathMissing names the rule by which a failure is that of the machine: a command names a path that is not there.
const PathMissing = "path_missing"

// complains is in lines that say what is wrong with a path.
const complains = `(?i:no such|not found|not exist|cannot|can't|could not|unable|missing|invalid|error)`

// missing returns the rules for those of some paths that this machine does not have: a line of a log that complains of
// one explains a failure of which no other rule knows more. The paths are named by the file, so that no candidate
// chooses them.
func missing(paths []string) (rules []failure.Rule) {
	for _, path := range paths {
		if _, err := os.Stat(path); !errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		named := `(^|[^\w./-])` + regexp.QuoteMeta(path) + `([^\w.-]|$)`
		rules = append(rules, failure.Rule{
			Name: PathMissing, Class: failure.Infra, Wrapper: true, Attempts: 1,
			Match: complains + ".*" + named + "|" + named + ".*" + complains,
			Remedy: path + " is on the machine of the project, and not here: bring it here under this path; or hand " +
				"the file over as data (the result of a task that has it as input), or declare a mount",
		})
	}
	return rules
}
