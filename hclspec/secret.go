package hclspec

import "slices"

// Secrets returns the names of the secrets that blocks declare, sorted.
func (s *Spec) Secrets() (names []string) {
	for i := range s.Benchmarks {
		names = append(names, s.Benchmarks[i].Secrets...)
	}
	for i := range s.Tasks {
		names = append(names, s.Tasks[i].Secrets...)
	}
	for i := range s.Wheels {
		if build := s.Wheels[i].Build; build != nil {
			names = append(names, build.Secrets...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
