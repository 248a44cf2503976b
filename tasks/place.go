package tasks

import (
	"cmp"
	"slices"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
)

// A benchmark is measured on this machine or, as a job, on a machine of an executor. The block may name the executor.
// Otherwise its request decides: benchmarks with devices go to machines with devices, the others do not. All blocks of
// a commit are measured in one place.

// blocksAt identifies the blocks of one commit or, for a benchmark without candidates, of one key.
type blocksAt struct{ benchmark, commit string }

func blocksOf(b *hclspec.Benchmark) blocksAt {
	if b.Candidate != "" {
		return blocksAt{b.Address.Name, CommitOf(b.Candidate)}
	}
	return blocksAt{b.Address.Name, b.Address.Key}
}

// PlaceOf returns the machine on which a benchmark is measured; nil for this one.
func (p *Facts) PlaceOf(b *hclspec.Benchmark) *Elsewhere {
	if p.Elsewhere != nil || len(p.Reached) == 0 {
		return p.Elsewhere
	}
	return p.placed()[blocksOf(b)]
}

// placeOfTrial returns the machine on which a block is measured, also a block of an earlier plan; nil for this one.
func (p *Facts) placeOfTrial(trial hclspec.Address) *Elsewhere {
	if p.Elsewhere != nil || len(p.Reached) == 0 {
		return p.Elsewhere
	}
	group, _ := trial.Trial()
	if e, ok := p.placed()[blocksAt{trial.Name, group}]; ok {
		return e
	}
	return p.placed()[blocksAt{trial.Name, CommitOf(group)}]
}

// PlaceOfNode returns the machine for which a node is planned; nil for this one. Nodes that measure nothing run on this
// machine, unless they are too large for it.
func (p *Drawing) PlaceOfNode(n *engine.Node) *Elsewhere {
	if p.Elsewhere != nil || len(p.Reached) == 0 {
		return p.Elsewhere
	}
	if b := benchmarkOf(n); b != nil {
		return p.PlaceOf(b)
	}
	if p.Pool.Fits(n.Resources) == nil {
		return nil
	}
	if e := firstThatFits(p.Reached, n.Resources); e != nil && e.sends(n) {
		return e
	}
	return nil
}

// benchmarkOf returns the benchmark of a trial or fill node; nil for other nodes.
func benchmarkOf(n *engine.Node) *hclspec.Benchmark {
	switch t := n.Task.(type) {
	case *trialTask:
		return t.members[0].Bench
	case *fillTask:
		return t.members[0].Bench
	}
	return nil
}

// sends reports whether a node can be a job. Builds of wheels cannot: they read the mirror of their repo.
func (e *Elsewhere) sends(n *engine.Node) bool {
	return e.Remote != nil && e.Remote.Wanted(n.Address) && !Builds(n)
}

// placed returns the place of each group of blocks.
func (p *Facts) placed() map[blocksAt]*Elsewhere {
	return p.places.get(p.Spec, func() map[blocksAt]*Elsewhere {
		asked, named := map[blocksAt]*device.Request{}, map[blocksAt]string{}
		for i := range p.Spec.Benchmarks {
			b := &p.Spec.Benchmarks[i]
			at := blocksOf(b)
			if asked[at] == nil {
				asked[at] = &device.Request{}
			}
			p.widen(asked[at], b)
			named[at] = b.Executor
		}
		places := map[blocksAt]*Elsewhere{}
		for at, q := range asked {
			places[at] = p.choosePlace(named[at], *q)
		}
		return places
	})
}

// widen enlarges a request to cover a benchmark.
func (p *Facts) widen(q *device.Request, b *hclspec.Benchmark) {
	q.CPUs, q.Memory, q.Disk = max(q.CPUs, b.CPUs), max(q.Memory, b.Memory), max(q.Disk, b.Disk)
	q.Quiet = q.Quiet || b.Quiet
	if g := b.GPUs; g != nil {
		q.GPUs.Count, q.GPUs.Memory = max(q.GPUs.Count, g.Count), max(q.GPUs.Memory, g.Memory)
		q.GPUs.Model = p.Seen.model(g.Model)
	}
}

// choosePlace returns the machine for blocks with a request; nil for this one. executor is the name in their benchmark.
func (p *Facts) choosePlace(executor string, q device.Request) *Elsewhere {
	var suited []*Elsewhere
	for _, e := range p.Reached {
		if e.By.Block == executor {
			return e
		}
		if executor == "" && (len(e.Devices) > 0) == (q.GPUs.Count > 0) {
			suited = append(suited, e)
		}
	}
	if e := firstThatFits(suited, q); e != nil || len(suited) == 0 || p.Pool.Fits(q) == nil {
		return e
	}
	suiting := func(e *Elsewhere) (n int) {
		for _, d := range e.Devices {
			if q.GPUs.Suits(d) {
				n++
			}
		}
		return n
	}
	return slices.MaxFunc(suited, func(a, b *Elsewhere) int { // none fits: the closest one, whose reason the plan shows
		return cmp.Compare(suiting(a), suiting(b))
	})
}

func firstThatFits(list []*Elsewhere, q device.Request) *Elsewhere {
	if i := slices.IndexFunc(list, func(e *Elsewhere) bool { return e.Pool.Fits(q) == nil }); i >= 0 {
		return list[i]
	}
	return nil
}
