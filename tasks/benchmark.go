package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/shell/input"
	"github.com/benchgraph/benchgraph/stats"
)

// benchmarkTask gathers the samples of one candidate from its blocks. It fails if the candidate failed in one of them.
type benchmarkTask struct{ m Member }

func (t *benchmarkTask) Describe(d *cache.Description) {
	m := t.m.Bench.Metrics
	d.Add("reader", sample.ReaderVersion)
	d.Add("member", t.m.Name)
	d.Add("metrics", m.Format, m.Primary, m.File)
	for _, c := range m.Custom {
		d.Add("metric", c.Name, c.Match, c.JSON, c.File, c.Unit, c.Better, float(c.Tie))
	}
	for _, r := range m.Require {
		d.Add("require", r.Metric, float(r.Value))
	}
}

func (t *benchmarkTask) Run(_ context.Context, env *engine.Env) error {
	var all sample.Reading
	for _, in := range env.Inputs {
		rec, err := sample.ReadRecord(in.Entry)
		if err != nil {
			return err
		}
		own := rec.Members[t.m.Name]
		if own.Failure != nil {
			f := &engine.Failure{Failure: *own.Failure}
			f.Message, f.Log = fmt.Sprintf("block %d: %s", rec.Block, f.Message), in.Entry.Log
			return f
		}
		if own.Same {
			all.Blocks = append(all.Blocks, own.Spared(rec.Block))
			continue
		}
		if own.Skipped != "" && t.m.Baseline { // no candidate was left to compare it with
			continue
		}
		if own.Skipped != "" {
			return &engine.Failure{Failure: failure.Failure{Class: failure.Permanent, Rule: "not_measured",
				Stage: "run", Message: "not measured: " + own.Skipped}}
		}
		rows, evidence, err := rec.Read(in.Entry, t.m.Bench, t.m.Name)
		if missing, ok := errors.AsType[*engine.Failure](err); ok {
			missing.Message, missing.Log = fmt.Sprintf("block %d: %s", rec.Block, missing.Message), in.Entry.Log
		}
		if err != nil {
			return err
		}
		all.Rows, all.Blocks = append(all.Rows, rows...), append(all.Blocks, evidence)
	}
	fmt.Fprintf(env.Log, "%d samples in %d blocks\n", len(all.Rows), len(env.Inputs))
	return sample.WriteGathered(env.Out, all)
}

// Group is the candidates of one benchmark that are measured in the same blocks.
type Group struct {
	Name    string // benchmark.name["commit"], for people and in Choice.Blocks
	Commit  string
	Design  hclspec.Design
	Members []Member           // all, by name
	Absent  map[string]Absence // by member name: why the member takes no part
	Trials  []group.Block
	// returns why the pilot's result has no number of the baseline, or of the only member, "" if it has one; nil: other
	// members count without it
	unread func(ctx context.Context, pilot hclspec.Address, result cache.Key) string
}

// Member returns the member that measures a candidate; nil if there is none.
func (g *Group) Member(candidate string) *Member {
	for i := range g.Members {
		if g.Members[i].Candidate == candidate {
			return &g.Members[i]
		}
	}
	return nil
}

// Count returns the number of blocks of each member.
func (g *Group) Count() int {
	n := 0
	for _, t := range g.Trials {
		if slices.Contains(t.Members, g.Trials[0].Members[0]) {
			n++
		}
	}
	return n
}

// groupBenchmarks forms groups: the instances of a benchmark for one commit, or a single instance without a commit.
func (b *builder) groupBenchmarks() {
	byName := map[string]*Group{}
	b.Groups = nil
	for i := range b.Spec.Benchmarks {
		s := &b.Spec.Benchmarks[i]
		c := b.candidates[s.Candidate]
		at := hclspec.Address{Kind: "trial", Name: s.Address.Name, Key: s.Address.Key, Keyed: s.Address.Keyed}
		m := Member{Name: "run", Bench: s}
		if len(s.Caches) > 0 {
			m.Fill = s.Address
			m.Fill.Kind = "fill"
		}
		if c != nil {
			m.Name, m.Candidate, m.Baseline = c.Variant, c.Key, c.Baseline
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
			g = &Group{Name: at.String(), Commit: CommitOf(s.Candidate), Design: s.Design, Absent: map[string]Absence{}}
			byName[g.Name] = g
			b.Groups = append(b.Groups, g)
		}
		g.Design = group.Together(g.Design, s.Design)
		g.Members = append(g.Members, m)
	}
}

