package repro

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
)

// fill writes the run that fills the caches of a benchmark's candidate. Its result has a directory for each of them.
func (s *script) fill(at hclspec.Address) error {
	of := at
	of.Kind = "benchmark"
	b, ok := find(s.Spec.Benchmarks, func(v *hclspec.Benchmark) hclspec.Address { return v.Address }, of)
	if !ok || len(b.Caches) == 0 {
		return fmt.Errorf("%s: no benchmark of the file has caches of that name", at)
	}
	s.comment("%s", at)
	own := *b
	own.Command = b.Fill
	err := s.lifecycle(&own, "", func(r *running) {
		s.invoke(r, own.Command, " > /dev/null # fills the caches")
	})
	if err != nil {
		return err
	}
	s.comment("%s: what the caches hold now", at)
	name := s.dir()
	for _, c := range s.caches(b) {
		s.line(`mkdir -p "$%s/"%s; cp -pR %s/. "$%[1]s/"%[2]s`, name, shell.Quote(c.Address.Name), place(c))
	}
	s.places[at] = name
	return nil
}

// caches are those that a benchmark names.
func (s *script) caches(b *hclspec.Benchmark) []hclspec.Cache {
	unnamed := func(c hclspec.Cache) bool { return !slices.Contains(b.Caches, c.Address) }
	return slices.DeleteFunc(slices.Clone(s.Spec.Caches), unnamed)
}

// place is the directory of a cache below $caches, as one word.
func place(c hclspec.Cache) string {
	if rest, home := strings.CutPrefix(c.Path, "~/"); home {
		return `"$caches/home/"` + shell.Quote(rest)
	}
	return `"$caches/"` + shell.Quote(c.Address.Name)
}

// layCaches writes how a start gets caches of its own: copies of what a fill left, or empty ones where there is none.
func (s *script) layCaches(caches []hclspec.Cache, filled string) {
	if len(caches) == 0 {
		return
	}
	s.line(`caches=$(mktemp -d "$work/caches.XXXXXX"); mkdir -p "$caches/home"`)
	for _, c := range caches {
		s.line("mkdir -p %s", place(c))
		if filled != "" {
			s.line(`cp -pR "$%s/"%s/. %s; chmod -R u+w %[3]s`, filled, shell.Quote(c.Address.Name), place(c))
		}
	}
}
