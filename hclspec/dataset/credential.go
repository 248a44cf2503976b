package dataset

import (
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// credential matches a variable or a flag of a command with a value that gives access to something. A shorter value,
// such as EMPTY, is a placeholder.
var credential = lazyregexp.New(`(\bexport\s+)?\b([A-Z][A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|API_KEY|ACCESS_KEY))=` +
	secret + `|(--(?:hf-token|api-key|password))(?:=|\s+)` + secret)

const secret = `(?:"[^"$]{8,}"|'[^']{8,}'|[^\s;&|<>"'$]{8,})`

// withoutCredentials returns the command of a row without credentials: parameters are in a file that people share, in
// keys and in reports.
func (t *table) withoutCredentials(row Row, line string) string {
	return credential().ReplaceAllStringFunc(line, func(s string) string {
		found := credential().FindStringSubmatch(s)
		export, name, flag := found[1], found[2], found[3]
		if flag != "" {
			t.note(row, "the command: the value of %s is a credential, and both are left out", flag)
			return ""
		}
		t.note(row, "the command: the value of %s is a credential, and is left out: name the variable in secrets", name)
		if export == "" {
			return ""
		}
		return strings.TrimSpace(export) + " " + name
	})
}
