package stats

import (
	"encoding/json"
	"slices"
)

// Kinds of caveats.
const (
	CaveatFix           = "fix"                // a fix was applied that may change speed
	CaveatMismatch      = "mismatch"           // the methodologies differ, and the user allowed it
	CaveatTest          = "test"               // the statistical test of the figures
	CaveatNoVerdict     = "no_verdict"         // the reason why the figures have no verdict
	CaveatWarning       = "warning"            // the parser of an output warned
	CaveatUnit          = "unit"               // values were converted into another unit
	CaveatMissing       = "missing"            // a metric is missing on one side
	CaveatConstant      = "constant"           // the metric has one value in all blocks
	CaveatIdentical     = "identical_artefact" // both sides ran the same bytes
	CaveatSameWork      = "same_work"          // no side uses anything of its candidate
	CaveatShared        = "shared"             // the blocks are also those of another candidate
	CaveatRequests      = "requests"           // requests failed on both sides, or amounts of tokens are in doubt
	CaveatContradiction = "contradiction"      // numbers of one output contradict each other
	CaveatClock         = "wall_clock"         // the wall clock does not show the gain
	CaveatServer        = "server"             // the counters of the servers differ
	CaveatRule          = "rule_changed"       // the judging rule changed after the first block
	CaveatRerolled      = "rerolled"           // results of blocks were replaced on request
	CaveatRuns          = "runs"               // the blocks come from several applies
	CaveatVoided        = "voided"             // blocks were voided and measured again
	CaveatArtefact      = "artefact"           // the artefact differs between two runs
	CaveatProtected     = "protected"          // measuring files are copies of the baseline's, or the candidate's own
	CaveatMachine       = "machine"            // settings of the machine differ between blocks
	CaveatReplica       = "replica"            // the result of another class of machine
	CaveatOrder         = "order"              // the differences depend on when they were measured
	// running first in a block changes samples; the change was removed from the figures
	CaveatPosition = "position"
	// the machine's speed changed inside blocks; the change was removed from the figures
	CaveatCanary     = "canary"
	CaveatUnverified = "unverified" // an older version measured the blocks and recorded less
)

// CaveatKinds returns all kinds of caveats.
func CaveatKinds() []string {
	return []string{CaveatFix, CaveatMismatch, CaveatTest, CaveatNoVerdict, CaveatWarning, CaveatUnit, CaveatMissing,
		CaveatConstant, CaveatIdentical, CaveatSameWork, CaveatShared, CaveatRequests, CaveatContradiction, CaveatClock,
		CaveatServer, CaveatRule, CaveatRerolled, CaveatRuns, CaveatVoided, CaveatArtefact, CaveatProtected,
		CaveatMachine, CaveatReplica, CaveatOrder, CaveatPosition, CaveatCanary, CaveatUnverified}
}

// Caveat is a restriction that stands with a figure.
type Caveat struct {
	Kind string `json:"kind"` // one of CaveatKinds
	Text string `json:"text"` // one sentence or clause
}

// Attempts counts how the attempts at the blocks of one contrast ended.
type Attempts struct {
	Valid    int     `json:"valid"`    // blocks whose samples count
	Voided   int     `json:"voided"`   // attempts that ended without a result
	Retried  int     `json:"retried"`  // attempts that followed a voided one
	Replaced int     `json:"replaced"` // results that a later attempt replaced, on request
	Causes   []Cause `json:"causes"`   // of voided attempts, and of results that were replaced after a failure
}

// MarshalJSON writes an empty list of causes for a missing one.
func (a Attempts) MarshalJSON() ([]byte, error) {
	type plain Attempts
	a.Causes = append([]Cause{}, a.Causes...)
	return json.Marshal(plain(a))
}

// Cause counts the attempts that one variant lost in one way.
type Cause struct {
	Variant string `json:"variant"` // empty: the machine, or nobody in particular
	Class   string `json:"class"`
	Rule    string `json:"rule"` // empty: undiagnosed
	Count   int    `json:"count"`
}

// Lost returns the number of attempts that a variant lost.
func (a *Attempts) Lost(variant string) int {
	n := 0
	if a == nil {
		return n
	}
	for _, c := range a.Causes {
		if c.Variant == variant {
			n += c.Count
		}
	}
	return n
}

// Add counts one cause.
func (a *Attempts) Add(variant, class, rule string) {
	i := slices.IndexFunc(a.Causes, func(c Cause) bool {
		return c.Variant == variant && c.Class == class && c.Rule == rule
	})
	if i < 0 {
		a.Causes = append(a.Causes, Cause{Variant: variant, Class: class, Rule: rule})
		i = len(a.Causes) - 1
	}
	a.Causes[i].Count++
}
