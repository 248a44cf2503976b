// Package tasks makes the graph of a project: Graph is a function of the facts that were found out and of a choice.
// There is one file for each kind of node. Package campaign finds out the facts, changes the choice and plans again.
package tasks

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell/input"
	"github.com/benchgraph/benchgraph/stats"
)

// builder makes a graph: first all nodes, then their edges.
type builder struct {
	*Drawing
	nodes   map[hclspec.Address]*engine.Node
	stands  map[string]*engine.Node // by address: nodes that an earlier plan left unchanged
	list    []*engine.Node
	links   []link
	sources map[hclspec.Address]*hclspec.Source
	images  map[hclspec.Address]*hclspec.Image
	begun   map[hclspec.Address]bool   // base images of other images
	commits map[string]*hclspec.Commit // by name
	clocks  map[clockRequest]func() string
	places  map[string]hclspec.Address // by candidate: image of its benchmarks; nil: not computed yet
}

// link is an edge whose target may not exist yet.
type link struct {
	from *engine.Node
	to   hclspec.Address
	list *[]*engine.Node
}

// Absence is why a candidate takes no part in a measurement, and the resulting outcome.
type Absence struct {
	Outcome stats.Outcome
	Why     string
}

// exclude returns the exclusion of a node for an absence.
func (a Absence) exclude() engine.Exclude {
	action := engine.Blocked
	if a.Outcome == stats.Skipped || a.Outcome == stats.NoPatch || a.Outcome == stats.Tie {
		action = engine.Skip
	}
	return engine.Exclude{Action: action, Reason: a.Why, Never: a.Outcome == stats.Infeasible}
}

// Graph makes the graph of facts and a choice. The same facts and choice make the same graph; neither is changed.
func Graph(ctx context.Context, f *Facts, c Choice) (*engine.Graph, *Drawing, error) {
	d := &Drawing{
		Facts: f, Choice: c.clone(),
		candidates: map[string]*hclspec.Candidate{}, rank: map[string]int{}, Excluded: map[string]Absence{},
		Probes: map[string][]hclspec.Address{}, copies: map[string][]string{},
	}
	b := &builder{
		Drawing: d,
		nodes:   make(map[hclspec.Address]*engine.Node, len(f.Spec.Tasks)),
		list:    make([]*engine.Node, 0, len(f.Spec.Tasks)),
		links:   make([]link, 0, len(f.Spec.Tasks)),
		stands:  map[string]*engine.Node{},
		sources: map[hclspec.Address]*hclspec.Source{},
		images:  map[hclspec.Address]*hclspec.Image{},
		begun:   map[hclspec.Address]bool{},
		clocks:  map[clockRequest]func() string{},
		commits: map[string]*hclspec.Commit{},
	}
	graph, err := b.build(ctx)
	return graph, d, err
}

func (b *builder) build(ctx context.Context) (*engine.Graph, error) {
	if err := b.readFixFiles(ctx); err != nil {
		return nil, err
	}
	b.index()
	if err := b.addAll(ctx); err != nil {
		return nil, err
	}
	if b.Standing != nil {
		if err := b.recall(); err != nil {
			return nil, err
		}
	}
	if err := b.connect(); err != nil {
		return nil, err
	}
	b.shareImages()
	b.settleElsewhere(ctx)
	b.gatherFixes()
	return engine.NewGraph(b.list)
}

