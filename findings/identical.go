package findings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/stats"
)

const notMeasured = "identical artefact, not measured: "

// SameInputs is why a candidate is not measured whose artefacts are made from the same inputs as the baseline's.
func SameInputs(names []string) string {
	return notMeasured + some(names) + " of both sides is made from the same inputs"
}

// SameBytes is why a candidate is not measured whose artefacts have the baseline's digests.
func SameBytes(digests map[string]string) string {
	return notMeasured + "both sides are the same bytes (" + digestsText(digests) + ")"
}

func digestsText(digests map[string]string) string {
	var parts []string
	for _, node := range slices.Sorted(maps.Keys(digests)) {
		parts = append(parts, node+" "+brief(digests[node]))
	}
	return some(parts)
}

// identical says which artefacts both sides ran byte by byte; empty: they differ somewhere, or nothing is known of
// them.
func identical(s, base *standing) string {
	own, theirs := s.ownArtefacts(), base.ownArtefacts()
	if len(own) == 0 || !maps.Equal(own, theirs) {
		return ""
	}
	return digestsText(own)
}

// ownArtefacts are the digests of what the candidate brought with it, by node without the candidate.
func (s *standing) ownArtefacts() map[string]string {
	own := map[string]string{}
	for node := range s.artefacts {
		if name, ok := strings.CutSuffix(node, fmt.Sprintf("[%q]", s.candidate())); ok && s.candidate() != "" {
			own[name] = s.artefacts.of(node)
		}
	}
	return own
}

// spared says that no block ran the member, because it is the baseline's artefact.
func (s *standing) spared() bool { return s.same && !s.measured() }

// identicalCaveat is that of a row without figures.
func identicalCaveat(row stats.Comparison) []stats.Caveat {
	if row.Outcome != stats.Tie {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatIdentical, Text: row.Reason}}
}
