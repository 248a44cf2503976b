package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/tasks/memo"
)

// Memorize keeps what a plan of the whole project found out for the next process. It keeps nothing where that could not
// tell whether it still holds.
func (p *Project) Memorize(ctx context.Context, plan *engine.Plan) error {
	if p.MemoFile == "" || len(p.given) > 0 || len(p.work) > 0 || p.partial || !p.pinned() {
		return nil
	}
	if p.recalled != nil {
		if m := p.updated(plan); m != nil {
			return m.Write(p.MemoFile)
		}
		return nil
	}
	m := &memo.Memo{For: p.Basis, Used: p.Spec.Reads.Began}
	var ok bool
	if m.World, ok = p.world(ctx); !ok {
		return nil
	}
	if err := p.writeDown(ctx, m, plan); err != nil {
		return err
	}
	if m.Still = p.still(m, plan); m.Still != nil {
		journal, ok := p.journalThing(ctx)
		if !ok {
			return nil
		}
		m.World = append(m.World, journal)
	}
	return m.Write(p.MemoFile)
}

// pinned says that the plan rests on nothing that only the network knows, and on no directory that may come any time.
func (p *facts) pinned() bool {
	for i := range p.Spec.Wheels {
		if w := &p.Spec.Wheels[i]; len(w.Prebuilt) > 0 && !p.servedBy(w).known() {
			return false
		}
	}
	for i := range p.Spec.Mounts {
		if m := &p.Spec.Mounts[i]; m.Out == nil && p.lacksMount(m, true) != "" {
			return false
		}
	}
	return len(p.unresolved) == 0
}

// world is all that the plan as a whole depends on; false when something of it has changed since it was looked at.
func (p *facts) world(ctx context.Context) ([]memo.Thing, bool) {
	w := &worldly{facts: p, ctx: ctx, seen: map[string]bool{}}
	for name, sum := range p.Spec.Reads.Content {
		w.content(name, hex.EncodeToString(sum[:]))
	}
	for i := range p.Spec.Sources {
		if s := &p.Spec.Sources[i]; s.Patch != "" {
			w.content(s.Patch, p.seen.patches[s.Patch])
		}
	}
	for name := range p.seen.fixFiles {
		w.content(name, p.seen.known[name].SHA256) // empty: it was not there
	}
	if text := p.Lock.Bytes(); string(text) == string((&hclspec.Lock{}).Bytes()) {
		w.presence(p.LockFile, false)
	} else {
		sum := sha256.Sum256(text)
		w.content(p.LockFile, hex.EncodeToString(sum[:]))
	}
	for name, regular := range p.Spec.Reads.Regular {
		if _, read := p.seen.known[name]; !read {
			w.presence(name, regular)
		}
	}
	for name, regular := range p.seen.words {
		if !regular {
			w.presence(name, false)
		}
	}
	for i := range p.Spec.Mounts {
		if m := &p.Spec.Mounts[i]; m.Out == nil && !m.Volume {
			t, ok := memo.DirectoryThing(p.mountSource(m), p.Spec.Reads.Began)
			w.things, w.changed = append(w.things, t), w.changed || !ok
		}
	}
	for _, dir := range p.Spec.Reads.Listed {
		t, ok := memo.DirectoryThing(filepath.Join(p.Spec.Dir, filepath.FromSlash(dir)), p.Spec.Reads.Began)
		w.things, w.changed = append(w.things, t), w.changed || !ok
	}
	return w.things, !w.changed
}

// worldly gathers things.
type worldly struct {
	*facts
	ctx     context.Context
	things  []memo.Thing
	seen    map[string]bool
	changed bool
}

// content adds a file whose bytes had this digest.
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
		w.things = append(w.things, memo.FileThing(name, h))
	}
	w.seen[name] = true
}

// presence adds a name that was, or was not, that of a regular file.
func (w *worldly) presence(name string, regular bool) {
	if w.seen[name] {
		return
	}
	w.seen[name] = true
	kind := memo.Nothing
	if regular {
		kind = memo.Regular
	}
	w.things = append(w.things, memo.Thing{Path: name, Is: kind})
}

