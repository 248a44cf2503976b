// Package group has the candidates that are measured together, and how each of them stands after their blocks.
package group

import (
	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// Group is the candidates of one benchmark that are measured together, in the same blocks.
type Group struct {
	Commit  string
	Design  hclspec.Design
	Members []Member // all that were to take part
	Blocks  []Block
	Rule    []methodology.Field // how the file judges now; parts of one compare begin with its address
}

// A Block is one block of a group: the address of its trial and the names of its members.
type Block struct {
	At      hclspec.Address
	Members []string
}

// Member is one variant in a group.
type Member struct {
	Name        string // of the variant; "run" where the benchmark has no candidates
	Baseline    bool
	Patched     bool // by a patch of the project
	Bench       *hclspec.Benchmark
	Absent      stats.Outcome           // of one that takes no part; else empty
	Why         string                  // it takes none
	Methodology methodology.Description // as declared; on what hardware it was is known by the samples
	Fixes       []Fix                   // that it was measured with
	Caveats     []stats.Caveat          // that every figure must carry
	Tries       map[int][]sample.Try    // by block: attempts at those that have no result
}

// Fix is one that a member ran with, or that its artefacts were made with.
type Fix struct {
	Name   string `json:"name"`
	Effect string `json:"effect"`
	Caveat string `json:"caveat,omitempty"`
	Recipe string `json:"recipe"` // the same for members that it does the same to
}

// Candidate is the name of the candidate that the member is.
func (m *Member) Candidate() string { return m.Bench.Candidate }

// Together is how often a group is measured of which one more member asks for a design: as the most demanding one asks.
func Together(d, own hclspec.Design) hclspec.Design {
	most, spread := max(d.BurnIn, own.BurnIn), d.Spread || own.Spread
	if own.Max > d.Max || own.Max == d.Max && own.Samples > d.Samples {
		d = own
	}
	d.BurnIn, d.Spread = most, spread
	return d
}
