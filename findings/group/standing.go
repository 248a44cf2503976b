package group

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics/units"
)

// Standings are how the members of a group stand after its blocks, by name.
type Standings map[string]*Standing

// Standing is how a member stands after its group's blocks.
type Standing struct {
	*Member
	Failure  *failure.Failure   // its own, in a block
	FailedIn int                // the block of Failure; 0: of none in particular
	reading  *failure.Failure   // of gathering its numbers from all its blocks, some of which may be lost since
	Lost     []*failure.Failure // in blocks that have a result
	Infra    *failure.Failure   // of a block as a whole
	Never    string             // why no device can serve the blocks
	Pending  string             // why blocks are still missing
	missing  int                // blocks that have no result
	whole    bool               // its numbers were gathered from all its blocks
	Rows     []sample.Measurement
	Series   map[string]map[int]float64 // metric → block → value, in the unit of units
	Units    map[string]string          // by metric: that of its first sample
	Clash    map[string]string          // by metric: samples whose unit cannot be converted into that
	burnIn   int                        // blocks up to this one are shown and not judged
	First    map[int]bool               // blocks in which it ran before all others that have numbers there
	Canary   map[int]float64            // number of the canary before it, by block

	Evidence []sample.Evidence          // of the blocks with samples that are judged
	Aside    []sample.Evidence          // of the blocks of burn-in
	Counts   map[string]map[int]float64 // by name and block: what the outputs state beside metrics

	Run       string // all of it is from one run; empty: it is as everything stands now
	Procedure Values // how it was measured, as the blocks that were read say
	Artefacts Values // digests of what was measured, by node, likewise
	Silent    bool   // one of them does not say it
	same      bool   // blocks did not run it, because its artefacts are the baseline's
	Shares    Sharing
}

// Sharing is what one member's blocks have to do with those of another group, as both are planned now.
type Sharing struct {
	With   *Standing // the member whose blocks they are, too; nil: none
	Blocks int       // how many
	// how the file judges those groups now
	Rules [][]methodology.Field
}

func newStanding(m *Member) *Standing {
	return &Standing{Member: m, Series: map[string]map[int]float64{}, Units: map[string]string{},
		Clash: map[string]string{}, First: map[int]bool{}, Canary: map[int]float64{},
		Counts: map[string]map[int]float64{}, Procedure: Values{}, Artefacts: Values{}}
}

// Title is the candidate and, where that is not what stands now, the run.
func (s *Standing) Title() string {
	if s.Run == "" {
		return s.Candidate()
	}
	return s.Candidate() + "@" + s.Run
}

// Stand finds out how the members stand. ends tells by address how what gathers from the blocks ended and, where not
// all was gathered, how the blocks did.
func (g *Group) Stand(ends map[string]engine.End) (Standings, error) {
	all := make(Standings, len(g.Members))
	for i := range g.Members {
		m := &g.Members[i]
		s := newStanding(m)
		s.burnIn = g.Design.BurnIn
		all[m.Name] = s
		end := ends[m.Bench.Address.String()]
		s.reading = end.Failure
		if end.Entry.Dir == "" {
			continue
		}
		read, err := sample.Gathered(end.Entry)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Bench.Address, err)
		}
		commit, _, _ := strings.Cut(m.Bench.Candidate, "/")
		for i := range read.Rows { // who does the same work shares the result, which has the name of who did it first
			r := &read.Rows[i]
			r.Benchmark, r.Commit, r.Candidate = m.Bench.Address.Name, commit, m.Bench.Candidate
		}
		s.take(read.Rows)
		s.rest(read.Blocks...)
		s.whole = true
	}
	for _, b := range g.Blocks {
		open := slices.DeleteFunc(slices.Clone(b.Members), func(name string) bool { return all[name].whole })
		end := ends[b.At.String()]
		switch {
		case len(open) == 0:
		case end.Entry.Dir == "":
			for _, name := range open {
				all[name].lacks(b.At, end)
				all[name].missing++
			}
		default:
			if err := all.read(end.Entry, open); err != nil {
				return nil, fmt.Errorf("%s: %w", b.At, err)
			}
		}
	}
	for _, s := range all {
		total := 0
		for _, b := range g.Blocks {
			if slices.Contains(b.Members, s.Name) {
				total++
			}
		}
		if s.Pending != "" && 0 < s.missing && s.missing < total {
			s.Pending = fmt.Sprintf("%d of %d blocks are measured; %s", total-s.missing, total, s.Pending)
		}
	}
	all.line()
	return all, nil
}

// line determines which member ran first in each block. Members that were left out of a block or failed in it do not
// count: the first member whose numbers are judged found the machine in the same state as without them.
func (all Standings) line() {
	places := map[int]int{} // by block
	for _, s := range all {
		for _, r := range s.Rows {
			if least, known := places[r.Block]; !known || r.Position < least {
				places[r.Block] = r.Position
			}
		}
	}
	for _, s := range all {
		for _, r := range s.Rows {
			s.First[r.Block] = r.Position == places[r.Block]
		}
	}
}

