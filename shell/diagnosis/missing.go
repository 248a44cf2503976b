package diagnosis

import (
	"errors"
	iofs "io/fs"
	"os"
	"regexp"

	"github.com/benchgraph/benchgraph/failure"
)

// PathMissing is the rule of a failure of this machine: a command uses a declared path that does not exist here.
const PathMissing = "path_missing"

// complains matches lines that report a problem.
const complains = `(?i:no such|not found|not exist|cannot|can't|could not|unable|missing|invalid|error)`

// missing returns rules for paths that this machine does not have: a line that reports a problem with such a path
// explains a failure that no more specific rule explains. The file declares the paths, so no candidate chooses them.
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
