package findings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/internal/words"
	"github.com/benchgraph/benchgraph/stats"
)

const notMeasured = "identical artefact, not measured: "

// SameInputs is why a candidate is not measured whose artefacts are made from the same inputs as the baseline's.
func SameInputs(names []string) string {
	return notMeasured + words.Some(names) + " of both sides is made from the same inputs"
}

// SameBytes is why a candidate is not measured whose artefacts have the baseline's digests.
func SameBytes(digests map[string]string) string {
	return notMeasured + "both sides are the same bytes (" + digestsText(digests) + ")"
}

func digestsText(digests map[string]string) string {
	var parts []string
	for _, node := range slices.Sorted(maps.Keys(digests)) {
		parts = append(parts, node+" "+words.Brief(digests[node]))
	}
	return words.Some(parts)
}

// identical says which artefacts both sides ran byte by byte; empty: they differ somewhere, or nothing is known of
// them.
func identical(s, base *group.Standing) string {
	own, theirs := s.OwnArtefacts(), base.OwnArtefacts()
	if len(own) == 0 || !maps.Equal(own, theirs) {
		return ""
	}
	return digestsText(own)
}

// sameWork is the caveat of a row whose sides differ in nothing that is known: none of them uses what its candidate
// brought with it, and they were measured in the same way.
func sameWork(row stats.Comparison, s, base *group.Standing) []stats.Caveat {
	if len(s.OwnArtefacts()) > 0 || len(base.OwnArtefacts()) > 0 || s.Silent || base.Silent || mismatched(row) {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatSameWork, Text: "both sides did the same work: the benchmark uses nothing " +
		"of its candidates, so the figures show only noise"}}
}

// share notes which members have blocks of other groups. The key of a block tells: under which names it was measured
// says nothing of what has those names now. Of members that share blocks, the first by name is no sharer.
func (c *Case) share(all []group.Standings, ends map[string]engine.End) {
	type place struct {
		group  int
		member *group.Standing
	}
	var places []place
	for i := range c.Groups {
		for _, s := range all[i] {
			places = append(places, place{i, s})
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		one, other := a.member.Bench.Address, b.member.Bench.Address
		return cmp.Or(strings.Compare(one.Name, other.Name), strings.Compare(one.Key, other.Key))
	})
	type block struct {
		key    cache.Key
		member string
	}
	owners := map[block]place{}
	for _, p := range places {
		s := p.member
		for _, b := range c.Groups[p.group].Blocks {
			of := block{ends[b.At.String()].Entry.Key, s.Name}
			if of.key == (cache.Key{}) || !slices.Contains(b.Members, s.Name) {
				continue
			}
			if owner, taken := owners[of]; !taken {
				owners[of] = p
			} else if owner.group != p.group {
				if s.Shares.With != owner.member {
					c.ruledTogether(p.group, s, owner.group, owner.member)
				}
				s.Shares.With, s.Shares.Blocks = owner.member, s.Shares.Blocks+1
			}
		}
	}
}

// ruledTogether notes of two members with the same blocks how the group of the other one is judged.
func (c *Case) ruledTogether(one int, s *group.Standing, other int, owner *group.Standing) {
	s.Shares.Rules = append(s.Shares.Rules, c.Groups[other].Rule)
	owner.Shares.Rules = append(owner.Shares.Rules, c.Groups[one].Rule)
}

// shared is the caveat of a row whose blocks are those of another row.
func shared(s, base *group.Standing) []stats.Caveat {
	of := s.Shares.With
	if of == nil || base.Shares.With == nil {
		return nil
	}
	title := of.Title()
	if of.Bench.Address.Name != s.Bench.Address.Name {
		title += " in benchmark." + of.Bench.Address.Name
	}
	text := "these are the blocks of " + title + ", which does the same work: both rows are one measurement"
	if n := len(s.Evidence) + len(s.Aside); s.Shares.Blocks < n {
		text = fmt.Sprintf("%d of the %d blocks are those of %s, which does the same work", s.Shares.Blocks, n, title)
	}
	return []stats.Caveat{{Kind: stats.CaveatShared, Text: text}}
}

// identicalCaveat is that of a row without figures.
func identicalCaveat(row stats.Comparison) []stats.Caveat {
	if row.Outcome != stats.Tie {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatIdentical, Text: row.Reason}}
}
