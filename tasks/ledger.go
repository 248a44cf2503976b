package tasks

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/stats"
)

// Findings are what a compare found and what that rests on: the material of a report.
type Findings struct {
	Compare      string             `json:"compare"`
	Universe     int                `json:"universe"` // outcomes there must be
	Comparisons  []stats.Comparison `json:"comparisons"`
	Measurements []Measurement      `json:"measurements"`
}

// judge judges the candidates of a compare, given how the blocks ended.
func (p *Project) judge(c *hclspec.Compare, ends map[string]engine.End) (Findings, error) {
	found := Findings{Compare: c.Address.Instance(), Comparisons: []stats.Comparison{}, Measurements: []Measurement{}}
	groups := p.groupsOf(c)
	for _, g := range groups {
		all, err := p.standings(g, ends)
		if err != nil {
			return found, err
		}
		rows, _ := p.judgeGroup(c, g, all)
		for _, m := range g.members {
			found.Measurements = append(found.Measurements, all[m.name].rows...)
			if p.judges(c, m) {
				found.Universe++
			}
		}
		found.Comparisons = append(found.Comparisons, rows...)
	}
	for _, row := range p.uncovered(c, groups) {
		found.Comparisons = append(found.Comparisons, row)
		found.Universe++
	}
	ledger := stats.Ledger{Universe: found.Universe, Rows: found.Comparisons}
	return found, ledger.Check()
}

// groupsOf are the groups with members among the compare's benchmarks, by name.
func (p *Project) groupsOf(c *hclspec.Compare) []*group {
	var groups []*group
	for _, g := range p.groups {
		if p.isAbout(c, g) {
			groups = append(groups, g)
		}
	}
	slices.SortFunc(groups, func(a, b *group) int { return strings.Compare(a.name, b.name) })
	return groups
}

// uncovered gives the candidates that no benchmark of the compare measures their outcome: no candidate of the file is
// ever dropped in silence.
func (p *Project) uncovered(c *hclspec.Compare, groups []*group) []stats.Comparison {
	covered := map[string]bool{}
	for _, g := range groups {
		for _, m := range g.members {
			covered[m.candidate] = covered[m.candidate] || p.judges(c, m)
		}
	}
	var rows []stats.Comparison
	for i := range p.Spec.Candidates {
		cand := &p.Spec.Candidates[i]
		if cand.Baseline || covered[cand.Key] {
			continue
		}
		row := stats.Comparison{Compare: c.Address.Instance(), Commit: cand.Commit, Candidate: cand.Key, Primary: true,
			Outcome: stats.NotRun, Reason: "no benchmark of " + c.Address.String() + " measures it"}
		if gap, out := p.excluded[cand.Key]; out {
			row.Outcome, row.Reason = gap.outcome, gap.why
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b stats.Comparison) int { return strings.Compare(a.Candidate, b.Candidate) })
	return rows
}

// judges says whether a compare is to give a member an outcome: it names the benchmark that measures the candidate. The
// baseline is what the others are held against, named or not.
func (p *Project) judges(c *hclspec.Compare, m member) bool {
	return m.candidate != "" && !m.baseline && p.of[c.Address][m.bench.Address]
}

// judgeGroup gives every candidate of a group exactly one outcome on the primary metric, and the figures of the others.
// It returns the rows and how many more blocks the open verdicts ask for.
func (p *Project) judgeGroup(c *hclspec.Compare, g *group, all map[string]*standing) ([]stats.Comparison, int) {
	base := baselineOf(g, all)
	var rows []stats.Comparison
	var fit []*standing
	method := map[string]stats.Methodology{}
	for _, m := range g.members {
		s := all[m.name]
		if !p.judges(c, m) {
			continue
		}
		if row, decided := p.withoutFigures(c, g, s, base, method); decided {
			rows = append(rows, row)
		} else {
			fit = append(fit, s)
		}
	}
	if len(fit) == 0 {
		return rows, 0
	}
	judged, more := p.verdicts(c, g, fit, base, method)
	return append(rows, judged...), more
}

func baselineOf(g *group, all map[string]*standing) *standing {
	for _, m := range g.members {
		if m.baseline {
			return all[m.name]
		}
	}
	return nil
}

