package findings

import (
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/stats"
)

// fixed returns the caveats about the fixes of both sides, which every figure must carry. A fix of one side alone, or
// one that did another thing to each side, may be all of the difference between them: whoever declared the fix neutral
// answers for that.
func fixed(s, base *group.Standing) []stats.Caveat {
	list := []stats.Caveat{}
	add := func(f group.Fix, where string) {
		text := fmt.Sprintf("fix %s (%s)%s", f.Name, f.Effect, where)
		if f.Caveat != "" {
			text += ": " + f.Caveat
		}
		list = append(list, stats.Caveat{Kind: stats.CaveatFix, Text: text})
	}
	if base == nil {
		for _, f := range s.Fixes {
			add(f, "")
		}
		return list
	}
	at := func(of []group.Fix, f group.Fix) int {
		return slices.IndexFunc(of, func(other group.Fix) bool { return other.Name == f.Name })
	}
	for _, f := range s.Fixes {
		switch i := at(base.Fixes, f); {
		case i < 0:
			add(f, " was applied to "+s.Title()+" alone")
		case base.Fixes[i].Recipe != f.Recipe:
			add(f, " did not do the same to both sides")
		default:
			add(f, "")
		}
	}
	other := base.Title()
	if base.Baseline {
		other = "the baseline"
	}
	for _, f := range base.Fixes {
		if at(s.Fixes, f) < 0 {
			add(f, " was applied to "+other+" alone")
		}
	}
	return list
}
