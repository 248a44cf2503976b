package campaign

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/tasks"
)

// Apart returns a note for each group of which the last plan measures only some candidates, in blocks of their own.
func (p *Project) Apart() (notes []string) {
	for _, group := range slices.Sorted(maps.Keys(p.Alone)) {
		notes = append(notes, fmt.Sprintf("of %s only %s is selected: its blocks are its own, and are compared with "+
			"nothing. -target of a compare, or of all candidates of the commit, measures them side by side.",
			strings.Replace(group, "trial.", "benchmark.", 1),
			strings.Join(slices.Sorted(maps.Keys(p.Alone[group])), ", ")))
	}
	return notes
}

// excluded extends exclude by the blocks of benchmarks that are all excluded, since nothing would read these blocks.
func (p *Project) excluded(exclude func(address string) bool) func(address string) bool {
	if exclude == nil {
		return nil
	}
	unread := map[string]bool{}
	for _, g := range p.Groups {
		if slices.ContainsFunc(g.Members, func(m tasks.Member) bool { return !exclude(m.Bench.Address.String()) }) {
			continue
		}
		for _, t := range g.Trials {
			unread[t.At.String()] = true
		}
	}
	return func(address string) bool { return exclude(address) || unread[address] }
}
