package memo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/internal/cores"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/tasks"
)

// Planned is a plan of the whole project with the facts that a memo keeps of it.
type Planned struct {
	*tasks.Drawing
	Plan     *engine.Plan
	Findings []preflight.Finding
	Missed   []cache.Key // keys under which blocks were looked up before members were dropped
	Recalled *Recalled   // the memo that this plan rests on; nil: none
	Used     time.Time   // when the store was last told that the results are in use; zero: now
}

// Remember writes the memo of a plan for the next process. It writes nothing if the next process could not check
// whether the memo still holds.
func (at Place) Remember(ctx context.Context, p *Planned) error {
	if at.File == "" || len(p.Work) > 0 || !p.pinned(ctx) {
		return nil
	}
	if p.Recalled != nil {
		if m := p.updated(); m != nil {
			return m.write(at.File)
		}
		return nil
	}
	m := &memo{For: at.Basis, Used: p.Used}
	if m.Used.IsZero() {
		m.Used = p.Spec.Reads.Began
	}
	var ok bool
	if m.World, ok = p.world(ctx); !ok {
		return nil
	}
	if err := p.writeDown(ctx, m); err != nil {
		return err
	}
	if m.Still = p.still(m); m.Still != nil {
		journal, ok := p.journalThing(ctx)
		if !ok {
			return nil
		}
		m.World = append(m.World, journal)
	}
	return m.write(at.File)
}

// pinned reports whether the plan rests on nothing that only the network knows, and on no directory that may appear
// later.
func (p *Planned) pinned(ctx context.Context) bool {
	for i := range p.Spec.Wheels {
		if w := &p.Spec.Wheels[i]; len(w.Prebuilt) > 0 && !p.ServedBy(w).Known() {
			return false
		}
	}
	for i := range p.Spec.Mounts {
		if m := &p.Spec.Mounts[i]; m.Out == nil && p.LacksMount(ctx, m, true) != "" {
			return false
		}
	}
	return len(p.Unresolved)+len(p.Lost) == 0 // a commit that its repo has lost may come back
}

// world returns everything that the plan as a whole depends on; false if part of it has changed since the plan read it.
func (p *Planned) world(ctx context.Context) ([]thing, bool) {
	most := len(p.Spec.Reads.Content) + len(p.Spec.Reads.Regular) + len(p.Seen.Words)
	w := &worldly{Facts: p.Facts, ctx: ctx, things: make([]thing, 0, most), seen: make(map[string]bool, most)}
	for name, sum := range p.Spec.Reads.Content {
		w.content(name, hex.EncodeToString(sum[:]))
	}
	for i := range p.Spec.Sources {
		if s := &p.Spec.Sources[i]; s.Patch != "" {
			w.content(s.Patch, p.Seen.Patches[s.Patch])
		}
	}
	for name := range p.Seen.FixFiles {
		w.content(name, p.Seen.Known[name].SHA256) // empty if the file was not there
	}
	if text := p.Lock.Bytes(); string(text) == string((&lockfile.Lock{}).Bytes()) {
		w.presence(p.LockFile, false)
	} else {
		sum := sha256.Sum256(text)
		w.content(p.LockFile, hex.EncodeToString(sum[:]))
	}
	for name, regular := range p.Spec.Reads.Regular {
		if _, read := p.Seen.Known[name]; !read {
			w.presence(name, regular)
		}
	}
	for name, regular := range p.Seen.Words {
		if !regular {
			w.presence(name, false)
		}
	}
	for i := range p.Spec.Mounts {
		if m := &p.Spec.Mounts[i]; m.Out == nil && !m.Volume {
			t, ok := directoryThing(p.MountSource(m), p.Spec.Reads.Began)
			w.things, w.changed = append(w.things, t), w.changed || !ok
		}
	}
	for _, dir := range p.Spec.Reads.Listed {
		t, ok := directoryThing(filepath.Join(p.Spec.Dir, filepath.FromSlash(dir)), p.Spec.Reads.Began)
		w.things, w.changed = append(w.things, t), w.changed || !ok
	}
	return w.things, !w.changed
}

// worldly collects things for world.
type worldly struct {
	*tasks.Facts
	ctx     context.Context
	things  []thing
	seen    map[string]bool
	changed bool
}

// content adds a file whose bytes had the digest sum; empty if there was no such file.
func (w *worldly) content(name, sum string) {
	if sum == "" {
		w.presence(name, false)
		return
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.Spec.Dir, filepath.FromSlash(name))
	}
	h, err := w.Stat.Hash(w.ctx, path)
	w.changed = w.changed || err != nil || h.SHA256 != sum
	if !w.seen[name] {
		w.things = append(w.things, fileThing(name, h))
	}
	w.seen[name] = true
}

// presence adds a name, and whether a regular file had it.
func (w *worldly) presence(name string, regular bool) {
	if w.seen[name] {
		return
	}
	w.seen[name] = true
	is := nothing
	if regular {
		is = regularFile
	}
	w.things = append(w.things, thing{Path: name, Is: is})
}

