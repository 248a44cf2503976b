// Package group describes the candidates that are measured together, and the standing of each of them after their
// blocks.
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
	Members []Member // absent ones included
	Blocks  []Block
	Rule    []methodology.Field // the file's judging rule now; see package rule
}

// A Block is one block of a group: the address of its trial and the names of its members.
type Block struct {
	At      hclspec.Address
	Members []string
}

// Member is one variant in a group.
type Member struct {
	Name        string // name of the variant; "run" if the benchmark has no candidates
	Baseline    bool
	Patched     bool // by a patch of the project
	Bench       *hclspec.Benchmark
	Absent      stats.Outcome           // outcome of a member that takes no part; else empty
	Why         string                  // reason of Absent
	Methodology methodology.Description // as declared; the samples record the hardware
	Fixes       []Fix                   // of the member and of its artefacts
	Caveats     []stats.Caveat          // of every figure of the member
	Tries       map[int][]sample.Try    // attempts at blocks that have no result, by block
}

// Fix is a fix that a member ran with, or that its artefacts were made with.
type Fix struct {
	Name   string `json:"name"`
	Effect string `json:"effect"`
	Caveat string `json:"caveat,omitempty"`
	Recipe string `json:"recipe"` // equal for members to which the fix does the same
}

// Candidate returns the name of the member's candidate.
func (m *Member) Candidate() string { return m.Bench.Candidate }

// Together returns the design of a group with design d to which a member with design own is added: the more demanding
// design decides.
func Together(d, own hclspec.Design) hclspec.Design {
	most, spread := max(d.BurnIn, own.BurnIn), d.Spread || own.Spread
	if own.Max > d.Max || own.Max == d.Max && own.Samples > d.Samples {
		d = own
	}
	d.BurnIn, d.Spread = most, spread
	return d
}
