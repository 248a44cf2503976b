package hclspec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec/internal/cycle"
	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
)

// use is one reference of a node to another node.
type use struct {
	from, to Address
	at       hcl.Range
}

// maxReferences bounds the references of all nodes: if each instance of a block needs all instances of another block,
// there are as many as the product of both numbers.
const maxReferences = 800_000

// use records that a node refers to another.
func (l *loader) use(from, to Address, at hcl.Range) {
	if l.shadow || from == (Address{}) || l.references > maxReferences {
		return
	}
	if l.references++; l.references > maxReferences {
		l.scope.Diags.Error("", at, "Too many references", fmt.Sprintf(
			"The nodes refer to each other more than %d times. Perhaps each instance here needs one instance and "+
				"not all of them: %s.%s[each.key].",
			maxReferences, to.Kind, to.Name))
		return
	}
	if len(l.uses) == cap(l.uses) {
		l.uses = slices.Grow(l.uses, max(len(l.uses), 1<<10)) // append would grow a long list by a quarter
	}
	l.uses = append(l.uses, use{from, to, at})
}

// check finds the mistakes that show only when everything is decoded.
func (l *loader) check() {
	l.checkBaselines()
	l.checkComparable()
	l.checkReports()
	l.checkBlocks()
	l.checkCaches()
	l.checkData()
	l.checkCycles()
	if l.options.Check != nil && !l.scope.Partial {
		l.scope.Diags.Add("", l.options.Check(l.spec, l.sources.all(), l.scope.Diags.HasErrors())...)
	}
}

// checkBaselines checks that there is at most one baseline, and exactly one if there are compare blocks.
func (l *loader) checkBaselines() {
	var baselines []Variant
	for _, v := range l.spec.Variants {
		if v.Baseline {
			baselines = append(baselines, v)
		}
	}
	diags := l.scope.Diags
	switch {
	case len(baselines) > 1:
		for _, v := range baselines[1:] {
			diags.Error("", v.Range, "Second baseline",
				fmt.Sprintf("Variant %q is the baseline already, at %s. All others are compared with one.",
					baselines[0].Name, baselines[0].Range))
		}
	case len(baselines) == 0 && len(l.of("variant")) > 0 && len(l.of("compare")) > 0 && !l.scope.Partial &&
		!diags.HasErrors():
		diags.Error("", l.first("variant"), "No baseline",
			"There are compare blocks, so one variant must be the baseline of the others: baseline = true.")
	case len(l.of("variant")) == 0 && len(l.of("compare")) > 0 && !l.scope.Partial:
		diags.Error("", l.first("compare"), "Nothing to compare",
			"A compare block needs variants, one of them with baseline = true: declare variant blocks.")
	}
}

// checkComparable warns of benchmarks in which a comparison finds no candidates.
func (l *loader) checkComparable() {
	candidate := map[Address]bool{}
	declared := map[Address][]string{} // metrics of benchmarks that read no other metrics
	for _, b := range l.spec.Benchmarks {
		candidate[b.Address] = b.Candidate != ""
		for _, m := range b.Metrics.Custom {
			if b.Metrics.Own() {
				declared[b.Address] = append(declared[b.Address], m.Name)
			}
		}
	}
	for _, c := range l.spec.Compares {
		l.checkMetrics(c, declared)
		for _, of := range c.Of {
			if !candidate[of] {
				l.scope.Diags.Warn("", c.Range, "Nothing to compare",
					fmt.Sprintf("%s belongs to no candidate, so nothing in it can be compared. Give it for_each = "+
						"candidates.", of))
				break
			}
		}
	}
}

// checkBlocks checks that the variants of a commit, which share their blocks, agree on the clock and the canary of a
// block. It warns of variants that do the same work.
func (l *loader) checkBlocks() {
	type group struct{ benchmark, commit string }
	first := map[group]*Benchmark{}
	compared := map[string]bool{} // benchmarks without a warning so far
	for _, c := range l.spec.Compares {
		for _, of := range c.Of {
			compared[of.Name] = true
		}
	}
	for i := range l.spec.Benchmarks {
		b := &l.spec.Benchmarks[i]
		commit, _, member := strings.Cut(b.Candidate, "/")
		if !member || b.Out != nil {
			continue
		}
		g := group{b.Address.Name, commit}
		other := cmp.Or(first[g], b)
		first[g] = other
		if b != other && compared[b.Address.Name] && b.Image == other.Image && slices.Equal(b.Data, other.Data) &&
			slices.Equal(b.Command.Shell, other.Command.Shell) && b.work() == other.work() {
			compared[b.Address.Name] = false
			l.scope.Diags.Warn("", b.Range, "The same work for all candidates", fmt.Sprintf(
				"%s and %s do the same, so that a comparison shows noise. Give the benchmark something that "+
					"differs between them: their trees, as in data = { \"src/\" = each.source }, or their artefacts.",
				other.Address, b.Address))
		}
		if b.smClock() != other.smClock() {
			at := other
			if b.smClock() > 0 {
				at = b
			}
			l.scope.Diags.Error(b.Address.Key, at.GPUs.SMClockRange, "Several clocks for one block",
				fmt.Sprintf("The variants of a commit are measured in the same blocks, on devices whose clock is "+
					"locked once. Here sm_clock is another one than for %q: "+
					"write it without what depends on the variant.", other.Address.Key))
		}
		if b.Canary.text() != other.Canary.text() {
			l.scope.Diags.Error(b.Address.Key, b.Canary.place(other.Canary), "Several canaries for one block",
				fmt.Sprintf("The variants of a commit are measured in the same blocks, and a block has one canary, "+
					"which runs before each of them and after the last. "+
					"Here it is another one than for %q: write it without what depends on the variant.",
					other.Address.Key))
		}
	}
}

