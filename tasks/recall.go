package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/memo"
)

// recalled is a plan of an earlier process, and what has changed since.
type recalled struct {
	*memo.Memo
	changed []bool // by node: it is made and planned anew
	fresh   bool   // the memo's file says the same
	results []cache.Meta
}

// common is what a memo keeps for all nodes that are made anew without the rest of the project.
type common struct {
	Spec     hclspec.Spec // without anything that makes a node
	Hardware string
}

// Recall opens a project as an earlier plan left it, without evaluating its files. Its Spec holds only the tasks for which
// something has changed; the graph's other nodes stand as they were. It is false when the memo does not hold, when
// something has changed that needs the whole Spec, or when the caller needs compares and reports and there are some.
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
	if !check.World(ctx, m) || !sameHardware(m, known.Hardware) {
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
	if len(known.Spec.Tasks) > 0 {
		go c.Journal.Load() // it will be asked soon; what is wrong with it is told then
	}
	p := newProject(c, &known.Spec, lock)
	p.hardware = known.Hardware
	p.recalled = &recalled{Memo: m, changed: changed, fresh: !check.Refreshed.Load(), results: make([]cache.Meta, len(m.Nodes))}
	return p, true
}

// sameHardware says whether samples would be of the same class of machine as when the memo was made.
func sameHardware(m *memo.Memo, was string) bool {
	for i := range m.Nodes {
		if m.Nodes[i].Kind == "trial" {
			class, _, err := device.Inventory(nil)
			return err == nil && class.String() == was
		}
	}
	return true
}

// standing is the node of the memo as it stood.
func (r *recalled) standing(n *memo.Node, result *cache.Meta) engine.Node {
	s := engine.Node{
		Address: n.Address, Kind: n.Kind, Place: n.Place, Resources: n.Request, Estimate: n.Estimate,
		Standing: &engine.Standing{Key: n.Key, Reason: n.Reason},
	}
	if n.Excluded {
		s.Exclude = engine.Exclude{Action: engine.Skip, Reason: n.Reason}
		return s
	}
	*result = cache.Meta{Key: n.Entry.Key, Digest: n.Digest}
	s.Standing.Result = result
	return s
}

// recall puts what was made anew among what stands, in the order of the memo.
func (b *builder) recall() error {
	r := b.recalled
	anew := make(map[string]*engine.Node, len(b.list))
	for _, n := range b.list {
		anew[n.Address] = n
	}
	nodes := make([]engine.Node, len(r.Nodes))
	all := make([]*engine.Node, len(r.Nodes))
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if r.changed[i] {
			all[i] = anew[n.Address]
			continue
		}
		nodes[i] = r.standing(n, &r.results[i])
		all[i] = &nodes[i]
		all[i].Needs, all[i].Order, all[i].After = among(all, n.Needs), among(all, n.Order), among(all, n.After)
	}
	b.list = all
	if len(anew) == 0 {
		return nil
	}
	for i, n := range all {
		if n == nil {
			return fmt.Errorf("%s: was not made anew", r.Nodes[i].Address)
		}
		if n.Standing != nil {
			b.stands[n.Address] = n
		}
	}
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