// writeDown fills in the nodes of a plan and the files that they depend on.
func (p *facts) writeDown(ctx context.Context, m *memo.Memo, plan *engine.Plan) error {
	known := common{Findings: p.findings, Hardware: p.hardware, GPUs: device.Kinds(p.devices()), Own: p.ownFiles(),
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
	w := writing{Memo: m, p: p, files: make(map[string]int32, len(p.seen.known)),
		index: make(map[*engine.Node]int32, len(plan.Steps))}
	m.Nodes = make([]memo.Node, len(plan.Steps))
	for i := range plan.Steps {
		w.index[plan.Steps[i].Node] = int32(i)
	}
	for i := range plan.Steps {
		if err := w.node(&m.Nodes[i], &plan.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// knownBuilds are the different builds of the project's images, as they were when they were first looked at.
func (p *facts) knownBuilds(ctx context.Context) (all []knownBuild, err error) {
	told := map[string]bool{}
	for i := range p.Spec.Images {
		build := p.Spec.Images[i].Build
		if build == nil || told[buildID(build)] {
			continue
		}
		told[buildID(build)] = true
		b, err := p.readBuild(ctx, build, p.ownFiles())
		if err != nil {
			return nil, err
		}
		all = append(all, knownBuild{*build, b.Digest()})
	}
	return all, nil
}

// updated is the memo with what was planned anew; nil when it is as it is in its file. What a node is made from is the
// same as long as a memo holds, so that only what was found out of it is new.
func (p *facts) updated(plan *engine.Plan) *memo.Memo {
	r := p.recalled
	anew := false
	for i := range plan.Steps {
		s, n := &plan.Steps[i], &r.Nodes[i]
		if n.Address != s.Node.Address {
			return nil // a graph in another order is not the memo's
		}
		if !r.changed[i] {
			continue
		}
		anew = true
		p.found(n, s)
		at := make(map[string]int32, len(n.Files))
		for _, k := range n.Files {
			at[r.Files[k].Path] = k
		}
		for _, f := range s.Node.Task.(*commandTask).files {
			if k, ok := at[f.path]; ok {
				r.Files[k] = memo.FileThing(f.path, f.Hashed)
			}
		}
	}
	if !anew && r.fresh {
		return nil
	}
	return r.Memo
}

// found notes what a plan found out of a node.
func (p *services) found(n *memo.Node, s *engine.Step) {
	n.Key, n.Reason, n.Digest, n.Outside, n.Entry = s.Key, s.Reason, "", "", cache.Outline{}
	meta, ok := s.Stored()
	if !ok || s.Action != engine.Cached {
		return
	}
	if _, elsewhere := s.Node.Task.(engine.Keeper); elsewhere {
		if n.Outside = p.maker.Made.IDOf(meta.Key); n.Outside == "" {
			return // nobody knows yet which image it is
		}
	}
	if n.Entry = p.Store.Outline(&meta); !n.Entry.Key.IsZero() {
		n.Digest = meta.Digest
	}
}

// writing is a memo in the making.
type writing struct {
	*memo.Memo
	p     *facts
	files map[string]int32 // index by path
	index map[*engine.Node]int32
}

func (w *writing) node(n *memo.Node, s *engine.Step) error {
	*n = memo.Node{
		Address: s.Node.Address, Kind: s.Node.Kind, Place: s.Node.Place, Request: s.Node.Resources,
		Estimate: s.Node.Estimate,
		Needs:    w.indices(s.Node.Needs), Order: w.indices(s.Node.Order), After: w.indices(s.Node.After),
		Excluded: s.Node.Exclude.Action == engine.Skip, Origin: s.Node.Origin,
	}
	w.p.found(n, s)
	r, ok := s.Node.Task.(interface{ read() []file })
	if !ok {
		return nil
	}
	for _, f := range r.read() {
		i, there := w.files[f.path]
		if !there {
			i = int32(len(w.Files))
			w.files[f.path] = i
			w.Files = append(w.Files, memo.Thing{})
		}
		w.Files[i] = memo.FileThing(f.path, f.Hashed)
		n.Files = append(n.Files, i)
	}
	if t, ok := s.Node.Task.(*commandTask); ok && t.alone() {
		block, err := json.Marshal(t.spec)
		if err != nil {
			return err
		}
		n.Block = w.Add(block)
	}
	return nil
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

// alone says that the task can be made anew from its block and the addresses in it.
func (t *commandTask) alone() bool {
	return len(t.spec.Mounts) == 0 && t.spec.Candidate == "" && t.spec.Source == hclspec.Address{} &&
		t.spec.Image == hclspec.Address{} && len(t.cures) == 0
}