// addGroup adds the blocks of a group and its benchmark nodes. Absent members are in no block; without a baseline, no
// block is run, since nothing could be compared with it.
func (b *builder) addGroup(g *Group) {
	g.chooseClient()
	if m := g.trusted(); m.Baseline || len(g.Members) == 1 {
		g.unread = b.unread(m)
	}
	alone, apart := b.Alone[g.Name]
	var taking []Member
	noBaseline := b.withoutBaseline(g)
	for _, m := range g.Members {
		if gap, out := b.absent(m); out {
			g.Absent[m.Name] = gap
		} else if apart && !alone[m.Name] {
			g.Absent[m.Name] = Absence{stats.NotRun, "only other variants of its commit were asked for"}
		} else if apart {
			taking = append(taking, m)
		} else if noBaseline != "" {
			g.Absent[m.Name] = Absence{stats.NoBaseline, noBaseline}
		} else {
			taking = append(taking, m)
		}
	}
	nobody := func(gap Absence) {
		for _, m := range taking {
			g.Absent[m.Name] = gap
		}
		taking = nil
	}
	for _, m := range g.Members {
		if gap, out := g.Absent[m.Name]; out && m.Baseline && !apart {
			nobody(Absence{stats.NoBaseline, "the baseline is missing: " + gap.Why})
		}
	}
	if why := g.nothingToMeasure(); why != "" {
		nobody(Absence{stats.Tie, why})
	}
	lonely := !apart && len(taking) > 0 && b.lonely(g.Members, taking)
	if lonely {
		nobody(Absence{stats.NotRun, "nothing to compare it with: no other candidate of its commit can be measured"})
	}
	slices.SortFunc(taking, func(x, y Member) int { return strings.Compare(x.Name, y.Name) })
	trials := b.addTrials(g, taking)
	for _, m := range g.Members {
		var unused input.Refs // no dependencies, so that nothing is made for an absent member
		if m.Baseline && lonely {
			addMember(&unused, m)
		}
		n := b.add(m.Bench.Block, &benchmarkTask{m}, unused)
		if gap, out := g.Absent[m.Name]; out {
			if n.Exclude = gap.exclude(); m.Baseline && lonely {
				n.Exclude.Action = engine.Skip // there is no problem with it
			}
			if b.Causes[m.Bench.Address.String()].Address == m.Fill.String() {
				b.addFills(g, []Member{m}) // so that its failure is shown and can be retried
			}
			continue
		}
		n.Needs, n.Reads = trials[m.Name], true
	}
	b.withdraw(g)
}

// lonely reports whether a baseline has nobody to be compared with in the blocks, although a compare asks for it. A
// member that comes later changes the graph, and the baseline is then measured beside it.
func (p *Drawing) lonely(members, taking []Member) bool {
	other := func(m Member) bool { return !m.Baseline }
	return slices.ContainsFunc(members, other) && !slices.ContainsFunc(taking, other) &&
		slices.ContainsFunc(p.Spec.Compares, func(c hclspec.Compare) bool {
			return p.IsAbout(&c, &Group{Members: members})
		})
}

// withdraw removes the verdicts of members with a known issue that was found later, or whose baseline has one.
func (b *builder) withdraw(g *Group) {
	for _, m := range g.Members {
		gap, out := b.Issues[m.Bench.Address.String()]
		if _, absent := g.Absent[m.Name]; !out || absent {
			continue
		}
		g.Absent[m.Name] = gap
		for _, other := range g.Members {
			if _, absent := g.Absent[other.Name]; m.Baseline && !absent {
				g.Absent[other.Name] = Absence{stats.NoBaseline, "the baseline is missing: " + gap.Why}
			}
		}
	}
}

// chooseClient sets the image of the clients of servers in images: the baseline's, for all members, so that the program
// that measures has no patch and is the same for all.
func (g *Group) chooseClient() {
	var common hclspec.Address
	for _, m := range g.Members {
		if m.Baseline {
			common = m.Bench.Image
		}
	}
	for i := range g.Members {
		if m := &g.Members[i]; m.Bench.Server != nil && m.Bench.Image != (hclspec.Address{}) {
			m.client = cmp.Or(common, m.Bench.Image)
		}
	}
}