// index fills the maps that are used while nodes are made.
func (b *builder) index() {
	b.indexFixes()
	b.Of = map[hclspec.Address]map[hclspec.Address]bool{}
	for _, c := range b.Spec.Compares {
		b.Of[c.Address] = map[hclspec.Address]bool{}
		for _, a := range c.Of {
			b.Of[c.Address][a] = true
		}
	}
	for i := range b.Spec.Sources {
		b.sources[b.Spec.Sources[i].Address] = &b.Spec.Sources[i]
	}
	for i := range b.Spec.Images {
		b.images[b.Spec.Images[i].Address] = &b.Spec.Images[i]
		b.begun[b.Spec.Images[i].Base] = true
	}
	for i := range b.Spec.Commits {
		b.commits[b.Spec.Commits[i].Name] = &b.Spec.Commits[i]
	}
	b.artefacts = map[hclspec.Address]bool{}
	for i := range b.Spec.Tasks {
		if t := &b.Spec.Tasks[i]; t.Artefact {
			b.artefacts[t.Address] = true
		}
	}
	for i := range b.Spec.Candidates {
		c := &b.Spec.Candidates[i]
		b.candidates[c.Key], b.rank[c.Key] = c, i
		if c.NoPatch != "" {
			b.Excluded[c.Key] = Absence{stats.NoPatch, c.NoPatch}
		}
		if c.Out != nil {
			b.Excluded[c.Key] = absenceOf(c.Out)
		}
		if gap, out := b.lacksPatch(c); out {
			b.Excluded[c.Key] = gap
		}
	}
	for _, s := range b.Spec.Skips {
		for _, key := range b.keysOf(s.Block) {
			b.Excluded[key] = Absence{stats.Skipped, s.Reason}
		}
	}
	for _, k := range b.Spec.KnownIssues {
		for _, key := range b.keysOf(k.Block) {
			if k.Probe.Shell == nil && k.Probe.Argv == nil {
				b.Excluded[key] = Absence{stats.Skipped, "known issue: " + k.Reason}
			} else {
				b.Probes[key] = append(b.Probes[key], k.Address)
			}
		}
	}
	for i := range b.Spec.Sources { // a prebuilt wheel reads no code of its candidate: check the source itself
		switch s := &b.Spec.Sources[i]; {
		case s.Candidate == "" || s.Out != nil || !guarded(s) || b.Refused.Unguarded[s.Candidate]:
		case s.Copies:
			b.copies[s.Candidate] = s.Protect
		default:
			b.Probes[s.Candidate] = append(b.Probes[s.Candidate], s.Address)
		}
	}
	for key, gap := range b.Refused.Candidates {
		if _, out := b.Excluded[key]; !out {
			b.Excluded[key] = gap
		}
	}
}

// keysOf returns the candidates that a block applies to: its own, or those of its commit.
func (b *builder) keysOf(block hclspec.Block) []string {
	if block.Candidate != "" {
		return []string{block.Candidate}
	}
	var keys []string
	for _, c := range b.Spec.Candidates {
		if !block.Address.Keyed || c.Commit == block.Address.Key {
			keys = append(keys, c.Key)
		}
	}
	return keys
}

// addAll makes the nodes, kind by kind.
func (b *builder) addAll(ctx context.Context) error {
	s := b.Spec
	for i := range s.Repos {
		b.addRepo(&s.Repos[i])
	}
	for i := range s.Sources {
		if err := b.addSource(&s.Sources[i]); err != nil {
			return err
		}
	}
	for i := range s.Fetches {
		f := &s.Fetches[i]
		if f.Out != nil {
			b.addOut(f.Block)
			continue
		}
		t := &downloadTask{p: b.Drawing, url: f.URL, expected: f.SHA256, most: f.MaxSize}
		if pinned, ok := b.Lock.Fetches[f.URL]; !ok || pinned.SHA256 != f.SHA256 {
			t.declared = f.SHA256
		}
		b.add(f.Block, t, nil).Resources.CPUs = device.NoCore
	}
	if err := b.addWheels(ctx); err != nil {
		return err
	}
	for i := range s.Images {
		if err := b.addImage(ctx, &s.Images[i]); err != nil {
			return err
		}
	}
	if err := b.addTasks(ctx); err != nil {
		return err
	}
	for i := range s.KnownIssues {
		b.addKnownIssue(&s.KnownIssues[i])
	}
	b.groupBenchmarks()
	for _, g := range b.Groups {
		b.addGroup(g)
	}
	for i := range s.Compares {
		b.addCompare(&s.Compares[i])
	}
	for i := range s.Reports {
		r := &s.Reports[i]
		b.add(r.Block, &reportTask{p: b.Drawing, spec: r}, input.Refs(r.Of)).Reads = true
	}
	return nil
}

func (b *builder) add(block hclspec.Block, t engine.Task, r input.Refs, order ...hclspec.Address) *engine.Node {
	return b.addAt(block.Address, block, t, r, order...)
}

// addAt makes a node of a block at an address. The node of an excluded candidate is excluded.
func (b *builder) addAt(at hclspec.Address, block hclspec.Block, t engine.Task, r input.Refs,
	order ...hclspec.Address) *engine.Node {
	n := &engine.Node{Address: at.String(), Kind: at.Kind, Task: t, Place: place(block.Range)}
	if gap, out := b.Excluded[block.Candidate]; out && block.Candidate != "" && at.Kind != "trial" {
		n.Exclude = gap.exclude()
	} else if block.Out != nil {
		n.Exclude = absenceOf(block.Out).exclude()
	}
	b.nodes[at] = n
	b.list = append(b.list, n)
	for _, a := range r {
		b.link(n, &n.Needs, a)
	}
	for _, a := range order {
		b.link(n, &n.Order, a)
	}
	return n
}