// work returns a text of everything that is run. It is costly.
func (b *Benchmark) work() string { return fmt.Sprint(b.Work, b.Data, b.Client, b.Server) }

// smClock returns the clock at which the devices are locked; 0: they are not.
func (b *Benchmark) smClock() int {
	if b.GPUs == nil {
		return 0
	}
	return b.GPUs.SMClock
}

// text returns everything that a canary declares; empty: there is none.
func (c *Canary) text() string {
	if c == nil {
		return ""
	}
	words := append([]Text{c.Command.Shell}, c.Command.Argv...)
	text := fmt.Sprintf("%+q %g %s", []string{c.Metric.Match, c.Metric.JSON, c.Metric.File, c.Metric.Unit}, c.Tolerance,
		c.Timeout)
	for _, word := range words {
		text += fmt.Sprintf(" %q", word.Expand(Address.String))
	}
	return text
}

// place returns the place of a canary; if c is nil, the place of other.
func (c *Canary) place(other *Canary) hcl.Range {
	if c == nil {
		return other.Range
	}
	return c.Range
}

// checkMetrics finds the metrics of a comparison that none of its benchmarks reads.
func (l *loader) checkMetrics(c Compare, declared map[Address][]string) {
	var all []string
	for _, of := range c.Of {
		if len(declared[of]) == 0 {
			return // it reads all metrics of its format
		}
		all = append(all, declared[of]...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, name := range c.Metrics {
		if len(all) > 0 && !slices.Contains(all, name) {
			l.scope.Diags.Error("", c.Range, "Unknown metric",
				fmt.Sprintf("No benchmark of %s declares the metric %q.%s", c.Address, name, diag.Choices(name, all)))
		}
	}
}

// checkReports warns of reports that write the same files.
func (l *loader) checkReports() {
	type file struct{ dir, format string }
	owners := map[file]Address{}
	for _, r := range l.spec.Reports {
		for _, format := range r.Formats {
			owner, taken := owners[file{r.Dir, format}]
			if taken && owner != r.Address {
				l.scope.Diags.Warn("", r.Range, "Same files",
					fmt.Sprintf("%s and %s both write %s into %q, so that the files of the first are lost. Give "+
						"each a dir of its own.", owner, r.Address, format, r.Dir))
				break
			}
			owners[file{r.Dir, format}] = r.Address
		}
	}
}

// checkCycles finds nodes that need each other and names the chain. It looks at instances only if their blocks need
// each other.
func (l *loader) checkCycles() {
	found := false
	l.cycles(func(a Address) Address { return Address{Kind: a.Kind, Name: a.Name} }, func([]Address) { found = true })
	if !found {
		return
	}
	places := map[[2]Address]hcl.Range{}
	for _, u := range l.uses {
		if _, known := places[[2]Address{u.from, u.to}]; !known {
			places[[2]Address{u.from, u.to}] = u.at
		}
	}
	reported := map[string]bool{}
	l.cycles(func(a Address) Address { return a }, func(chain []Address) { l.cycle(chain, places, reported) })
}

// cycles finds the cycles between the nodes, or between what of returns for them.
func (l *loader) cycles(of func(Address) Address, report func(chain []Address)) {
	var nodes []Address // in the order of the files
	needs := map[Address][]Address{}
	var last [2]Address
	for i := range l.uses {
		from, to := of(l.uses[i].from), of(l.uses[i].to)
		if last == [2]Address{from, to} {
			continue // as for most instances of one block
		}
		last = [2]Address{from, to}
		if needs[from] == nil {
			nodes = append(nodes, from)
		}
		needs[from] = append(needs[from], to)
	}
	cycle.Find(nodes, func(a Address) []Address { return needs[a] }, report)
}

// cycle reports a chain of nodes whose last one needs the first, once for all instances of the same blocks.
func (l *loader) cycle(chain []Address, places map[[2]Address]hcl.Range, reported map[string]bool) {
	lowest := slices.Index(chain, slices.MinFunc(chain, Address.Compare))
	chain = slices.Concat(chain[lowest:], chain[:lowest])
	var blocks, needs []string
	for i, a := range chain {
		to := chain[(i+1)%len(chain)]
		at := places[[2]Address{a, to}]
		blocks = append(blocks, a.Kind+"."+a.Name)
		needs = append(needs, fmt.Sprintf("%s needs %s (%s:%d)", a, to, at.Filename, at.Start.Line))
	}
	id := strings.Join(blocks, " ")
	if reported[id] {
		return
	}
	reported[id] = true
	l.scope.Diags.Error("", places[[2]Address{chain[0], chain[1%len(chain)]}], "Cycle",
		strings.Join(needs, ", ")+". Nothing in a cycle can be first.")
}
