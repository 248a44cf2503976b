package findings

import (
	"cmp"
	"time"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// Measured is the state of a member with valid samples of its primary metric. Other states have no figures.
const Measured = "measured"

// State is the state of one member of a group. The baseline has one, too.
type State struct {
	Benchmark string `json:"benchmark"`
	Commit    string `json:"commit"`
	Variant   string `json:"variant"`
	Candidate string `json:"candidate"`
	Baseline  bool   `json:"baseline"`
	GPUs      int    `json:"gpus"`  // devices that the benchmark asks for
	State     string `json:"state"` // Measured, or the member's outcome apart from the baseline
	Reason    string `json:"reason,omitempty"`
	Blocks    int    `json:"blocks"` // valid blocks
}

// Failed is one failed attempt at a node, or the failure of one member in a block.
type Failed struct {
	Address   string          `json:"address"`
	Commit    string          `json:"commit,omitempty"`
	Candidate string          `json:"candidate,omitempty"` // empty: no candidate in particular
	Failure   failure.Failure `json:"failure"`
	Attempt   string          `json:"attempt,omitempty"` // name of its log
	Took      time.Duration   `json:"took_ns,omitempty"` // 0: not recorded
}

// Spent is one recorded attempt at a block, or at a node that a member needs.
type Spent struct {
	Attempt string        `json:"attempt"`
	Took    time.Duration `json:"took_ns"`
	GPUs    int           `json:"gpus,omitempty"` // devices of its lease

	Hardware string `json:"hardware,omitempty"` // class of the machine, as samples record it; empty: not recorded
	Failed   bool   `json:"failed,omitempty"`
	Block    bool   `json:"block,omitempty"` // an attempt at a block of measurement

	Benchmark string `json:"benchmark,omitempty"` // of a block or a fill; else empty
	Commit    string `json:"commit,omitempty"`    // of a block or a fill; else empty
}

// states returns the states of the baseline and of all members that the case judges.
func (c *Case) states(g *group.Group, all group.Standings) []State {
	list := make([]State, 0, len(g.Members))
	for i := range g.Members {
		m := &g.Members[i]
		if m.Candidate() == "" || !m.Baseline && !c.Of[m.Bench.Address] {
			continue
		}
		s := all[m.Name]
		st := State{Benchmark: m.Bench.Address.Name, Commit: g.Commit, Variant: m.Name, Candidate: m.Candidate(),
			Baseline: m.Baseline,
			GPUs:     devices(m.Bench), Blocks: len(s.Series[m.Bench.Metrics.Primary])}
		st.State, st.Reason = state(s)
		list = append(list, st)
	}
	return list
}

// pairs compares each patched member of a group with each unpatched member that is not the baseline: an agent's change
// with the commit's own. The rows are on the primary metric and in no ledger.
func (c *Case) pairs(g *group.Group, all group.Standings) []stats.Comparison {
	var rows []stats.Comparison
	fit := func(m *group.Member) bool { return !m.Baseline && c.judges(m) && all[m.Name].Measured() }
	for i := range g.Members {
		against := &g.Members[i]
		if against.Patched || !fit(against) {
			continue
		}
		for j := range g.Members {
			m := &g.Members[j]
			if !m.Patched || !fit(m) {
				continue
			}
			for _, row := range c.Pair(g, all, m.Name, against.Name) {
				if row.Primary {
					rows = append(rows, row)
				}
			}
		}
	}
	return rows
}

// state returns the state of a member by itself, without regard to the baseline.
func state(s *group.Standing) (state, reason string) {
	switch {
	case s.Absent != "":
		return string(s.Absent), s.Why
	case s.Never != "":
		return string(stats.Infeasible), s.Never
	case s.Failure != nil:
		return string(stats.Failed), failed(s)
	case s.Infra != nil:
		return string(stats.Infra), Explain(s.Infra)
	case s.Measured():
		return Measured, ""
	case s.Spared():
		return string(stats.Tie), SameBytes(s.OwnArtefacts(nil))
	}
	return string(stats.NotRun), cmp.Or(s.Pending, "no sample has been taken")
}

func devices(b *hclspec.Benchmark) int {
	if b.GPUs == nil {
		return 0
	}
	return b.GPUs.Count
}
