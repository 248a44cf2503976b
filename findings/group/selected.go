package group

import (
	"fmt"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/stats"
)

// Bounds on the attempts that are charged to nobody: at most one in so many.
const (
	mostUnknown = 10 // for a reason that is not known
	mostNobody  = 3  // for any reason
)

// Selected returns the reason why the valid blocks may be a selection that favours a candidate: too many other attempts
// were void by failures that are charged to nobody, and that a candidate may have caused; empty: they are no selection.
// Interrupts do not count, since the user causes them. passes reports whether the given number of further blocks would
// outweigh the void ones, if all of them are valid.
func Selected(a *stats.Attempts, further int) (reason string, passes bool) {
	nobody, unknown, all := 0, 0, a.Valid+a.Voided+a.Replaced
	for _, c := range a.Causes {
		if c.Variant != "" || c.Rule == failure.Interrupted {
			continue
		}
		if nobody += c.Count; c.Rule == "" {
			unknown += c.Count
		}
	}
	many := func(all int) bool { return unknown*mostUnknown > all || nobody*mostNobody > all }
	if !many(all) {
		return "", false
	}
	return fmt.Sprintf("selection: %d of %d attempts at blocks were void by failures that are charged to nobody, %d "+
			"of them for no known reason: the remaining blocks may be a selection", nobody, all, unknown),
		further > 0 && !many(all+further)
}