// Memorize keeps what a plan of the whole project found out for the next process. It keeps nothing where that could not
// tell whether it still holds.
func (p *Project) Memorize(ctx context.Context, plan *engine.Plan) error {
	if p.MemoFile == "" || len(p.given) > 0 || !p.pinned() {
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
	if err := p.writeDown(m, plan); err != nil {
		return err
	}
	return m.Write(p.MemoFile)
}

// pinned says that the plan rests on nothing that only the network knows.
func (p *Project) pinned() bool {
	for i := range p.Spec.Wheels {
		if w := &p.Spec.Wheels[i]; len(w.Prebuilt) > 0 && p.servedBy(w) == "" {
			return false
		}
	}
	return true
}

// world is all that the plan as a whole depends on; false when something of it has changed since it was looked at.
func (p *Project) world(ctx context.Context) ([]memo.Thing, bool) {
	w := &worldly{Project: p, ctx: ctx, seen: map[string]bool{}}
	for name, sum := range p.Spec.Reads.Content {
		w.content(name, hex.EncodeToString(sum[:]))
	}
	for i := range p.Spec.Sources {
		if s := &p.Spec.Sources[i]; s.Patch != "" {
			w.content(s.Patch, p.patches[s.Patch])
		}
	}
	for name := range p.fixFiles {
		w.content(name, p.known[name].SHA256) // empty: it was not there
	}
	if text := p.Lock.Bytes(); string(text) == string((&hclspec.Lock{}).Bytes()) {
		w.presence(p.LockFile, false)
	} else {
		sum := sha256.Sum256(text)
		w.content(p.LockFile, hex.EncodeToString(sum[:]))
	}
	for name, regular := range p.Spec.Reads.Regular {
		if _, read := p.known[name]; !read {
			w.presence(name, regular)
		}
	}
	for name, regular := range p.words {
		if !regular {
			w.presence(name, false)
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
	*Project
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
func (p *Project) writeDown(m *memo.Memo, plan *engine.Plan) error {
	known := common{Hardware: p.hardware, Spec: hclspec.Spec{
		Dir: p.Spec.Dir, Files: p.Spec.Files, Failures: p.Spec.Failures, Executors: p.Spec.Executors, GPUHour: p.Spec.GPUHour,
	}}
	var err error
	if m.Common, err = json.Marshal(known); err != nil {
		return err
	}
	w := writing{Memo: m, p: p, files: make(map[string]int32, len(p.known)), index: make(map[*engine.Node]int32, len(plan.Steps))}
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

// updated is the memo with what was planned anew; nil when it is as it is in its file.
func (p *Project) updated(plan *engine.Plan) *memo.Memo {
	r := p.recalled
	w := writing{Memo: r.Memo, p: p, files: map[string]int32{}, index: map[*engine.Node]int32{}}
	anew := false
	for i := range plan.Steps {
		if r.Nodes[i].Address != plan.Steps[i].Node.Address {
			return nil // a graph in another order is not the memo's
		}
		anew = anew || r.changed[i]
	}
	if !anew && r.fresh {
		return nil
	}
	if anew {
		for i := range r.Files {
			w.files[r.Files[i].Path] = int32(i)
		}
		for i := range plan.Steps {
			w.index[plan.Steps[i].Node] = int32(i)
		}
	}
	for i := range plan.Steps {
		if r.changed[i] && w.node(&r.Nodes[i], &plan.Steps[i]) != nil {
			return nil
		}
	}
	return r.Memo
}

// writing is a memo in the making.
type writing struct {
	*memo.Memo
	p     *Project
	files map[string]int32 // index by path
	index map[*engine.Node]int32
}

func (w *writing) node(n *memo.Node, s *engine.Step) error {
	*n = memo.Node{
		Block:   n.Block, // as long as the memo holds, the files say the same
		Address: s.Node.Address, Kind: s.Node.Kind, Place: s.Node.Place, Request: s.Node.Resources, Estimate: s.Node.Estimate,
		Needs: w.indices(s.Node.Needs), Order: w.indices(s.Node.Order), After: w.indices(s.Node.After),
		Key: s.Key, Reason: s.Reason, Excluded: s.Node.Exclude.Action == engine.Skip,
	}
	if meta, ok := s.Stored(); ok && s.Action == engine.Cached {
		n.Entry = w.p.Store.Outline(&meta)
		if !n.Entry.Key.IsZero() {
			n.Digest = meta.Digest
		}
	}
	t, ok := s.Node.Task.(*commandTask)
	if !ok {
		return nil
	}
	for _, f := range t.files {
		i, there := w.files[f.path]
		if !there {
			i = int32(len(w.Files))
			w.files[f.path] = i
			w.Files = append(w.Files, memo.Thing{})
		}
		w.Files[i] = memo.FileThing(f.path, f.Hashed)
		n.Files = append(n.Files, i)
	}
	if n.Block.IsZero() && t.alone() {
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
	return t.spec.Candidate == "" && t.spec.Source == hclspec.Address{} && t.spec.Image == hclspec.Address{} && len(t.allowed) == 0
}