// outcome decides by the first rule that holds whether a candidate has an outcome without any figure.
func outcome(s, base *standing) (stats.Outcome, string, bool) {
	switch {
	case s.absent && (s.outcome == stats.Skipped || s.outcome == stats.NoPatch):
		return s.outcome, s.why, true
	case s.never != "":
		return stats.Infeasible, s.never, true
	case s.absent && s.outcome == stats.Infeasible:
		return s.outcome, s.why, true
	case base == nil:
		return stats.NoBaseline, "the benchmark has no baseline for this commit", true
	case base.failure != nil:
		return stats.NoBaseline, "the baseline failed: " + base.failure.Message, true
	case base.infra != nil && base.infra.Subject != "":
		return stats.NoBaseline, "the baseline could not be measured: " + base.infra.Message, true
	case s.absent:
		return s.outcome, s.why, true
	case s.failure != nil && base.measured():
		return stats.Failed, explain(s.failure), true
	case s.infra != nil:
		return stats.Infra, explain(s.infra), true
	case s.pending != "" || !s.measured() || !base.measured():
		return stats.NotRun, cmp.Or(s.pending, "no sample has been taken"), true
	}
	return "", "", false
}

// explain is a failure in one line: the rule that diagnosed it, or that none did, and its evidence.
func explain(f *cache.Failure) string {
	text := f.Message + " [" + cmp.Or(f.Rule, "undiagnosed") + "]"
	if f.Evidence != "" {
		text += ": " + f.Evidence
	}
	return text
}

// withoutFigures is the row of a candidate whose outcome is decided before any figure is looked at.
func (p *Project) withoutFigures(c *hclspec.Compare, g *group, s, base *standing, method map[string]stats.Methodology) (stats.Comparison, bool) {
	row := stats.Comparison{Compare: c.Address.Instance(), Benchmark: s.bench.Address.Name, Commit: g.commit, Candidate: s.candidate,
		Metric: s.bench.Metrics.Primary, Primary: true, Caveats: caveats(s.member)}
	if base != nil {
		row.Against = base.candidate
	}
	var decided bool
	if row.Outcome, row.Reason, decided = outcome(s, base); decided {
		return row, true
	}
	return p.comparable(row, s, base, method)
}

// comparable decides whether a candidate's numbers may be held against the baseline's.
func (p *Project) comparable(row stats.Comparison, s, base *standing, method map[string]stats.Methodology) (stats.Comparison, bool) {
	own, other := p.methodology(s), p.methodology(base)
	diff, labels := stats.Compatible(own, other, p.Allow)
	method[s.name] = own
	row.Methodology = own.Digest()
	row.Caveats = append(row.Caveats, labels...)
	if err := stats.Refuse(s.candidate, base.candidate, diff); err != nil {
		row.Outcome, row.Reason = stats.NotComparable, err.Error()
		return row, true
	}
	why, label := p.tokensDiffer(s, base)
	if why != "" {
		row.Outcome, row.Reason = stats.NotComparable, why
	}
	row.Caveats = append(row.Caveats, label...)
	return row, why != ""
}

// tokensDiffer holds the total output tokens of both sides against each other: a server that says less is not faster. It
// is a reason to refuse, or a label where the user lets them differ.
func (p *Project) tokensDiffer(s, base *standing) (refusal string, label []string) {
	const metric, usual = "total_output_tokens", 0.005
	tolerance := cmp.Or(s.bench.Metrics.TokenTolerance, usual)
	x, y := mean(s.series[metric]), mean(base.series[metric])
	if x == 0 || y == 0 || math.Abs(x-y)/y <= tolerance {
		return "", nil
	}
	diff := fmt.Sprintf("%s: %.6g tok against %.6g tok, more than %.3g %% apart", metric, x, y, 100*tolerance)
	if slices.Contains(p.Allow, metric) {
		return "", []string{"compared in spite of a different " + diff}
	}
	return diff + " (token_tolerance in metrics)", nil
}

func mean(values map[int]float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	if len(values) == 0 {
		return 0
	}
	return sum / float64(len(values))
}

