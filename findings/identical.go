package findings

import (
	"maps"
	"slices"

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

// shared is the caveat of a candidate that was not measured itself. A commit that has another name now shares nothing.
func (c *Case) shared(s *group.Standing) []stats.Caveat {
	if _, declared := c.Rank[s.Shares]; !declared {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatShared,
		Text: "these are the blocks of " + s.Shares + ", which does the same work: both rows are one measurement"}}
}

// identicalCaveat is that of a row without figures.
func identicalCaveat(row stats.Comparison) []stats.Caveat {
	if row.Outcome != stats.Tie {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatIdentical, Text: row.Reason}}
}