func place(r hcl.Range) string { return r.Filename + ":" + strconv.Itoa(r.Start.Line) }

// link notes an edge from n to an address, for one of n's lists.
func (b *builder) link(n *engine.Node, list *[]*engine.Node, to hclspec.Address) {
	b.links = append(b.links, link{n, to, list})
}

// recall merges the new nodes into those of an earlier plan.
func (b *builder) recall() (err error) {
	if b.list, err = b.Standing(b.list); err != nil || len(b.links) == 0 {
		return err
	}
	linked := make(map[string]bool, len(b.links))
	for _, l := range b.links {
		linked[l.to.String()] = true
	}
	for _, n := range b.list {
		if linked[n.Address] {
			b.stands[n.Address] = n
		}
	}
	return nil
}

// connect makes the edges, each once.
func (b *builder) connect() error {
	type edge struct {
		list *[]*engine.Node
		to   *engine.Node
	}
	made := make(map[edge]bool, len(b.links))
	for _, l := range b.links {
		target, ok := b.nodes[l.to]
		if !ok {
			target, ok = b.stands[l.to.String()]
		}
		if !ok {
			return fmt.Errorf("%s needs %s, which is no node", l.from.Address, l.to)
		}
		if e := (edge{l.list, target}); !made[e] {
			made[e] = true
			*l.list = append(*l.list, target)
		}
	}
	return nil
}

func (b *builder) source(a hclspec.Address) *hclspec.Source { return b.sources[a] }

// absent reports whether a member takes no part in its group's blocks, and why.
func (b *builder) absent(m Member) (Absence, bool) {
	if gap, out := b.Excluded[m.Candidate]; out && m.Candidate != "" {
		return gap, true
	}
	if m.Bench.Out != nil {
		return absenceOf(m.Bench.Out), true
	}
	if gap, out := b.Refused.Benchmarks[m.Bench.Address.String()]; out {
		return gap, true
	}
	gap, out := b.Dropped[m.Bench.Address.String()]
	return gap, out
}

func (b *builder) addRepo(r *hclspec.Repo) {
	commits := map[string]bool{}
	for _, s := range b.Spec.Sources {
		if s.Repo == r.Address && s.Out == nil && b.Lost[s.Rev] == "" {
			commits[s.Rev] = true
		}
	}
	b.add(r.Block, &repoTask{p: b.Drawing, repo: r, commits: sortedKeys(commits)}, nil)
}

func (b *builder) addSource(s *hclspec.Source) error {
	if s.Out != nil {
		b.addOut(s.Block)
		return nil
	}
	t, err := b.tree(s)
	if _, out := b.Excluded[s.Candidate]; err != nil && !out {
		return fmt.Errorf("%s: %w", s.Address, err)
	}
	n := b.add(s.Block, sourceTask{t}, nil, s.Repo)
	if why := b.Lost[s.Rev]; why != "" {
		n.Lacks = func(context.Context) string { return why }
	}
	return nil
}

func blocked(format string, args ...any) engine.Exclude {
	return engine.Exclude{Action: engine.Blocked, Reason: fmt.Sprintf(format, args...)}
}

// alsoLacks adds a condition to a node. It is asked only if the earlier ones are met.
func alsoLacks(n *engine.Node, lacks engine.Condition) {
	others := n.Lacks
	n.Lacks = func(ctx context.Context) string {
		if others != nil {
			if why := others(ctx); why != "" {
				return why
			}
		}
		return lacks(ctx)
	}
}

// request returns the request of a node for the pool.
func request(l hclspec.Limits) device.Request {
	return device.Request{CPUs: l.CPUs, Memory: l.Memory, Disk: l.Disk}
}

// trialRequest returns the request of a block: the maximum of its members' needs, since they run one after the other.
func (b *builder) trialRequest(trial hclspec.Address, members []Member) device.Request {
	var q device.Request
	for _, m := range members {
		b.widen(&q, m.Bench)
	}
	if q.GPUs.Count > 0 {
		devices := b.DevicesFor(members[0].Bench)
		if group, _ := trial.Trial(); len(slices.Compact(machine.Kinds(devices))) > 1 {
			// otherwise the pool reports that each kind has too few
			if kind, n := kindFor(devices, CommitOf(group), q.GPUs); n >= q.GPUs.Count {
				q.GPUs.Kind = kind
			}
		}
	}
	q.Ports = 1
	return q
}

// CommitOf returns the commit of a candidate, "commit/variant".
func CommitOf(candidate string) string {
	commit, _, _ := strings.Cut(candidate, "/")
	return commit
}
