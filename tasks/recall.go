package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/tasks/memo"
)

// recalled is a plan of an earlier process, and what has changed since.
type recalled struct {
	*memo.Memo
	changed  []bool // by node: it is made and planned anew
	fresh    bool   // the memo's file says the same
	standing []engine.Standing
	results  []cache.Meta
}

// common is what a memo keeps for all nodes that are made anew without the rest of the project.
type common struct {
	Spec     hclspec.Spec // without anything that makes a node
	Hardware string
	GPUs     []string // kinds, one for each device; nil: nothing needs any
	Builds   []knownBuild
	Own      []string // what benchgraph writes into the project

	Findings []preflight.Finding
}

// knownBuild is what an image is built from, and a digest of what that was.
type knownBuild struct {
	Build  hclspec.ImageBuild
	Digest string
}

// Recall opens a project as an earlier plan left it, without evaluating its files. Its Spec holds only the tasks for
// which something has changed; the graph's other nodes stand as they were. It is false when the memo does not hold,
// when something has changed that needs the whole Spec, or when the caller needs compares and reports and there are
// some.
func Recall(ctx context.Context, c Config, lock *hclspec.Lock, findings bool) (*Project, bool) {
	var known common
	m := memo.Read(c.MemoFile)
	if m == nil || m.For != c.Basis || json.Unmarshal(m.Common, &known) != nil {
		return nil, false
	}
	check, err := memo.NewChecker(known.Spec.Dir, c.Stat.Hash, c.Store)
	if err != nil {
		return nil, false
	}
	defer check.Close()
	if !check.World(ctx, m) || !sameHardware(m, c, &known) {
		return nil, false
	}
	changed, ok := check.Changed(ctx, m)
	if !ok {
		return nil, false
	}
	block, done := m.Blocks(c.MemoFile)
	defer done()
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if changed[i] {
			var t hclspec.Task
			if text, ok := block(n.Block); !ok || json.Unmarshal(text, &t) != nil {
				return nil, false
			}
			known.Spec.Tasks = append(known.Spec.Tasks, t)
		}
		if findings && (n.Kind == "compare" || n.Kind == "report") {
			return nil, false
		}
	}
	if m.Still != nil && (findings || slices.Contains(changed, true) || !check.Still(m.Still)) {
		return nil, false
	}
	if len(known.Spec.Tasks) > 0 {
		go c.Journal.Load() // it will be asked soon; what is wrong with it is told then
	}
	p := newProject(c, &known.Spec, lock)
	if !p.sameBuilds(ctx, &known) || !p.sameImages(ctx, m) || !p.stillFits(m) {
		return nil, false
	}
	p.hardware, p.findings = known.Hardware, known.Findings
	p.recalled = &recalled{Memo: m, changed: changed, fresh: !check.Refreshed.Load()}
	p.recalled.stands()
	return p, true
}

// sameHardware says whether samples would be of the same class of machine as when the memo was made.
func sameHardware(m *memo.Memo, c Config, was *common) bool {
	for i := range m.Nodes {
		kind := m.Nodes[i].Kind
		if kind == "trial" || kind == "fill" || len(was.Findings) > 0 { // some of which are about devices
			class, _, err := device.Inventory(nil)
			return err == nil && class.String() == was.Hardware &&
				(was.GPUs == nil || slices.Equal(device.Kinds(c.allDevices()), was.GPUs))
		}
	}
	return true
}

// sameBuilds says whether images would be built from the same files as when the memo was made.
func (p *facts) sameBuilds(ctx context.Context, was *common) bool {
	for i := range was.Builds {
		known := &was.Builds[i]
		if b, err := p.readBuild(ctx, &known.Build, was.Own); err != nil || b.Digest() != known.Digest {
			return false
		}
	}
	return true
}

// sameImages says whether the engine still has all images that results stand for, and none of which it had none. It is
// asked once, as in any plan.
func (p *services) sameImages(ctx context.Context, m *memo.Memo) bool {
	for i := range m.Nodes {
		id := m.Nodes[i].Outside
		if id == "" {
			continue
		}
		if has, err := p.maker.Has(ctx, id); err != nil || !has {
			return false
		}
	}
	if m.Still == nil {
		return true
	}
	return !slices.ContainsFunc(m.Still.Gone, func(g memo.Gone) bool {
		has, err := p.maker.Has(ctx, g.Outside)
		return err != nil || has
	})
}

// stillFits says whether this machine could serve what has no result, as when the memo was made.
func (p *services) stillFits(m *memo.Memo) bool {
	return !slices.ContainsFunc(m.Nodes, func(n memo.Node) bool {
		return n.Action != "" && p.Pool.Fits(n.Request) != nil
	})
}

// stands fills in what is known of the nodes for which nothing has changed.
func (r *recalled) stands() {
	r.standing, r.results = make([]engine.Standing, len(r.Nodes)), make([]cache.Meta, len(r.Nodes))
	for i := range r.Nodes {
		n := &r.Nodes[i]
		r.standing[i] = engine.Standing{Key: n.Key, Action: n.Action, Reason: n.Reason}
		switch {
		case n.Excluded:
			r.standing[i].Action = engine.Skip
		case n.Action == "":
			r.results[i] = cache.Meta{Key: n.Entry.Key, Digest: n.Digest}
			r.standing[i].Action, r.standing[i].Result = engine.Cached, &r.results[i]
		}
	}
}

// recall puts what was made anew among what stands, in the order of the memo.
func (b *builder) recall() error {
	r := b.recalled
	anew, linked := make(map[string]*engine.Node, len(b.list)), map[string]bool{}
	for _, n := range b.list {
		anew[n.Address] = n
	}
	for _, l := range b.links {
		linked[l.to.String()] = true
	}
	nodes, all := make([]engine.Node, len(r.Nodes)), make([]*engine.Node, len(r.Nodes))
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if r.changed[i] {
			if all[i] = anew[n.Address]; all[i] == nil {
				return fmt.Errorf("%s: was not made anew", n.Address)
			}
			continue
		}
		nodes[i] = engine.Node{
			Address: n.Address, Kind: n.Kind, Place: n.Place, Resources: n.Request, Estimate: n.Estimate,
			Standing: &r.standing[i], Origin: n.Origin,
			Needs: among(all, n.Needs), Order: among(all, n.Order), After: among(all, n.After),
		}
		if n.Excluded {
			nodes[i].Exclude = engine.Exclude{Action: engine.Skip, Reason: n.Reason}
		}
		all[i] = &nodes[i]
		if len(linked) > 0 && linked[n.Address] {
			b.stands[n.Address] = all[i]
		}
	}
	b.list = all
	return nil
}

func among(all []*engine.Node, indices []int32) []*engine.Node {
	if len(indices) == 0 {
		return nil
	}
	nodes := make([]*engine.Node, len(indices))
	for i, k := range indices {
		nodes[i] = all[k]
	}
	return nodes
}
