package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/stats"
)

// benchmarkTask gathers the samples of one candidate from the blocks. It fails when the candidate failed in one.
type benchmarkTask struct{ m member }

func (t *benchmarkTask) Describe(d *cache.Description) {
	m := t.m.bench.Metrics
	d.Add("reader", sample.ReaderVersion)
	d.Add("member", t.m.name)
	d.Add("metrics", m.Format, m.Primary, m.File)
	for _, c := range m.Custom {
		d.Add("metric", c.Name, c.Match, c.JSON, c.File, c.Unit, c.Better, strconv.FormatFloat(c.Tie, 'g', -1, 64))
	}
	describeRequired(d, m)
}

func (t *benchmarkTask) Run(_ context.Context, env *engine.Env) error {
	var all sample.Reading
	for _, in := range env.Inputs {
		rec, err := sample.ReadRecord(in.Entry)
		if err != nil {
			return err
		}
		own := rec.Members[t.m.name]
		if own.Failure != nil {
			f := &engine.Failure{Failure: *own.Failure}
			f.Message = fmt.Sprintf("block %d: %s", rec.Block, f.Message)
			return f
		}
		if own.Same {
			all.Blocks = append(all.Blocks, own.Spared(rec.Block))
			continue
		}
		if own.Skipped != "" {
			return &engine.Failure{Failure: cache.Failure{Class: cache.Permanent, Rule: "not_measured", Stage: "run",
				Message: "not measured: " + own.Skipped}}
		}
		rows, evidence, err := rec.Read(in.Entry, t.m.bench, t.m.name)
		var missing *engine.Failure
		if errors.As(err, &missing) {
			missing.Message = fmt.Sprintf("block %d: %s", rec.Block, missing.Message)
		}
		if err != nil {
			return err
		}
		all.Rows, all.Blocks = append(all.Rows, rows...), append(all.Blocks, evidence)
	}
	fmt.Fprintf(env.Log, "%d samples in %d blocks\n", len(all.Rows), len(env.Inputs))
	return sample.WriteGathered(env.Out, all)
}

// group is the candidates of one benchmark that are measured together, in the same blocks.
type group struct {
	name    string // benchmark.name["commit"], for people and as the name of its count of blocks
	commit  string
	design  hclspec.Design
	members []member           // all that take part, by name
	absent  map[string]absence // by member name: why it takes no part
	trials  []findings.Block
}

// member is the group's member that measures the candidate; nil when there is none.
func (g *group) member(candidate string) *member {
	for i := range g.members {
		if g.members[i].candidate == candidate {
			return &g.members[i]
		}
	}
	return nil
}

// count is how many blocks each member of the group has.
func (g *group) count() int {
	n := 0
	for _, t := range g.trials {
		if slices.Contains(t.Members, g.trials[0].Members[0]) {
			n++
		}
	}
	return n
}

// groupBenchmarks forms the groups of a benchmark's instances: those of one commit together, each other one alone.
func (b *builder) groupBenchmarks() {
	byName := map[string]*group{}
	b.groups = nil
	for i := range b.Spec.Benchmarks {
		s := &b.Spec.Benchmarks[i]
		c := b.candidates[s.Candidate]
		at := hclspec.Address{Kind: "trial", Name: s.Address.Name, Key: s.Address.Key, Keyed: s.Address.Keyed}
		m := member{name: "run", bench: s}
		if len(s.Caches) > 0 {
			m.fill = fillOf(s)
		}
		if c != nil {
			m.name, m.candidate, m.baseline = c.Variant, c.Key, c.Baseline
			at.Key, at.Keyed = c.Commit, true
		}
		if s.Image != (hclspec.Address{}) {
			m.cures, m.built = b.imageFixes(s.Image, s.Candidate)
		} else {
			eligible := b.onHost(s.Fixes)
			m.cures, m.fixes = b.cures(eligible, s.Address, s.Candidate), b.due(eligible, s.Address, s.Candidate)
		}
		g := byName[at.String()]
		if g == nil {
			g = &group{name: at.String(), commit: commitOf(s.Candidate), design: s.Design, absent: map[string]absence{}}
			byName[g.name] = g
			b.groups = append(b.groups, g)
		}
		g.design = together(g.design, s.Design)
		g.members = append(g.members, m)
	}
}

// together is how often a group is measured of which one more member asks for a design: as the most demanding one asks.
func together(d, own hclspec.Design) hclspec.Design {
	most, spread := max(d.BurnIn, own.BurnIn), d.Spread || own.Spread
	if own.Max > d.Max || own.Max == d.Max && own.Samples > d.Samples {
		d = own
	}
	d.BurnIn, d.Spread = most, spread
	return d
}

