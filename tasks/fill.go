package tasks

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// A fill is a run of one candidate that is not measured. It fills the caches of the benchmark with what the candidate
// compiles; each measured start gets a copy. Its key has all that the candidate runs with, so only candidates with the
// same artefacts share a fill.

// fillTask is a block with a single member that fills caches instead of being measured.
type fillTask struct{ trialTask }

func (t *fillTask) Describe(d *cache.Description) {
	m := t.members[0]
	d.Add("hardware", t.p.classFor(m.Bench))
	t.describeRun(d, m)
	t.describeImages(d, m)
	fix.Describe(d, t.refs, m.fixes)
}

func (t *fillTask) Run(ctx context.Context, env *engine.Env) error {
	_, reset, err := t.lockClocks(ctx, env)
	if err != nil {
		return err
	}
	defer reset()
	l := &lifecycle{t: &t.trialTask, env: env, m: t.members[0], out: filepath.Join(env.Work, "out")}
	_, err = t.observed(ctx, env, func(ctx context.Context) error {
		return diagnosis.Charged(l.m.Candidate, l.fill(ctx))
	})
	return err
}

// addFills adds the fills of members of a group. They get devices of the same kind as the blocks.
func (b *builder) addFills(g *Group, members []Member) {
	for _, m := range members {
		if m.Fill == (hclspec.Address{}) {
			continue
		}
		at, bench := m.Fill, *m.Bench
		if bench.FillsOtherwise() {
			bench.Estimate = 0 // the estimate is that of a sample
		}
		bench.Command, bench.Canary, bench.Check = bench.Fill, nil, nil
		m.Fill, m.Bench = hclspec.Address{}, &bench // a fill begins with empty caches
		trial := hclspec.TrialAddress(at.Name, cmp.Or(m.Candidate, at.Key), 1)
		t := &fillTask{trialTask{p: b.Drawing, at: trial, group: g.Name, members: []Member{m}}}
		addMember(&t.refs, m)
		t.refs.Add(m.client)
		n := b.addAt(at, m.Bench.Block, t, t.refs)
		n.Resources, n.Estimate = b.trialRequest(trial, t.members), m.Bench.Estimate
		n.Hardware = b.hardwareFor(trial, m)
		n.Resources.Quiet = false // nothing is measured
		b.needEngine(n, m.Bench.Image)
		b.needMounts(n, m.Bench.Mounts, m.Bench.Image)
		for _, probe := range b.Probes[m.Candidate] {
			b.link(n, &n.Order, probe)
		}
		b.needClocks(n, &t.trialTask)
		b.needGrants(n, t.members)
	}
}

// cachesAt returns the caches at some addresses, in that order.
func cachesAt(s *hclspec.Spec, addresses []hclspec.Address) []*hclspec.Cache {
	var all []*hclspec.Cache
	for _, a := range addresses {
		i := slices.IndexFunc(s.Caches, func(c hclspec.Cache) bool { return c.Address == a })
		all = append(all, &s.Caches[i])
	}
	return all
}

// laidCache is a cache that a lifecycle has laid out, see shell.Shell.LayCache.
type laidCache struct {
	*hclspec.Cache
	root, name string
}

// layCaches lays out the caches for the next start in a shell: copies of the fill's, or empty ones for the fill itself.
func (l *lifecycle) layCaches(sh *fix.Shell) error {
	for _, c := range cachesAt(l.t.p.Spec, l.m.Bench.Caches) {
		from := ""
		if l.m.Fill != (hclspec.Address{}) {
			from = filepath.Join(l.t.refs.Input(l.env, l.m.Fill).Dir, c.Address.Name)
		}
		root, name, err := sh.LayCache(c.Path, from)
		if err != nil {
			return err
		}
		l.caches = append(l.caches, laidCache{c, root, name})
	}
	return nil
}

// fill runs the fill's command once in a lifecycle, and keeps the caches.
func (l *lifecycle) fill(ctx context.Context) error {
	dir, err := l.open(ctx)
	if err != nil {
		return err
	}
	err = l.live(ctx, dir, func(ctx context.Context, server *shell.Server) error {
		l.progress("fill")
		return l.client(ctx, server, nil)
	})
	if err == nil {
		err = l.keepCaches(ctx)
	}
	return l.sh.Secrets.Conceal(err)
}

func (l *lifecycle) keepCaches(ctx context.Context) error {
	if err := os.MkdirAll(l.env.Out, 0o755); err != nil {
		return err
	}
	for _, c := range l.caches {
		to := filepath.Join(l.env.Out, c.Address.Name)
		bytes, err := workdir.TakeCache(ctx, l.env, to, c.root, c.name, c.Path, l.sh.Secrets)
		if err != nil {
			return err
		}
		fmt.Fprintf(l.env.Log, "%s: %s in %s\n", c.Address, units.BytesSize(float64(bytes)), c.Path)
		if bytes == 0 {
			l.env.Emit(engine.Event{Type: engine.Note, Reason: fmt.Sprintf(
				"%s: the run left nothing in %s, so that each start of %s compiles what it needs. "+
					"Is that the directory in which the program keeps it?", c.Address, c.Path, l.m.Bench.Address)})
		}
	}
	return nil
}

// describeCaches adds to a key the caches that a start finds filled.
func (t *trialTask) describeCaches(d *cache.Description, m Member) {
	for _, c := range cachesAt(t.p.Spec, m.Bench.Caches) {
		d.Add("cache", c.Address.Name, c.Path)
	}
	if m.Fill != (hclspec.Address{}) {
		d.Add("fill", t.refs.Label(m.Fill))
	}
}
