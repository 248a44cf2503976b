package findings

import (
	"fmt"
	"maps"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/internal/words"
	"github.com/benchgraph/benchgraph/stats"
)

const notMeasured = "identical artefact, not measured: "

// SameInputs returns the reason not to measure a candidate whose artefacts have the same inputs as the baseline's.
func SameInputs(names []string) string {
	return notMeasured + words.Some(names) + " of both sides is made from the same inputs"
}

// SameBytes returns the reason not to measure a candidate whose artefacts have the baseline's digests.
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

// identical lists the artefacts if both sides ran the same bytes; empty: an artefact differs, or none is known.
func identical(s, base *group.Standing) string {
	own, theirs := s.OwnArtefacts(base), base.OwnArtefacts(s)
	if len(own) == 0 || !maps.Equal(own, theirs) {
		return ""
	}
	return digestsText(own)
}

// sameWork returns a caveat if neither side uses an artefact of its candidate and both were measured in the same way.
func sameWork(row stats.Comparison, s, base *group.Standing) []stats.Caveat {
	brought := len(s.OwnArtefacts(base)) + len(base.OwnArtefacts(s))
	if brought > 0 || s.Silent || base.Silent || mismatched(row) {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatSameWork, Text: "both sides did the same work: the benchmark uses " +
		"nothing of its candidates, so the figures show only noise"}}
}

// share records which members have blocks in common with members of other groups. It compares the keys of blocks, since
// the names under which a block was measured may belong to other candidates by now. Of the members with a common block,
// the first by address owns it and is not marked.
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
		return a.member.Bench.Address.Compare(b.member.Bench.Address)
	})
	type block struct {
		key    cache.Key
		member string
	}
	owners := map[block]place{}
	for _, p := range places {
		s := p.member
		for _, b := range c.Groups[p.group].Blocks {
			id := block{ends[b.At.String()].Entry.Key, s.Name}
			if id.key == (cache.Key{}) || !slices.Contains(b.Members, s.Name) {
				continue
			}
			if owner, taken := owners[id]; !taken {
				owners[id] = p
			} else if owner.group != p.group {
				if s.Shares.With != owner.member {
					c.ruledTogether(p.group, s, owner.group, owner.member)
				}
				s.Shares.With, s.Shares.Blocks = owner.member, s.Shares.Blocks+1
			}
		}
	}
}

// ruledTogether records, for two members with a common block, the judging rule of the other one's group.
func (c *Case) ruledTogether(one int, s *group.Standing, other int, owner *group.Standing) {
	s.Shares.Rules = append(s.Shares.Rules, c.Groups[other].Rule)
	owner.Shares.Rules = append(owner.Shares.Rules, c.Groups[one].Rule)
}

// shared returns a caveat if the blocks of a row are also the blocks of another row.
func shared(s, base *group.Standing) []stats.Caveat {
	other := s.Shares.With
	if other == nil || base.Shares.With == nil {
		return nil
	}
	title := other.Title()
	if other.Bench.Address.Name != s.Bench.Address.Name {
		title += " in benchmark." + other.Bench.Address.Name
	}
	text := "these are the blocks of " + title + ", which does the same work: both rows are one measurement"
	if n := len(s.Evidence) + len(s.Aside); s.Shares.Blocks < n {
		text = fmt.Sprintf("%d of the %d blocks are those of %s, which does the same work", s.Shares.Blocks, n, title)
	}
	return []stats.Caveat{{Kind: stats.CaveatShared, Text: text}}
}

// identicalCaveat returns the caveat of a tie without figures.
func identicalCaveat(row stats.Comparison) []stats.Caveat {
	if row.Outcome != stats.Tie {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatIdentical, Text: row.Reason}}
}
