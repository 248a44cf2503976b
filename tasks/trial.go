package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/image"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/shell/input"
	"github.com/benchgraph/benchgraph/shell/transcript"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// A trial node is one block: one sample of every variant of a commit, on the same devices, in random order, one after
// the other. Block 1 is the pilot, whose result is an input of the other blocks: they leave out a member that failed in
// it, and a baseline that no candidate is left to compare with.

// Member is one variant in a block.
type Member struct {
	Name      string // of the variant; "run" where the benchmark has no candidates
	Candidate string // commit/variant; empty where the benchmark has no candidates
	Baseline  bool
	Bench     *hclspec.Benchmark
	cures     []fix.Cure
	fixes     []fix.Due
	built     []fix.Due       // fixes that its image is made with; a subset of under
	Fill      hclspec.Address // the node that fills its caches; zero: no caches, or this is a fill
	// image in which the client runs; zero: where the benchmark runs
	client hclspec.Address
	under  []fix.Due // fixes that its artefacts were made with; their keys contain them
}

// allFixes returns the fixes that the member's numbers depend on.
func (m Member) allFixes() []fix.Due { return append(slices.Clip(m.fixes), m.under...) }

// trialTask measures one block.
type trialTask struct {
	p       *Drawing
	at      hclspec.Address
	group   string // name
	refs    input.Refs
	block   int      // from 1
	members []Member // by name
	pilot   hclspec.Address
	rule    []methodology.Field // how the file judges, for the record
	checked bool                // the block has the check
}

func (t *trialTask) Describe(d *cache.Description) {
	d.Add("block", strconv.Itoa(t.block))
	// Another class of machine gives another result, also in a shared store.
	d.Add("hardware", t.p.classFor(t.members[0].Bench))
	if c := t.trusted().Bench.Canary; c != nil {
		t.refs.DescribeCommand(d, "canary before each member", c.Command)
	}
	for _, m := range t.members {
		d.Add("member", m.Name, strconv.FormatBool(m.Baseline)) // without a baseline, no member is measured
		t.describeMember(d, m)
	}
}

func (t *trialTask) describeMember(d *cache.Description, m Member) {
	b := m.Bench
	t.describeRun(d, m)
	if n := b.Design.Passes(); n > 1 { // keys from before passes stay valid
		d.Add("repeat", strconv.Itoa(n))
	}
	t.describeImages(d, m)
	d.Add("design", strconv.Itoa(b.Design.Warmup), b.Design.Pairing, strconv.FormatInt(b.Design.Seed, 10))
	fix.Describe(d, t.refs, m.fixes)
	if t.checked && b.Check != nil {
		t.describeCheck(d, b.Check)
	}
}

// describeRun adds to a key how a member is started and what it runs.
func (t *trialTask) describeRun(d *cache.Description, m Member) {
	b := m.Bench
	t.refs.DescribeCommand(d, "command", b.Command)
	t.refs.DescribeEnv(d, b.Env)
	t.refs.DescribeData(d, b.Data)
	if b.Client != (hclspec.Address{}) {
		d.Add("client", t.refs.Label(b.Client))
	}
	if b.GPUs != nil {
		d.Add("gpus", gpuValues(b.GPUs)...)
		if b.GPUs.SMClock > 0 {
			d.Add("sm clock", strconv.Itoa(b.GPUs.SMClock))
		}
		d.Add("gpu classes", t.p.gpuClasses(t.at, b.GPUs)...)
	}
	d.Add("limits", strconv.Itoa(b.CPUs), strconv.FormatInt(b.Memory, 10), strconv.FormatBool(b.Quiet))
	d.Add("network", strconv.FormatBool(b.Network))
	t.p.describeMounts(d, b.Mounts)
	t.describeCaches(d, m)
	describeSandbox(d, t.p.measuredIn(b))
	if t.p.keepsCores(b) {
		d.Add("cores", "enforced")
	}
	if s := b.Server; s != nil {
		t.refs.DescribeCommand(d, "server", s.Command)
		t.refs.DescribeEnv(d, s.Env)
		d.Add("ready", s.HTTP, s.Log, strconv.FormatBool(s.TCP))
		for _, l := range shell.LimitsOf(s) {
			d.Add("server limit", l...)
		}
	}
}

