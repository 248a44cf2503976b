package group

import (
	"fmt"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/stats"
)

// Bounds on the attempts that may be charged to nobody: one in so many.
const (
	mostUnknown = 10 // for a reason that is not known
	mostNobody  = 3  // for any reason
)

// Selected reports why the blocks that count may be those that a candidate chose: too many others were void by what is
// charged to nobody, and what a candidate may have brought about. An interrupt is the user's. Passes reports that so
// many further blocks outweigh them, if no more are void.
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
	return fmt.Sprintf("selection: %d of %d attempts at blocks were void by what is charged to nobody, %d of them for "+
			"no known reason: the blocks that are left may be a selection", nobody, all, unknown),
		further > 0 && !many(all+further)
}
