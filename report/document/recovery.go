package document

import (
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/stats"
)

// Ways in which a row without a verdict could get a verdict.
const (
	byFix     = "fix"
	byRebuild = "rebuild"
	byRetry   = "retry"
	byGPUs    = "more GPUs"
	byRun     = "apply"
	byBlocks  = "more blocks"
	byMetric  = "another metric"
	byNothing = "none: the candidate's own"
	byBase    = "none: the baseline's own"
	byIntent  = "none: declared"
)

// Recovery groups the rows that could get a verdict in the same way.
type Recovery struct {
	Way        string   `json:"way"`
	Rows       int      `json:"rows"`
	Of         int      `json:"of"` // rows without a verdict
	Candidates []string `json:"candidates"`
	Remedies   []string `json:"remedies"`
	// Cost estimates the seconds of the missing blocks: for an open row, the blocks that would settle it; otherwise
	// the mean time of a measured block × the blocks of a row. null: no block was measured, or nothing helps.
	Cost      *float64 `json:"cost_s"`
	Estimated bool     `json:"estimated"`
	took      time.Duration
}

// Recoveries groups all rows without a verdict by the way to a verdict.
func Recoveries(p *Counted) []Recovery {
	type group struct{ way, benchmark, commit string }
	blocks := typicalBlocks(p.Comparisons)
	at, needed := map[string]*Recovery{}, map[group]time.Duration{} // time of the missing blocks
	open := 0
	for _, c := range p.Comparisons {
		if !c.Primary || c.Outcome == stats.Win || c.Outcome == stats.Loss || c.Outcome == stats.Tie {
			continue
		}
		open++
		way, remedy := wayOut(c, p.Failures)
		if at[way] == nil {
			at[way] = &Recovery{Way: way, Candidates: []string{}, Remedies: []string{}}
		}
		r := at[way]
		r.Rows++
		r.Candidates = append(r.Candidates, c.Candidate)
		if remedy != "" && !slices.Contains(r.Remedies, remedy) {
			r.Remedies = append(r.Remedies, remedy)
		}
		took := p.Cost.PerBlock * time.Duration(blocks)
		switch {
		case way == byBlocks && c.Settle != nil && c.Settle.Took > 0: // the row's own estimate
			took = c.Settle.Took
		case way == byBlocks:
			took = p.Cost.PerBlock * time.Duration(max(0, c.Needed-c.Blocks))
		}
		if !slices.Contains([]string{byMetric, byNothing, byBase, byIntent}, way) {
			shared := group{way, c.Benchmark, c.Commit}
			needed[shared] = max(needed[shared], took)
		}
	}
	for g, took := range needed {
		at[g.way].took += took
	}
	var list []Recovery
	for _, way := range []string{byFix, byRebuild, byRetry, byGPUs, byRun, byBlocks, byMetric, byNothing, byBase,
		byIntent} {
		if r := at[way]; r != nil {
			r.Of, r.Cost, r.Estimated = open, Seconds(r.took), r.took > 0
			list = append(list, *r)
		}
	}
	return list
}

// typicalBlocks returns the median number of blocks of rows with figures; 0 without such rows.
func typicalBlocks(rows []stats.Comparison) int {
	var all []int
	for _, c := range rows {
		if c.Primary && c.Blocks > 0 {
			all = append(all, c.Blocks)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// wayOut returns the way to a verdict for a row, with the remedy of the failure behind it.
func wayOut(c stats.Comparison, failures []Failed) (way, remedy string) {
	switch c.Outcome {
	case stats.Skipped, stats.NoPatch:
		return byIntent, ""
	case stats.Infeasible:
		return byGPUs, ""
	case stats.Inconclusive:
		if strings.HasSuffix(c.Reason, stats.NoLogarithm) {
			return byMetric, "judge by a metric whose values are above 0"
		}
		return byBlocks, ""
	case stats.NotComparable:
		return byRun, "measure both under the same conditions"
	case stats.Wrong:
		return byNothing, ""
	}
	who, own := c.Candidate, byNothing
	if c.Outcome == stats.NoBaseline {
		who, own = c.Against, byBase
	}
	i := slices.IndexFunc(failures, func(f Failed) bool { return f.Candidate == who && f.Commit == c.Commit })
	switch {
	case i >= 0:
	case c.Outcome == stats.Infra:
		return byRetry, ""
	case c.Outcome == stats.BuildFailed, c.Outcome == stats.Failed: // nothing ran, for example after a refused patch
		return own, ""
	default:
		return byRun, ""
	}
	f := failures[i]
	switch {
	case f.Class == failure.Fixable:
		return byFix, f.Remedy
	case f.Class != failure.Permanent:
		return byRetry, f.Remedy
	case strings.Contains(f.Rule, "memory") || strings.HasPrefix(f.Rule, "kv_cache"):
		return byGPUs, f.Remedy
	case f.Stage != "checkout" && c.Outcome == stats.BuildFailed, f.Stage == "build", f.Stage == "fetch":
		return byRebuild, f.Remedy
	}
	return own, f.Remedy
}
