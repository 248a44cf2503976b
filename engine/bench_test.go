package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
	"github.com/benchgraph/benchgraph/engine"
)

// lines is a task with a description like that of a server benchmark.
type lines struct{ id string }

func (l lines) Describe(d *cache.Description) {
	d.Add("command", "python3 benchmarks/benchmark_serving.py --model meta-llama/Llama-3.1-8B-Instruct --port $PORT",
		l.id)
	d.Add("metric", "items", "work done: ([0-9.]+) items/s", "items/s", "higher")
	for _, name := range [...]string{"PATH", "HOME", "LANG", "VLLM_USE_V1"} {
		d.Add("env", name, "value of the setting")
	}
}

func (l lines) Run(context.Context, *engine.Env) error { return nil }

// campaign makes the nodes of a study of many commits: a source, a wheel, seven blocks, a benchmark and a comparison
// for each commit.
func campaign(count int) []*engine.Node {
	const each, blocks = 11, 7
	nodes := make([]*engine.Node, 0, count)
	add := func(kind string, commit, i int, needs ...*engine.Node) *engine.Node {
		id := fmt.Sprintf("%d/%d", commit, i)
		n := &engine.Node{Address: fmt.Sprintf("%s.vllm[%q]", kind, id), Kind: kind, Task: lines{id}, Needs: needs}
		nodes = append(nodes, n)
		return n
	}
	for commit := range count / each {
		source := add("source", commit, 0)
		wheel := add("wheel", commit, 0, source)
		var trials []*engine.Node
		for block := range blocks {
			t := add("trial", commit, block, wheel)
			t.Resources = device.Request{Ports: 1, GPUs: device.GPUs{Count: 1}, Quiet: true}
			trials = append(trials, t)
		}
		bench := add("benchmark", commit, 0, trials...)
		compare := add("compare", commit, 0)
		compare.After = append(trials, bench)
	}
	for i := len(nodes); i < count; i++ {
		add("task", i, 0)
	}
	return nodes
}

// benchWorld is a world with devices.
func benchWorld(b *testing.B) *world {
	w := newWorld(b)
	pool, err := device.NewPool(device.Options{CPUs: 64,
		GPUs: gpu.These(gputest.Devices(8, "NVIDIA H200", 140<<30))})
	if err != nil {
		b.Fatal(err)
	}
	w.pool = pool
	return w
}

func BenchmarkNewGraph100k(b *testing.B) {
	nodes := campaign(100_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := engine.NewGraph(nodes); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPlanNoop10k(b *testing.B)  { benchmarkPlan(b, 10_000, false) }
func BenchmarkPlanNoop100k(b *testing.B) { benchmarkPlan(b, 100_000, false) }

// BenchmarkPlanNoopDisk10k is a plan as the command line makes it: with a real store.
func BenchmarkPlanNoopDisk10k(b *testing.B) { benchmarkPlan(b, 10_000, true) }

func BenchmarkPlanFresh10k(b *testing.B) {
	w := benchWorld(b)
	w.store = newMemory(w)
	g, err := engine.NewGraph(campaign(10_000))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if p := w.planGraph(g); p.Counts()[engine.Run] == 0 {
			b.Fatal(p.Counts())
		}
	}
}

// benchmarkPlan plans a graph in which everything is up to date.
func benchmarkPlan(b *testing.B, count int, onDisk bool) {
	w := benchWorld(b)
	g, err := engine.NewGraph(campaign(count))
	if err != nil {
		b.Fatal(err)
	}
	if onDisk {
		fillDisk(b, w, g)
	} else {
		fillMemory(w, g)
	}
	b.ReportAllocs()
	for b.Loop() {
		if p := w.planGraph(g); p.Counts()[engine.Cached] != count {
			b.Fatal(p.Counts())
		}
	}
}

// fillMemory stores made-up results until the plan finds nothing to do: a node with After has its key only once the
// earlier results are stored.
func fillMemory(w *world, g *engine.Graph) {
	store := newMemory(w)
	w.store = store
	for {
		p := w.planGraph(g)
		if p.Counts()[engine.Run] == 0 {
			return
		}
		store.fill(p)
	}
}

func fillDisk(b *testing.B, w *world, g *engine.Graph) {
	for {
		p := w.planGraph(g)
		if p.Counts()[engine.Run] == 0 {
			return
		}
		for i := range p.Steps {
			s := &p.Steps[i]
			if s.Action != engine.Run {
				continue
			}
			dir, err := w.disk.Scratch()
			if err == nil {
				err = os.Mkdir(filepath.Join(dir, cache.FilesDir), 0o755)
			}
			if err != nil {
				b.Fatal(err)
			}
			meta := cache.Meta{Key: s.Key, Text: s.Text, Address: s.Node.Address}
			if _, err := w.disk.Put(context.Background(), cache.Draft{Dir: dir, Meta: meta}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkApplyNoop10k measures only the loop: every node ends, and none is run.
func BenchmarkApplyNoop10k(b *testing.B) {
	w := benchWorld(b)
	g, err := engine.NewGraph(campaign(10_000))
	if err != nil {
		b.Fatal(err)
	}
	fillMemory(w, g)
	p := w.planGraph(g)
	o := engine.ApplyOptions{Store: w.store, Journal: w.journal, Pool: w.pool, Scratch: w.disk.Scratch,
		LogDir: filepath.Join(w.dir, "logs")}
	b.ReportAllocs()
	for b.Loop() {
		if r, err := engine.Apply(context.Background(), p, o); err != nil || r.Cached != len(p.Steps) {
			b.Fatal(r, err)
		}
	}
}
