package hclspec

import (
	"errors"
	"maps"
	"slices"
)

// Noise is the name of the compare that measures a baseline against itself, and a part of the names of its benchmarks.
const Noise = "noise"

// AgainstItself returns a spec that measures baselines against themselves. It has each benchmark that chosen accepts
// (nil: all) with the first baseline that it measures, the same baseline again as a variant of its own, and one
// compare. Everything else in the file stays, so that the dependencies of the baseline are made as usual. The error
// says that there is no such benchmark.
func (s *Spec) AgainstItself(chosen func(Address) bool) (*Spec, error) {
	own := *s
	own.Benchmarks, own.Reports = nil, nil
	own.Candidates = slices.Clone(s.Candidates)
	compare := Compare{Block: Block{Address: Address{Kind: "compare", Name: Noise}}, Confidence: 0.95}
	again := map[string]string{} // key of a baseline → key of its copy
	taken := map[string]bool{}
	for i := range s.Benchmarks {
		b := &s.Benchmarks[i]
		base, ok := s.candidate(b.Candidate)
		if !ok || !base.Baseline || base.Out != nil || b.Out != nil || taken[b.Address.Name] || chosen != nil &&
			!chosen(b.Address) {
			continue
		}
		taken[b.Address.Name] = true
		if again[base.Key] == "" {
			other := base
			other.Variant, other.Baseline = s.unusedVariant(), false
			other.Key = other.Commit + "/" + other.Variant
			again[base.Key] = other.Key
			own.Candidates = append(own.Candidates, other)
		}
		one, other := *b, *b
		one.Address.Name += " " + Noise // blocks of the benchmark itself have addresses of their own
		other.Address = one.Address
		other.Address.Key, other.Candidate = again[base.Key], again[base.Key]
		own.Benchmarks = append(own.Benchmarks, one, other)
		compare.Of, compare.Range = append(compare.Of, other.Address), b.Range
	}
	if len(compare.Of) == 0 {
		return nil, errors.New("no benchmark measures a baseline")
	}
	own.Compares = []Compare{compare}
	own.Fixes = slices.Clone(s.Fixes)
	for i := range own.Fixes {
		cases := maps.Clone(own.Fixes[i].Cases)
		for base, other := range again {
			if c, ok := cases[base]; ok {
				cases[other] = c
			}
		}
		own.Fixes[i].Cases = cases
	}
	return &own, nil
}

func (s *Spec) candidate(key string) (Candidate, bool) {
	i := slices.IndexFunc(s.Candidates, func(c Candidate) bool { return c.Key == key && key != "" })
	if i < 0 {
		return Candidate{}, false
	}
	return s.Candidates[i], true
}

// unusedVariant returns a name that no variant of the file has.
func (s *Spec) unusedVariant() string {
	name := "again"
	for slices.ContainsFunc(s.Variants, func(v Variant) bool { return v.Name == name }) {
		name += "-"
	}
	return name
}