// describeImages adds to a key the images of a member and of its client.
func (t *trialTask) describeImages(d *cache.Description, m Member) {
	if b := m.Bench; b.Image != (hclspec.Address{}) {
		d.Add("image", t.refs.Label(b.Image))
	}
	if m.client != (hclspec.Address{}) {
		d.Add("client image", t.refs.Label(m.client))
	}
}

func (t *trialTask) Run(ctx context.Context, env *engine.Env) error {
	rec := sample.Record{Block: t.block, Members: map[string]sample.Member{}, Run: env.Run, Tries: t.tries(ctx, env),
		Rule: t.rule}
	devices, reset, err := t.lockClocks(ctx, env)
	if err != nil {
		return err
	}
	defer reset()
	if rec.Class, rec.Instance, err = machine.Inventory(devices); err != nil {
		fmt.Fprintf(env.Log, "inventory: %v\n", err)
	}
	rec.Seed, rec.Order = t.order()
	var pilot *sample.Record
	if t.pilot != (hclspec.Address{}) {
		if pilot, err = sample.ReadRecord(t.refs.Input(env, t.pilot).Entry); err != nil {
			return err
		}
	}
	if err := t.measure(ctx, env, &rec, pilot); err != nil {
		return err
	}
	text, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	f, err := workdir.Create(filepath.Join(env.Out, sample.RecordFile))
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

// measure takes a sample of every member that is not left out. It runs the canary before each and after the last one.
func (t *trialTask) measure(ctx context.Context, env *engine.Env, rec *sample.Record, pilot *sample.Record) error {
	transcript.Of(env) // the members share one transcript
	c := t.canary(env, rec.Instance)
	t.spareIdentical(env, rec, pilot)
	var suspects []suspect
	room := workdir.RoomIn(env.Out)
	for _, name := range rec.Order {
		m := t.members[slices.IndexFunc(t.members, func(m Member) bool { return m.Name == name })]
		if rec.Members[name].Same {
			continue
		}
		if why := t.whyLeftOut(m, *rec, pilot); why != "" {
			rec.Members[name] = sample.Member{Candidate: m.Candidate, Skipped: why}
			continue
		}
		if err := c.before(ctx, name); err != nil {
			return err
		}
		r, err := t.sample(ctx, env, m, &rec.Seeds)
		for workdir.LacksRoom(err) && t.evict(env, rec, room) {
			r, err = t.sample(ctx, env, m, &rec.Seeds)
		}
		if f := t.suspected(env, m, err, room); f != nil && ctx.Err() == nil {
			suspects = append(suspects, suspect{m, r, f})
			continue
		}
		if err != nil {
			return err
		}
		if rec.Members[name] = r; room.Short() {
			t.evict(env, rec, room)
		}
	}
	if err := c.after(ctx); err != nil {
		return err
	}
	for _, s := range suspects {
		r, err := t.convict(ctx, env, s, rec, room)
		if err != nil {
			return err
		}
		rec.Members[s.member.Name] = r
	}
	if c != nil && c.begun {
		rec.Canary = &c.record
	}
	return t.compareFiles(env, rec)
}

// order draws the order of the members. In as many successive blocks as there are members, each member has each
// position once: a position that slows down runs then slows down all variants. The seed comes from the common part of
// the group's blocks, so a block that is run again keeps its order. The seed is recorded.
func (t *trialTask) order() (uint64, []string) {
	common := *t
	common.block, common.checked = 0, false
	d := cache.Describe("trial")
	common.Describe(d)
	sum := sha256.Sum256([]byte(d.Text()))
	seed := binary.BigEndian.Uint64(sum[:])
	names := make([]string, len(t.members))
	for i, m := range t.members {
		names[i] = m.Name
	}
	set, place := (t.block-1)/len(names), (t.block-1)%len(names)
	random := rand.New(rand.NewPCG(seed, uint64(set)))
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	turn := random.Perm(len(names))[place]
	return seed, append(slices.Clone(names[turn:]), names[:turn]...)
}

// whyLeftOut returns why a member is not to be run: the member or the baseline has failed, or the member is a baseline
// and all others failed in the pilot; "" to run it.
func (t *trialTask) whyLeftOut(m Member, now sample.Record, pilot *sample.Record) string {
	for _, rec := range []*sample.Record{pilot, &now} {
		if rec == nil {
			continue
		}
		for _, other := range t.members {
			if f := rec.Members[other.Name].Failure; f != nil && (other.Name == m.Name || other.Baseline) {
				return fmt.Sprintf("%s failed in block %d", other.Name, rec.Block)
			}
		}
	}
	failed := func(m Member) bool { return pilot.Members[m.Name].Failure != nil }
	if m.Baseline && pilot != nil && t.p.lonely(t.members, slices.DeleteFunc(slices.Clone(t.members), failed)) {
		return fmt.Sprintf("all others failed in block %d", pilot.Block)
	}
	return ""
}

// sample runs one lifecycle of a member. The record keeps a failure of the member's own; a failure that may pass, or
// that a registered fix would mend, is returned.
func (t *trialTask) sample(ctx context.Context, env *engine.Env, m Member, seeds *sample.Seeds) (sample.Member,
	error) {
	r := sample.Member{Candidate: m.Candidate, Start: time.Now()}
	env, end, err := workdir.Apart(env, m.Name)
	if err != nil {
		return r, diagnosis.Charged(m.Candidate, err)
	}
	defer end()
	for _, d := range env.Lease.GPUs {
		r.Devices = append(r.Devices, d.UUID)
	}
	for _, a := range needsOf(m) {
		if in := t.refs.Input(env, a); a.Kind != "image" { // images are recorded once they are proven to run
			r.Artefacts = append(r.Artefacts, sample.Artefact{Node: in.Address, Digest: in.Digest})
		}
	}
	r.Places = t.places(env, m)
	r.Procedure = t.p.procedure(m, func(a hclspec.Address) string {
		text := t.p.tracesOf(a)
		if text == a.String() { // another result may be at this address later
			text += " " + t.refs.Input(env, a).Digest
		}
		return text
	})
	fmt.Fprintf(env.Log, "== block %d: %s ==\n", t.block, m.Name)
	l := &lifecycle{t: t, env: env, m: m, out: filepath.Join(env.Out, m.Name), seeds: seeds}
	r.Watched, err = t.observed(ctx, env, func(ctx context.Context) error {
		return diagnosis.Charged(m.Candidate, l.run(ctx))
	})
	r.Duration, err = time.Since(r.Start), workdir.GiveUp(env, l.out, err)
	r.Took, r.Ready, r.Counters, r.Artefacts = l.took, l.ready, l.counters, append(r.Artefacts, l.ran...)
	var f *engine.Failure
	switch {
	case err == nil:
		return r, nil
	case !errors.As(err, &f) || ctx.Err() != nil:
		return r, err
	}
	t.emitInvalid(env, m, f)
	if _, fixable := fix.Wanted(f.Rule); fixable || f.Class.Retried() {
		return r, f // not for a fixable rule without a registered fix
	}
	if !sample.ByReading(f.Rule) || sample.Silent(l.out) {
		// otherwise the run was complete: each reading of its output, perhaps with a corrected metric, decides again
		r.Failure = &f.Failure
	}
	return r, nil
}

func (t *trialTask) emitInvalid(env *engine.Env, m Member, f *engine.Failure) {
	env.Emit(engine.Event{Type: engine.SampleInvalid, Failure: &f.Failure, Data: map[string]any{
		"benchmark": m.Bench.Address.Name, "candidate": m.Candidate, "block": t.block,
	}})
}

// Record returns the record in the result of a trial or image node, as JSON; nil for any other node.
func Record(e cache.Entry) (json.RawMessage, error) {
	for _, name := range []string{sample.RecordFile, image.File} {
		text, err := os.ReadFile(filepath.Join(e.Dir, name))
		if err == nil && json.Valid(text) {
			return text, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, nil
}
