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
	File  string // empty: the plan is not remembered
	Basis string // all that a plan depends on, beside files
}

// Recalled is a plan of an earlier process, with the changes since then.
type Recalled struct {
	Facts    *tasks.Facts // its Spec has only the tasks that must be planned again
	Findings []preflight.Finding

	memo     *memo
	changed  []bool // by node: it must be made and planned again
	fresh    bool   // the memo's file need not be renewed
	standing []engine.Standing
	results  []cache.Meta
}

// common has the data that a memo keeps for all nodes, to make any of them anew without the rest of the project.
type common struct {
	Spec     hclspec.Spec // without any block that makes a node
	Hardware string
	GPUs     []string // kinds, one for each device; nil: no node needs a device
	Builds   []knownBuild
	Own      []string // names that benchgraph itself writes into the project

	Findings []preflight.Finding
}

// knownBuild is the build of an image, with a digest of the files that it read.
type knownBuild struct {
	Build  hclspec.ImageBuild
	Digest string
}

// Recall returns the plan of an earlier process, without evaluating the project's files. ok is false if the memo does
// not hold, if a change needs the whole Spec, or if the caller needs findings and the plan has compares or reports.
// Then known has the results that the memo lists and the store has.
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
		go c.Journal.Load() // the journal will soon be needed; an error shows when it is asked
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

// sameHardware reports whether new samples would be of the same class of machine as when the memo was made.
func sameHardware(m *memo, c tasks.Config, was *common) bool {
	for i := range m.Nodes {
		kind := m.Nodes[i].Kind
		if kind == "trial" || kind == "fill" || len(was.Findings) > 0 { // the findings may be about devices
			class, _, err := machine.Inventory(nil)
			return err == nil && class.String() == was.Hardware &&
				(was.GPUs == nil || slices.Equal(machine.Kinds(c.AllDevices()), was.GPUs))
		}
	}
	return true
}

// sameBuilds reports whether images would be built from the same files as when the memo was made.
func sameBuilds(ctx context.Context, f *tasks.Facts, was *common) bool {
	for i := range was.Builds {
		known := &was.Builds[i]
		if b, err := f.ReadBuild(ctx, &known.Build, was.Own); err != nil || b.Digest() != known.Digest {
			return false
		}
	}
	return true
}

// sameImages reports whether the container engine still has exactly the images that the remembered plan saw. The engine
// is asked once, as in any plan.
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

// stillFits reports whether this machine can still serve the nodes that stand without a result.
func stillFits(f *tasks.Facts, m *memo) bool {
	return !slices.ContainsFunc(m.Nodes, func(n node) bool {
		return n.Action != "" && f.Pool.Fits(n.Request) != nil
	})
}

// stands fills in the states of the nodes that stand.
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

// around returns the nodes that stand and those that were made anew, in the order of the memo.
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
