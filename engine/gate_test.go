package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/failure"
)

// seats is the gate to a licence server with a few seats. No other part of the engine knows it.
type seats struct {
	*run
	free int
	kept []*Step
}

func (g *seats) admit(s *Step) (device.Request, state) {
	if g.free > 0 {
		return device.Request{}, ready
	}
	g.kept = append(g.kept, s)
	return device.Request{}, waiting
}

func (g *seats) pass(s *Step, lease *device.Lease) (leave func(), ok bool) {
	if g.free == 0 { // since the step was queued
		lease.Release()
		g.kept = append(g.kept, s)
		g.set(s, waiting)
		return nil, false
	}
	g.free--
	return g.give, true
}

func (g *seats) give() {
	g.free++
	kept := g.kept
	g.kept = nil
	for _, s := range kept {
		g.enqueue(s)
	}
}

// licensed is a task that takes a seat.
type licensed struct {
	name           string
	occupied, most *atomic.Int64
	fails          bool
}

func (l licensed) Describe(d *cache.Description) { d.Add("name", l.name) }

func (l licensed) Run(_ context.Context, env *Env) error {
	now := l.occupied.Add(1)
	defer l.occupied.Add(-1)
	for most := l.most.Load(); now > most && !l.most.CompareAndSwap(most, now); most = l.most.Load() {
	}
	time.Sleep(5 * time.Millisecond) // the others would start meanwhile
	if l.fails {
		return &Failure{Failure: failure.Failure{Class: failure.Permanent, Message: "no"}}
	}
	return os.WriteFile(filepath.Join(env.Out, "out"), nil, 0o644)
}

// A new scarce thing needs only a gate: here a licence with two seats, on a machine with room for all nodes.
func TestSomethingScarceIsAGate(t *testing.T) {
	dir := t.TempDir()
	store, err := disk.Open(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	journal, err := journal.Open(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := device.NewPool(device.Options{CPUs: 64})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(pool.Close(), journal.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	var occupied, most atomic.Int64
	var nodes []*Node
	for i := range 12 {
		task := licensed{fmt.Sprint(i), &occupied, &most, i%4 == 3}
		nodes = append(nodes, &Node{Address: "task." + task.name, Kind: "task", Task: task})
	}
	graph, err := NewGraph(nodes)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := NewPlan(t.Context(), graph, PlanOptions{Store: store, Journal: journal, Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(t.Context(), plan, ApplyOptions{
		Store: store, Journal: journal, Pool: pool, Scratch: store.Scratch, LogDir: filepath.Join(dir, "logs"),
	})
	r.gates = append(r.gates, &seats{run: r, free: 2})
	result, err := r.apply()
	if err != nil || result.Done != 9 || result.Failed != 3 {
		t.Errorf("%+v, %v", result, err)
	}
	if most.Load() != 2 {
		t.Errorf("%d nodes ran at once; the licence has 2 seats", most.Load())
	}
}
