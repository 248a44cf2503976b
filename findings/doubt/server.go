package doubt

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/stats"
)

// A server that foresees its requests may compute answers while it starts, which is not measured. So a start is too
// long if it takes readyTimes as long as on the other side, and longer by readyShare of the time of the other side's
// command: enough for half of the answers, say. This difference is at most mostReady, since a server that has all
// requests at once answers faster than a client asks, and at least leastReady, since the start of processes varies.
const (
	readyTimes            = 1.5
	readyShare            = 0.5
	leastReady, mostReady = 1.0, 30.0 // seconds
)

// hitsApart is the largest difference between the hit rates of two prefix caches that is no caveat.
const hitsApart = 0.01

// Ready doubts a gain of a server that took far longer than the other side's until it was ready.
func Ready(row stats.Comparison, s, base *group.Standing) []stats.Caveat {
	own, theirs := ready(s), ready(base)
	maps.DeleteFunc(own, func(block int, _ float64) bool { return theirs[block] == 0 })
	maps.DeleteFunc(theirs, func(block int, _ float64) bool { return own[block] == 0 })
	mine, other := group.Mean(own), group.Mean(theirs)
	more := min(mostReady, max(leastReady, readyShare*group.Mean(took(base))))
	if row.Outcome != stats.Win || len(own) < stats.FewestBlocks || mine < readyTimes*other || mine < other+more {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatServer, Text: fmt.Sprintf("the server of %s was ready after %s on "+
		"average, and that of %s after %s: if it foresees what it is asked, it may have worked out the answers by then",
		s.Title(), seconds(mine), base.Title(), seconds(other))}}
}

// ready returns the time until the server was ready, in seconds by block.
func ready(s *group.Standing) map[int]float64 {
	times := map[int]float64{}
	for _, e := range s.Evidence {
		if e.Ready > 0 {
			times[e.Block] = e.Ready.Seconds()
		}
	}
	return times
}

// Servers returns the caveats that follow from the counters of the servers: a prefix cache that served more of the
// prompts on one side, or requests that a client reports and its server did not finish. A client may send requests that
// it does not report, such as a probe, so a surplus counts only if it differs between the sides. If only one server
// counts its requests, a caveat says that nothing can be checked.
func Servers(s, base *group.Standing) []stats.Caveat {
	var list []stats.Caveat
	tell := func(format string, args ...any) {
		list = append(list, stats.Caveat{Kind: stats.CaveatServer, Text: fmt.Sprintf(format, args...)})
	}
	own, known := hitRate(s)
	theirs, both := hitRate(base)
	if known && both && math.Abs(own-theirs) > hitsApart {
		tell("the prefix cache of the server had %.3g %% of the prompts of %s and %.3g %% of those of %s", 100*own,
			s.Title(), 100*theirs, base.Title())
	}
	for _, sides := range [][2]*group.Standing{{s, base}, {base, s}} {
		if !counts(sides[0]) && counts(sides[1]) {
			tell("the server of %s has no page /metrics that counts its requests, and that of %s has one: nothing can "+
				"be held against what its client reports", sides[0].Title(), sides[1].Title())
		}
	}
	mine, other := unreported(s), unreported(base)
	for _, side := range []*group.Standing{s, base} {
		of := unreported(side)
		for _, block := range slices.Sorted(maps.Keys(of)) {
			if of[block] < 0 {
				tell("the server of %s finished %.6g requests fewer than its client reports in block %d", side.Title(),
					-of[block], block)
				break
			}
		}
	}
	for _, block := range slices.Sorted(maps.Keys(mine)) {
		if n, shared := other[block]; shared && mine[block] >= 0 && n >= 0 && mine[block] != n {
			tell("the server of %s finished %.6g requests that its client does not report in block %d, and that of "+
				"%s %.6g", s.Title(), mine[block], block, base.Title(), n)
			break
		}
	}
	return list
}

// counts reports whether the member's server counted requests in a block.
func counts(s *group.Standing) bool {
	return slices.ContainsFunc(s.Evidence, func(e sample.Evidence) bool {
		_, counts := e.Counters["requests"]
		return counts
	})
}

// hitRate returns the mean hit rate of the prefix cache over the member's blocks; false: not known.
func hitRate(s *group.Standing) (float64, bool) {
	rates := map[int]float64{}
	for _, e := range s.Evidence {
		if rate, known := e.Counters.HitRate(); known {
			rates[e.Block] = rate
		}
	}
	return group.Mean(rates), len(rates) > 0
}

// unreported returns the number of requests that the server finished beyond those that the client reports, by block.
func unreported(s *group.Standing) map[int]float64 {
	reported, failed := s.Counted(sample.Counts()[0]), s.Counted(sample.Counts()[1])
	surplus := map[int]float64{}
	for _, e := range s.Evidence {
		n, counts := e.Counters["requests"]
		if done, reports := reported[e.Block]; counts && reports {
			surplus[e.Block] = n - done
			if surplus[e.Block] > 0 { // a server may count failed requests as finished
				surplus[e.Block] = max(0, surplus[e.Block]-failed[e.Block])
			}
		}
	}
	return surplus
}