// verdicts judges the candidates that can be judged, together, metric by metric.
func (p *Project) verdicts(c *hclspec.Compare, g *group, fit []*standing, base *standing, method map[string]stats.Methodology) ([]stats.Comparison, int) {
	var rows []stats.Comparison
	more := 0
	for _, metric := range metricsOf(c, fit, base) {
		better, known := directionOf(base.bench, metric, base.units[metric])
		primary := metric == base.bench.Metrics.Primary
		if !known && !primary {
			continue
		}
		rule := ruleOf(c, g, base, metric, better)
		contrasts := make([][]stats.Pair, len(fit))
		for i, s := range fit {
			contrasts[i] = pairs(s.series[metric], base.series[metric])
		}
		for i, v := range stats.JudgeTogether(contrasts, rule) {
			s := fit[i]
			row := stats.Comparison{Compare: c.Address.Instance(), Benchmark: s.bench.Address.Name, Commit: g.commit, Candidate: s.candidate,
				Against: base.candidate, Metric: metric, Primary: primary, Unit: base.units[metric], Methodology: method[s.name].Digest(),
				Caveats: append(caveats(s.member), p.allowedLabels(s, base)...)}
			rows = append(rows, v.Into(row))
			if primary {
				more = max(more, v.More)
			}
		}
	}
	return rows, more
}

func (p *Project) allowedLabels(s, base *standing) []string {
	_, labels := stats.Compatible(p.methodology(s), p.methodology(base), p.Allow)
	_, tokens := p.tokensDiffer(s, base)
	return append(labels, tokens...)
}

// metricsOf are the metrics to judge: the primary first, then those that the compare names or, when it names none, all
// that every side has, each once: a mean over one benchmark is that benchmark's number under another name.
func metricsOf(c *hclspec.Compare, fit []*standing, base *standing) []string {
	names := []string{base.bench.Metrics.Primary}
	for _, metric := range slices.Sorted(maps.Keys(base.series)) {
		everywhere := !slices.ContainsFunc(fit, func(s *standing) bool { return len(s.series[metric]) == 0 })
		twice := slices.ContainsFunc(names, func(name string) bool {
			return base.units[name] == base.units[metric] && maps.Equal(base.series[name], base.series[metric])
		})
		switch {
		case slices.Contains(c.Metrics, metric):
			twice = false
		case len(c.Metrics) > 0:
			continue
		}
		if everywhere && !twice && metric != names[0] {
			names = append(names, metric)
		}
	}
	return names
}

// directionOf is which way the metric is better: as its definition says, else by what it is.
func directionOf(b *hclspec.Benchmark, metric, unit string) (string, bool) {
	for _, def := range b.Metrics.Custom {
		if def.Name == metric && def.Better != "" {
			return def.Better, true
		}
	}
	higher, known := metrics.Better(metric, unit)
	if higher {
		return stats.Higher, known
	}
	if known {
		return stats.Lower, true
	}
	return "", false
}

func ruleOf(c *hclspec.Compare, g *group, base *standing, metric, better string) stats.Rule {
	tie := c.Tie
	for _, def := range base.bench.Metrics.Custom {
		if def.Name == metric && def.Tie > 0 {
			tie = def.Tie
		}
	}
	return stats.Rule{Better: better, Tie: cmp.Or(tie, stats.DefaultTie(metric)), Confidence: c.Confidence,
		Looks: stats.Looks(g.design.Samples, g.design.Max), Pairing: g.design.Pairing}
}

// pairs are the blocks in which both sides have a sample.
func pairs(candidate, against map[int]float64) []stats.Pair {
	var list []stats.Pair
	for _, block := range slices.Sorted(maps.Keys(candidate)) {
		if other, ok := against[block]; ok {
			list = append(list, stats.Pair{Block: block, Candidate: candidate[block], Against: other})
		}
	}
	return list
}

// caveats are what every figure of a member must say: the fixes that it ran with, and that its artefacts were made with.
func caveats(m member) []string {
	list := []string{}
	for _, f := range m.allFixes() {
		text := "fix " + f.fix.Address.Name + " (" + f.fix.Effect + ")"
		if f.fix.Caveat != "" {
			text += ": " + f.fix.Caveat
		}
		list = append(list, text)
	}
	return list
}
