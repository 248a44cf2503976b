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

// Standings are the standings of the members of a group, by name.
type Standings map[string]*Standing

// Standing is the state of a member after the blocks of its group.
type Standing struct {
	*Member
	Failure       *failure.Failure   // the member's own failure in a block
	FailedIn      int                // block of Failure; 0: no block in particular
	gatherFailure *failure.Failure   // of the benchmark node; some of its blocks may be lost since
	Lost          []*failure.Failure // its failures in blocks that have a result
	Infra         *failure.Failure   // failure of a block as a whole
	Never         string             // why no device can serve the blocks
	Pending       string             // why blocks are still missing
	missing       int                // blocks that have no result
	gathered      bool               // the benchmark node gathered the numbers of all its blocks
	Rows          []sample.Measurement
	Series        map[string]map[int]float64 // metric → block → value, in the unit of Units
	Units         map[string]string          // unit of the first sample, by metric
	Clash         map[string]string          // text about a unit that cannot be converted, by metric
	burnIn        int                        // blocks up to this one are shown and not judged
	First         map[int]bool               // the member was the first with numbers, by block
	Canary        map[int]float64            // number of the canary before it, by block

	Evidence []sample.Evidence          // of the blocks with samples that are judged
	Aside    []sample.Evidence          // of the blocks of burn-in
	Counts   map[string]map[int]float64 // counts that outputs state beside metrics, by name and block

	Run       string // the run that all blocks are from; empty: they are the current blocks
	Procedure Values // methodology, from the records of blocks
	Artefacts Values // digests of the artefacts that ran, by node
	Silent    bool   // the record of a block has no methodology
	same      bool   // blocks did not run it, because its artefacts are the baseline's
	Shares    Sharing
}

// Sharing describes the blocks that a member has in common with a member of another group, as both are planned now.
type Sharing struct {
	With   *Standing // member of another group with the same blocks; nil: none
	Blocks int       // number of common blocks
	// the file's judging rules now, of the groups that have common blocks
	Rules [][]methodology.Field
}

func newStanding(m *Member) *Standing {
	return &Standing{Member: m, Series: map[string]map[int]float64{}, Units: map[string]string{},
		Clash: map[string]string{}, First: map[int]bool{}, Canary: map[int]float64{},
		Counts: map[string]map[int]float64{}, Procedure: Values{}, Artefacts: Values{}}
}

// Title returns the candidate, with the run if the standing is of one run.
func (s *Standing) Title() string {
	if s.Run == "" {
		return s.Candidate()
	}
	return s.Candidate() + "@" + s.Run
}

// Stand returns the standings of the members. ends holds ends of nodes by address: of the benchmark nodes, which gather
// the numbers of all blocks, and of trials whose numbers no benchmark node has gathered.
func (g *Group) Stand(ends map[string]engine.End) (Standings, error) {
	all := make(Standings, len(g.Members))
	for i := range g.Members {
		m := &g.Members[i]
		s := newStanding(m)
		s.burnIn = g.Design.BurnIn
		all[m.Name] = s
		end := ends[m.Bench.Address.String()]
		s.gatherFailure = end.Failure
		if end.Entry.Dir == "" {
			continue
		}
		read, err := sample.Gathered(end.Entry)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Bench.Address, err)
		}
		commit, _, _ := strings.Cut(m.Bench.Candidate, "/")
		for i := range read.Rows { // members that do the same work share a result, which names the first
			r := &read.Rows[i]
			r.Benchmark, r.Commit, r.Candidate = m.Bench.Address.Name, commit, m.Bench.Candidate
		}
		s.addRows(read.Rows)
		s.addEvidence(read.Blocks...)
		s.gathered = true
	}
	for _, b := range g.Blocks {
		open := slices.DeleteFunc(slices.Clone(b.Members), func(name string) bool { return all[name].gathered })
		end := ends[b.At.String()]
		switch {
		case len(open) == 0:
		case end.Entry.Dir == "":
			for _, name := range open {
				all[name].addMissing(b.At, end)
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
	all.setFirst()
	return all, nil
}

// setFirst finds the member that ran first in each block. Members that were left out of a block or failed in it do not
// count: the first member with numbers found the machine as if they had not been there.
func (all Standings) setFirst() {
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

// Measurements returns the numbers of a member.
func (all Standings) Measurements(member string) []sample.Measurement { return all[member].Rows }

// Baseline returns the standing of the group's baseline, or nil if the group has none.
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
		s.addEvidence(own.Spared(rec.Block))
		return nil
	case !ok || own.Skipped != "":
		return nil
	case own.Failure != nil:
		s.addFailure(rec.Block, own.Failure)
		return nil
	}
	rows, evidence, err := rec.Read(e, s.Bench, s.Name)
	if missing, ok := errors.AsType[*engine.Failure](err); ok {
		s.addFailure(rec.Block, &missing.Failure)
	} else if err != nil {
		return err
	}
	s.addRows(rows)
	if len(rows) > 0 {
		s.addEvidence(evidence)
	}
	s.addProcedure(own)
	return nil
}

// addFailure records that the member failed in a block. Failure keeps the first failure; only a wrong result replaces
// another failure.
func (s *Standing) addFailure(block int, f *failure.Failure) {
	s.Lost = append(s.Lost, f)
	if s.Failure == nil || f.Rule == sample.Wrong && s.Failure.Rule != sample.Wrong {
		s.Failure, s.FailedIn = f, block
	}
}

// Measured reports whether the member has a valid sample of its primary metric.
func (s *Standing) Measured() bool { return len(s.Series[s.Bench.Metrics.Primary]) > 0 }

// addRows adds numbers. The numbers of burn-in blocks are in no series.
func (s *Standing) addRows(rows []sample.Measurement) {
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

// addEvidence adds the evidence of blocks.
func (s *Standing) addEvidence(blocks ...sample.Evidence) {
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

// addProcedure adds the methodology and the artefacts that the record of a block states.
func (s *Standing) addProcedure(own sample.Member) {
	s.Silent = s.Silent || len(own.Procedure) == 0
	for _, f := range own.Procedure {
		s.Procedure.add(f.Name, f.Value)
	}
	for _, a := range own.Artefacts {
		s.Artefacts.add(a.Node, a.Digest)
	}
}

// Values holds the values that blocks state, by name. Most names have one value.
type Values map[string]map[string]bool

func (v Values) add(name, value string) {
	if v[name] == nil {
		v[name] = map[string]bool{}
	}
	v[name][value] = true
}

// Of returns all values of a name, joined by semicolons.
func (v Values) Of(name string) string {
	return strings.Join(slices.Sorted(maps.Keys(v[name])), "; ")
}

// addMissing records that a block has no result, and why.
func (s *Standing) addMissing(at hclspec.Address, end engine.End) {
	switch {
	case s.Absent != "":
	case s.gatherFailure != nil && !s.gatherFailure.Class.Retried():
		s.Failure = s.gatherFailure
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