// addTrials adds the blocks of the present members: shared ones, or, in an independent design, separate ones. It
// returns the blocks of each member.
func (b *builder) addTrials(g *Group, taking []Member) map[string][]*engine.Node {
	own := map[string][]*engine.Node{}
	if _, apart := b.Alone[g.Name]; apart || g.Design.Pairing == "independent" {
		for _, m := range taking {
			own[m.Name] = b.addSeries(g, []Member{m}, cmp.Or(m.Candidate, m.Bench.Address.Key))
		}
		return own
	}
	if len(taking) > 0 {
		series := b.addSeries(g, taking, cmp.Or(g.Commit, taking[0].Bench.Address.Key))
		for _, m := range taking {
			own[m.Name] = series
		}
	}
	return own
}

// addSeries adds blocks 1 to n of the same members.
func (b *builder) addSeries(g *Group, members []Member, key string) []*engine.Node {
	b.addFills(g, members)
	var pilot hclspec.Address
	rule := b.rule(g)
	var nodes []*engine.Node
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Name
	}
	for i := 1; i <= cmp.Or(b.Blocks[g.Name], g.Design.BurnIn+g.Design.Samples); i++ {
		first := members[0].Bench
		at := hclspec.TrialAddress(first.Address.Name, key, i)
		t := &trialTask{p: b.Drawing, at: at, group: g.Name, block: i, members: members, pilot: pilot, rule: rule,
			checked: checks(g, i)}
		for _, m := range members {
			addMember(&t.refs, m)
			t.refs.Add(m.client, m.Fill)
		}
		t.refs.Add(pilot)
		n := b.addAt(at, first.Block, t, t.refs)
		n.Resources, n.History = b.trialRequest(at, members), true
		n.Hardware = b.hardwareFor(at, members[0])
		if g.Design.Spread {
			n.Turn = i
		}
		for _, m := range members {
			n.Estimate += m.Bench.Estimate
			b.needEngine(n, m.Bench.Image)
			if b.keepsCores(m.Bench) {
				n.Resources.Cores = n.Resources.CPUs > 0
			}
			b.needMounts(n, m.Bench.Mounts, m.Bench.Image)
			for _, probe := range b.Probes[m.Candidate] {
				b.link(n, &n.Order, probe)
			}
		}
		if i > 1 && g.unread != nil && trusted(members).Name == g.trusted().Name {
			n.Unfit = func(ctx context.Context, results map[string]cache.Key) string {
				return g.unread(ctx, pilot, results[pilot.String()])
			}
		}
		b.needClocks(n, t)
		b.needGrants(n, members)
		nodes = append(nodes, n)
		g.Trials = append(g.Trials, group.Block{At: at, Members: names})
		if i == 1 {
			pilot = at
		}
	}
	return nodes
}

// Unread reports whether the pilot is stored and no number that all others need can be read from its output. result
// returns the key of a stored result.
func (g *Group) Unread(ctx context.Context, result func(hclspec.Address) (cache.Key, bool)) bool {
	i := slices.IndexFunc(g.Trials, func(t group.Block) bool { return slices.Contains(t.Members, g.trusted().Name) })
	if i < 0 || g.unread == nil {
		return false
	}
	key, stored := result(g.Trials[i].At)
	return stored && g.unread(ctx, g.Trials[i].At, key) != ""
}

// unread returns the unread of a group. It remembers its last answer.
func (b *builder) unread(m Member) func(context.Context, hclspec.Address, cache.Key) string {
	var read cache.Key // the result that why is about; zero: there is none yet
	var why string
	return func(ctx context.Context, pilot hclspec.Address, key cache.Key) string {
		if key != read {
			read, why = key, ""
			entry, err := b.Store.Get(ctx, key, false)
			if f := sample.Unread(entry, m.Bench, m.Name); err == nil && f != nil {
				why = fmt.Sprintf("%s has no number: %s; %s", pilot, f.Text(), f.Remedy)
			}
		}
		return why
	}
}

// addMember adds the references of one member of a block.
func addMember(r *input.Refs, m Member) {
	b := m.Bench
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

// needsOf returns the nodes whose results one member of a block uses.
func needsOf(m Member) input.Refs {
	var r input.Refs
	addMember(&r, m)
	return r
}

// WaitsOf returns the nodes that must end before a block because of one member.
func WaitsOf(m Member, probes []hclspec.Address) input.Refs {
	r := needsOf(m)
	r.Add(m.Fill)
	r.Add(probes...)
	return r
}