// writeDown fills in the nodes of a plan and the files that they depend on.
func (p *Planned) writeDown(ctx context.Context, m *memo) error {
	known := common{Findings: p.Findings, Hardware: p.Hardware, GPUs: machine.Kinds(p.Devices()), Own: p.OwnFiles(),
		Spec: hclspec.Spec{
			Dir: p.Spec.Dir, Files: p.Spec.Files, Failures: p.Spec.Failures, Executors: p.Spec.Executors,
			Machines: p.Spec.Machines, GPUHour: p.Spec.GPUHour, Store: p.Spec.Store, Sandbox: p.Spec.Sandbox,
			Commits: p.reported(),
		}}
	var err error
	if known.Builds, err = p.knownBuilds(ctx); err != nil {
		return err
	}
	if m.Common, err = json.Marshal(known); err != nil {
		return err
	}
	w := writing{memo: m, files: make(map[string]int32, len(p.Seen.Known)),
		index: make(map[*engine.Node]int32, len(p.Plan.Steps))}
	m.Nodes = make([]node, len(p.Plan.Steps))
	for i := range p.Plan.Steps {
		w.index[p.Plan.Steps[i].Node] = int32(i)
	}
	for i := range p.Plan.Steps {
		w.node(&m.Nodes[i], &p.Plan.Steps[i])
	}
	blocks, failed := make([][]byte, len(p.Plan.Steps)), make([]error, len(p.Plan.Steps))
	cores.Share(len(blocks), 16, func(from, to int) {
		for i := from; i < to; i++ {
			p.found(&m.Nodes[i], &p.Plan.Steps[i])
			if spec := tasks.Alone(p.Plan.Steps[i].Node); spec != nil {
				blocks[i], failed[i] = json.Marshal(spec)
			}
		}
	})
	m.addBlocks(blocks)
	return errors.Join(failed...)
}

// knownBuilds returns the different builds of the project's images, with the digests of their first reading.
func (p *Planned) knownBuilds(ctx context.Context) (all []knownBuild, err error) {
	told := map[string]bool{}
	for i := range p.Spec.Images {
		build := p.Spec.Images[i].Build
		if build == nil || told[tasks.BuildID(build)] {
			continue
		}
		told[tasks.BuildID(build)] = true
		b, err := p.ReadBuild(ctx, build, p.OwnFiles())
		if err != nil {
			return nil, err
		}
		all = append(all, knownBuild{*build, b.Digest()})
	}
	return all, nil
}

// updated returns the memo with the facts about nodes that were planned again; nil if the memo's file need not be
// written. As long as a memo holds, a node is made from the same block, so only its state is new.
func (p *Planned) updated() *memo {
	r := p.Recalled
	anew := false
	for i := range p.Plan.Steps {
		s, n := &p.Plan.Steps[i], &r.memo.Nodes[i]
		if n.Address != s.Node.Address {
			return nil // the plan is of another graph
		}
		if !r.changed[i] {
			continue
		}
		anew = true
		p.found(n, s)
		at := make(map[string]int32, len(n.Files))
		for _, k := range n.Files {
			at[r.memo.Files[k].Path] = k
		}
		for _, f := range tasks.FilesOf(s.Node) {
			if k, ok := at[f.Path]; ok {
				r.memo.Files[k] = fileThing(f.Path, f.Hashed)
			}
		}
	}
	if !anew && r.fresh {
		return nil
	}
	return r.memo
}

// found records a step's key and result in a node of the memo.
func (p *Planned) found(n *node, s *engine.Step) {
	n.Key, n.Reason, n.Digest, n.Outside, n.Entry = s.Key, s.Reason, "", "", cache.Outline{}
	meta, ok := s.Stored()
	if !ok || s.Action != engine.Cached {
		return
	}
	if _, elsewhere := s.Node.Task.(engine.Keeper); elsewhere {
		if n.Outside = p.Maker.Made.IDOf(meta.Key); n.Outside == "" {
			return // it is not known yet which image the result stands for
		}
	}
	if n.Entry = p.Store.Outline(&meta); !n.Entry.Key.IsZero() {
		n.Digest = meta.Digest
	}
}

// writing is a memo in the making.
type writing struct {
	*memo
	files map[string]int32 // index in memo.Files, by path
	index map[*engine.Node]int32
}

func (w *writing) node(n *node, s *engine.Step) {
	*n = node{
		Address: s.Node.Address, Kind: s.Node.Kind, Place: s.Node.Place, Request: s.Node.Resources,
		Estimate: s.Node.Estimate,
		Needs:    w.indices(s.Node.Needs), Order: w.indices(s.Node.Order), After: w.indices(s.Node.After),
		Excluded: s.Node.Exclude.Action == engine.Skip, Origin: s.Node.Origin,
	}
	for _, f := range tasks.FilesOf(s.Node) {
		i, there := w.files[f.Path]
		if !there {
			i = int32(len(w.Files))
			w.files[f.Path] = i
			w.Files = append(w.Files, thing{})
		}
		w.Files[i] = fileThing(f.Path, f.Hashed)
		n.Files = append(n.Files, i)
	}
}

func (w *writing) indices(nodes []*engine.Node) []int32 {
	if len(nodes) == 0 {
		return nil
	}
	all := make([]int32, len(nodes))
	for i, n := range nodes {
		all[i] = w.index[n]
	}
	return all
}

// reported returns the commits with the fields that reports show; nil if the project has no reports.
func (p *Planned) reported() []hclspec.Commit {
	if len(p.Spec.Reports) == 0 {
		return nil
	}
	commits := make([]hclspec.Commit, len(p.Spec.Commits))
	for i := range p.Spec.Commits {
		c := &p.Spec.Commits[i]
		commits[i] = hclspec.Commit{Name: c.Name, Title: c.Title, Rev: c.Rev, Parent: c.Parent, Params: c.Params}
	}
	return commits
}
