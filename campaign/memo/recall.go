package memo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/tasks"
)

// Place is where a plan is remembered.
type Place struct {
	File  string // empty: nowhere
	Basis string // what, beside files, a plan depends on
}

// Recalled is a plan of an earlier process, and what has changed since.
type Recalled struct {
	Facts    *tasks.Facts // with the tasks for which something has changed, and nothing else that makes a node
	Findings []preflight.Finding

	memo     *memo
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

// Recall finds out what an earlier plan left, without evaluating the project's files. It is false when the memo does
// not hold, when something has changed that needs the whole Spec, or when the caller needs compares and reports and
// there are some. Then known is what it knows of the store.
func (at Place) Recall(ctx context.Context, c tasks.Config, lock *lockfile.Lock, findings bool) (r *Recalled,
	known Known, ok bool) {
	m := read(at.File)
	if m == nil {
		return nil, Known{}, false
	}
	if r, ok = at.recall(ctx, m, c, lock, findings); !ok {
		known = m.known(c.Store)
	}
	return r, known, ok
}

func (at Place) recall(ctx context.Context, m *memo, c tasks.Config, lock *lockfile.Lock, findings bool) (*Recalled,
	bool) {
	var known common
	if m.For != at.Basis || json.Unmarshal(m.Common, &known) != nil {
		return nil, false
	}
	check, err := newChecker(known.Spec.Dir, c.Stat.Hash, c.Store)
	if err != nil {
		return nil, false
	}
	defer check.close()
	if !check.world(ctx, m) || !sameHardware(m, c, &known) {
		return nil, false
	}
	changed, ok := check.changed(ctx, m)
	if !ok {
		return nil, false
	}
	block, done := m.readBlocks(at.File)
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
	if m.Still != nil && (findings || slices.Contains(changed, true) || !check.still(m.Still)) {
		return nil, false
	}
	if len(known.Spec.Tasks) > 0 {
		go c.Journal.Load() // it will be asked soon; what is wrong with it is told then
	}
	f := tasks.NewFacts(c, &known.Spec, lock)
	if !sameBuilds(ctx, f, &known) || !sameImages(ctx, f, m) || !stillFits(f, m) {
		return nil, false
	}
	r := &Recalled{Facts: f, Findings: known.Findings, memo: m, changed: changed, fresh: !check.refreshed.Load()}
	r.stands()
	f.Hardware, f.Standing = known.Hardware, r.around
	return r, true
}

// sameHardware says whether samples would be of the same class of machine as when the memo was made.
func sameHardware(m *memo, c tasks.Config, was *common) bool {
	for i := range m.Nodes {
		kind := m.Nodes[i].Kind
		if kind == "trial" || kind == "fill" || len(was.Findings) > 0 { // some of which are about devices
			class, _, err := machine.Inventory(nil)
			return err == nil && class.String() == was.Hardware &&
				(was.GPUs == nil || slices.Equal(machine.Kinds(c.AllDevices()), was.GPUs))
		}
	}
	return true
}

// sameBuilds says whether images would be built from the same files as when the memo was made.
func sameBuilds(ctx context.Context, f *tasks.Facts, was *common) bool {
	for i := range was.Builds {
		known := &was.Builds[i]
		if b, err := f.ReadBuild(ctx, &known.Build, was.Own); err != nil || b.Digest() != known.Digest {
			return false
		}
	}
	return true
}

// sameImages says whether the engine still has all images that results stand for, and none of which it had none. It is
// asked once, as in any plan.
func sameImages(ctx context.Context, f *tasks.Facts, m *memo) bool {
	for i := range m.Nodes {
		id := m.Nodes[i].Outside
		if id == "" {
			continue
		}
		if has, err := f.Maker.Has(ctx, id); err != nil || !has {
			return false
		}
	}
	if m.Still == nil {
		return true
	}
	return !slices.ContainsFunc(m.Still.Gone, func(g gone) bool {
		has, err := f.Maker.Has(ctx, g.Outside)
		return err != nil || has
	})
}

// stillFits says whether this machine could serve what has no result, as when the memo was made.
func stillFits(f *tasks.Facts, m *memo) bool {
	return !slices.ContainsFunc(m.Nodes, func(n node) bool {
		return n.Action != "" && f.Pool.Fits(n.Request) != nil
	})
}

// stands fills in what is known of the nodes for which nothing has changed.
func (r *Recalled) stands() {
	r.standing, r.results = make([]engine.Standing, len(r.memo.Nodes)), make([]cache.Meta, len(r.memo.Nodes))
	for i := range r.memo.Nodes {
		n := &r.memo.Nodes[i]
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

// around puts what was made anew among what stands, in the order of the memo.
func (r *Recalled) around(made []*engine.Node) ([]*engine.Node, error) {
	anew := make(map[string]*engine.Node, len(made))
	for _, n := range made {
		anew[n.Address] = n
	}
	nodes, all := make([]engine.Node, len(r.memo.Nodes)), make([]*engine.Node, len(r.memo.Nodes))
	for i := range r.memo.Nodes {
		n := &r.memo.Nodes[i]
		if r.changed[i] {
			if all[i] = anew[n.Address]; all[i] == nil {
				return nil, fmt.Errorf("%s: was not made anew", n.Address)
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
	}
	return all, nil
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