// addGroup adds the blocks of a group and the benchmark nodes that gather from them. A member that cannot take part
// leaves the blocks; without a baseline there is nothing to hold the others against, and no block is run.
func (b *builder) addGroup(g *group) {
	g.chooseClient()
	alone, apart := b.alone[g.name]
	var taking []member
	lacks := b.withoutBaseline(g)
	for _, m := range g.members {
		if gap, out := b.absent(m); out {
			g.absent[m.name] = gap
		} else if apart && !alone[m.name] {
			g.absent[m.name] = absence{stats.NotRun, "only other variants of its commit were asked for"}
		} else if apart {
			taking = append(taking, m)
		} else if lacks != "" {
			g.absent[m.name] = absence{stats.NoBaseline, lacks}
		} else {
			taking = append(taking, m)
		}
	}
	nobody := func(gap absence) {
		for _, m := range taking {
			g.absent[m.name] = gap
		}
		taking = nil
	}
	for _, m := range g.members {
		if gap, out := g.absent[m.name]; out && m.baseline && !apart {
			nobody(absence{stats.NoBaseline, "the baseline is missing: " + gap.Why})
		}
	}
	if b.Spec.Try != nil && !slices.ContainsFunc(taking, func(m member) bool { return !m.baseline }) {
		nobody(absence{stats.NotRun, "what was to be held against it is not there"})
	}
	slices.SortFunc(taking, func(x, y member) int { return strings.Compare(x.name, y.name) })
	if why := g.nothingToMeasure(); why != "" {
		nobody(absence{stats.Tie, why})
	}
	trials := b.addTrials(g, taking)
	for _, m := range g.members {
		n := b.add(m.bench.Block, &benchmarkTask{m}, nil)
		if gap, out := g.absent[m.name]; out {
			n.Exclude = gap.exclude()
			if b.causes[m.bench.Address.String()].address == m.fill.String() {
				b.addFills(g, []member{m}) // the failure stays to be seen, and to be tried again
			}
			continue
		}
		n.Needs, n.Reads = trials[m.name], true
	}
	b.withdraw(g)
}

// withdraw takes the verdicts from measured members for which a known issue was found since. Without its baseline no
// other has one.
func (b *builder) withdraw(g *group) {
	for _, m := range g.members {
		gap, out := b.issues[m.bench.Address.String()]
		if _, absent := g.absent[m.name]; !out || absent {
			continue
		}
		g.absent[m.name] = gap
		for _, other := range g.members {
			if _, absent := g.absent[other.name]; m.baseline && !absent {
				g.absent[other.name] = absence{stats.NoBaseline, "the baseline is missing: " + gap.Why}
			}
		}
	}
}

// chooseClient says in which image the commands run that talk to servers in images: the baseline's for all, so that no
// patch is in the program that measures, and it is the same for every variant.
func (g *group) chooseClient() {
	var common hclspec.Address
	for _, m := range g.members {
		if m.baseline {
			common = m.bench.Image
		}
	}
	for i := range g.members {
		if m := &g.members[i]; m.bench.Server != nil && m.bench.Image != (hclspec.Address{}) {
			m.client = cmp.Or(common, m.bench.Image)
		}
	}
}

// addTrials adds the blocks of those that take part: one for all of them, or, in an independent design, one for each.
// It returns, for each member, the blocks that it is in.
func (b *builder) addTrials(g *group, taking []member) map[string][]*engine.Node {
	own := map[string][]*engine.Node{}
	if _, apart := b.alone[g.name]; apart || g.design.Pairing == "independent" {
		for _, m := range taking {
			own[m.name] = b.addSeries(g, []member{m}, cmp.Or(m.candidate, m.bench.Address.Key))
		}
		return own
	}
	if len(taking) > 0 {
		series := b.addSeries(g, taking, cmp.Or(g.commit, taking[0].bench.Address.Key))
		for _, m := range taking {
			own[m.name] = series
		}
	}
	return own
}

// addSeries adds blocks 1 to n of the same members.
func (b *builder) addSeries(g *group, members []member, key string) []*engine.Node {
	b.addFills(g, members)
	var pilot hclspec.Address
	rule := b.rule(g)
	var nodes []*engine.Node
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.name
	}
	for i := 1; i <= max(b.blocks[g.name], g.design.BurnIn+g.design.Samples); i++ {
		first := members[0].bench
		at := hclspec.TrialAddress(first.Address.Name, key, i)
		t := &trialTask{p: b.drawing, at: at, group: g.name, block: i, members: members, pilot: pilot, rule: rule,
			checked: checks(g, i)}
		for _, m := range members {
			addMember(&t.refs, m)
			t.refs.Add(m.client, m.fill)
		}
		t.refs.Add(pilot)
		n := b.addAt(at, first.Block, t, t.refs)
		n.Resources, n.History = b.trialRequest(at, members), true
		if g.design.Spread {
			n.Turn = i
		}
		for _, m := range members {
			n.Estimate += m.bench.Estimate
			b.inImage(n, m.bench.Image)
			if b.keepsCores(m.bench.Sandbox, m.bench.Image) {
				n.Resources.Cores = n.Resources.CPUs > 0
			}
			b.needMounts(n, m.bench.Mounts, m.bench.Image)
			for _, probe := range b.probes[m.candidate] {
				b.link(n, &n.Order, probe)
			}
		}
		b.lockable(n, t)
		nodes = append(nodes, n)
		g.trials = append(g.trials, findings.Block{At: at, Members: names})
		if i == 1 {
			pilot = at
		}
	}
	return nodes
}

// addMember adds what one member of a block needs.
func addMember(r *shell.Refs, m member) {
	b := m.bench
	r.Add(b.Client)
	for _, item := range b.Data {
		r.Add(item.Ref)
	}
	r.AddCommand(b.Command)
	r.AddEnv(b.Env)
	if b.Server != nil {
		r.AddCommand(b.Server.Command)
		r.AddEnv(b.Server.Env)
	}
	if b.Canary != nil {
		r.AddCommand(b.Canary.Command)
	}
	if b.Check != nil {
		r.Add(b.Check.Source)
		r.AddCommand(b.Check.Command)
	}
	fix.Refer(r, m.fixes)
	r.Add(b.Image)
}