// Measurements are the numbers of a member.
func (all Standings) Measurements(member string) []sample.Measurement { return all[member].Rows }

// Baseline is that of the group; nil when it has none.
func (all Standings) Baseline(g *Group) *Standing {
	for i := range g.Members {
		if g.Members[i].Baseline {
			return all[g.Members[i].Name]
		}
	}
	return nil
}

// read reads the samples and failures that the named members have in one block.
func (all Standings) read(e cache.Entry, names []string) error {
	rec, err := sample.ReadRecord(e)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := all[name].read(e, rec); err != nil {
			return err
		}
	}
	return nil
}

// read adds the record of one block to the standing of the member.
func (s *Standing) read(e cache.Entry, rec *sample.Record) error {
	own, ok := rec.Members[s.Name]
	switch {
	case ok && own.Same:
		s.rest(own.Spared(rec.Block))
		return nil
	case !ok || own.Skipped != "":
		return nil
	case own.Failure != nil:
		s.fails(rec.Block, own.Failure)
		return nil
	}
	rows, evidence, err := rec.Read(e, s.Bench, s.Name)
	if missing, ok := errors.AsType[*engine.Failure](err); ok {
		s.fails(rec.Block, &missing.Failure)
	} else if err != nil {
		return err
	}
	s.take(rows)
	if len(rows) > 0 {
		s.rest(evidence)
	}
	s.note(own)
	return nil
}

// fails notes that the member failed in a block. The first failure stands for all, as it does where numbers are
// gathered; a wrong result goes before any other failure.
func (s *Standing) fails(block int, f *failure.Failure) {
	s.Lost = append(s.Lost, f)
	if s.Failure == nil || f.Rule == sample.Wrong && s.Failure.Rule != sample.Wrong {
		s.Failure, s.FailedIn = f, block
	}
}

// measured says that the member has a valid sample of its primary metric.
func (s *Standing) Measured() bool { return len(s.Series[s.Bench.Metrics.Primary]) > 0 }

// take takes over numbers.
func (s *Standing) take(rows []sample.Measurement) {
	for _, r := range rows {
		if r.Block <= s.burnIn {
			r.Phase = sample.BurnIn
			s.Rows = append(s.Rows, r)
			continue
		}
		s.Rows = append(s.Rows, r)
		if s.Series[r.Metric] == nil {
			s.Series[r.Metric] = map[int]float64{}
		}
		unit, known := s.Units[r.Metric]
		if !known {
			unit = r.Unit
			s.Units[r.Metric] = unit
		}
		value, ok := units.Convert(r.Value, r.Unit, unit)
		if !ok {
			value = r.Value
			s.Clash[r.Metric] = fmt.Sprintf("%q, and %q in block %d", unit, r.Unit, r.Block)
		}
		s.Series[r.Metric][r.Block] = value
	}
}

// rest takes over what the numbers of blocks rest on.
func (s *Standing) rest(blocks ...sample.Evidence) {
	for _, e := range blocks {
		s.same = s.same || e.Same
		switch {
		case e.Same: // nothing was measured
		case e.Block <= s.burnIn:
			s.Aside = append(s.Aside, e)
			continue
		default:
			s.Evidence = append(s.Evidence, e)
		}
		s.Canary[e.Block] = e.Canary
		for _, a := range e.Artefacts {
			s.Artefacts.add(a.Node, a.Digest)
		}
		for name, value := range e.Counts {
			if s.Counts[name] == nil {
				s.Counts[name] = map[int]float64{}
			}
			s.Counts[name][e.Block] = value
		}
	}
}

// note takes over how the member was measured, and what.
func (s *Standing) note(own sample.Member) {
	s.Silent = s.Silent || len(own.Procedure) == 0
	for _, f := range own.Procedure {
		s.Procedure.add(f.Name, f.Value)
	}
	for _, a := range own.Artefacts {
		s.Artefacts.add(a.Node, a.Digest)
	}
}

// Values are what blocks say of things by name. Mostly they agree.
type Values map[string]map[string]bool

func (v Values) add(name, value string) {
	if v[name] == nil {
		v[name] = map[string]bool{}
	}
	v[name][value] = true
}

// Of are all values of one thing, as one.
func (v Values) Of(name string) string {
	return strings.Join(slices.Sorted(maps.Keys(v[name])), "; ")
}

// lacks notes that a block has no result.
func (s *Standing) lacks(at hclspec.Address, end engine.End) {
	switch {
	case s.Absent != "":
	case s.reading != nil && !s.reading.Class.Retried():
		s.Failure = s.reading
	case end.Never:
		s.Never = end.Reason
	case end.Failure != nil && end.Failure.Class.Retried():
		if f := end.Failure; f.Subject == "" || f.IsAbout(s.Candidate()) {
			s.Infra = f
		} else {
			s.Pending = fmt.Sprintf("%s was voided by %s", at, f.Subject)
		}
	case end.Failure != nil && end.Failure.IsAbout(s.Candidate()):
		s.Failure = end.Failure
	case s.Pending == "":
		s.Pending = cmp.Or(end.Reason, at.String()+" has not been run")
	}
}
