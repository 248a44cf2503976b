package group

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/metrics/units"
)

// Hardware lists the classes of machine and devices that measured the member.
func (s *Standing) Hardware() []string {
	classes := map[string]bool{}
	for _, r := range s.Rows {
		classes[r.Hardware] = true
	}
	return slices.Sorted(maps.Keys(classes))
}

// Without returns the blocks in which the member has a primary sample and no sample of this metric.
func (s *Standing) Without(metric string) []int { return s.Lacking(s.Series[metric]) }

// Lacking returns the blocks in which the member has a primary sample and values has nothing.
func (s *Standing) Lacking(values map[int]float64) []int {
	var blocks []int
	for _, block := range slices.Sorted(maps.Keys(s.Series[s.Bench.Metrics.Primary])) {
		if _, ok := values[block]; !ok {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// InUnit returns the member's values of a metric in another unit of the same dimension.
func (s *Standing) InUnit(metric, unit string) map[int]float64 {
	values := s.Series[metric]
	if s.Units[metric] == unit {
		return values
	}
	converted := make(map[int]float64, len(values))
	for block, v := range values {
		converted[block], _ = units.Convert(v, s.Units[metric], unit)
	}
	return converted
}

// Counted returns a count of the member by block. It looks for the names among the metrics, then at the end of paths
// into a document, then among the counts that the outputs state beside metrics.
func (s *Standing) Counted(names []string) map[int]float64 {
	for _, name := range names {
		if len(s.Series[name]) > 0 {
			return s.Series[name]
		}
	}
	for _, metric := range slices.Sorted(maps.Keys(s.Series)) {
		if slices.Contains(names, metric[strings.LastIndex(metric, ".")+1:]) {
			return s.Series[metric]
		}
	}
	counts := s.Counts[names[0]]
	if primary := s.Bench.Metrics.Primary; !strings.Contains(s.Units[primary], "/") &&
		maps.Equal(counts, s.Series[primary]) {
		return nil // the file measures the count itself: the work done in a fixed time
	}
	return counts
}

// OwnArtefacts returns the digests of the artefacts that the candidate brought with it, by node name without the
// candidate. Artefacts that another candidate ran, too, are left out, such as a client that is built from the baseline.
// Nodes are matched by variant: a result that several commits share names the commit that was measured first.
func (s *Standing) OwnArtefacts(other *Standing) map[string]string {
	own := map[string]string{}
	_, variant, ok := strings.Cut(s.Candidate(), "/")
	if !ok {
		return own
	}
	for node := range s.Artefacts {
		both := other != nil && other.Artefacts[node] != nil && other.Candidate() != s.Candidate()
		if name, key, _ := strings.Cut(node, "["); !both && strings.HasSuffix(key, "/"+variant+`"]`) {
			own[name] = s.Artefacts.Of(node)
		}
	}
	return own
}

// Spared reports whether no block ran the member, because its artefacts are the baseline's.
func (s *Standing) Spared() bool { return s.same && !s.Measured() }

// In returns the standing of a member by the blocks of one run. Blocks up to burnIn are not judged.
func (m *Member) In(run string, blocks []cache.Entry, burnIn int) (*Standing, error) {
	s := newStanding(m)
	s.Run, s.burnIn = run, burnIn
	for i, e := range blocks {
		rec, err := sample.ReadRecord(e)
		if err != nil {
			return nil, fmt.Errorf("block %d of run %s: %w", i+1, run, err)
		}
		if err := s.read(e, rec); err != nil {
			return nil, fmt.Errorf("block %d of run %s: %w", i+1, run, err)
		}
	}
	return s, nil
}

// Apart returns the difference of two amounts relative to y.
func Apart(x, y float64) float64 {
	switch {
	case x == y:
		return 0
	case y == 0:
		return math.Inf(1)
	}
	return math.Abs(x-y) / math.Abs(y)
}

// Mean returns the mean of values by block; 0: there are none.
func Mean(values map[int]float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	if len(values) == 0 {
		return 0
	}
	return sum / float64(len(values))
}
