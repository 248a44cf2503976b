//go:build linux

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// sharing returns several worlds with one store.
func sharing(t *testing.T, n int) []*world {
	worlds := make([]*world, n)
	for i := range worlds {
		worlds[i] = newWorld(t)
		if i == 0 {
			continue
		}
		if err := worlds[i].disk.Close(); err != nil {
			t.Fatal(err)
		}
		disk, err := disk.Open(filepath.Join(worlds[0].dir, "store"))
		if err != nil {
			t.Fatal(err)
		}
		worlds[i].disk, worlds[i].store = disk, disk
	}
	return worlds
}

// Applies that use one store at the same time make each result once.
func TestAppliesThatShareAStoreMakeEachKeyOnce(t *testing.T) {
	const most = 12
	worlds := sharing(t, 3)
	made := make([]atomic.Int64, most)
	var all sync.WaitGroup
	for _, w := range worlds {
		w.applies.Parallelism = 2
		var nodes []node
		for i := range most {
			n := node{at: fmt.Sprintf("a.n%d", i), says: fmt.Sprint(i), do: func(context.Context, *engine.Env) error {
				made[i].Add(1)
				time.Sleep(5 * time.Millisecond)
				return nil
			}}
			if i >= 4 {
				n.needs = []string{fmt.Sprintf("a.n%d", i-4)}
			}
			nodes = append(nodes, n)
		}
		p := w.plan(nodes...) // before anybody applies: each wants to make all
		all.Go(func() {
			r, err := w.applyPlan(t.Context(), p)
			if err != nil || r.Done+r.Cached != most {
				t.Errorf("%+v: %v", r, err)
			}
		})
	}
	all.Wait()
	for i := range made {
		if n := made[i].Load(); n != 1 {
			t.Errorf("node %d was made %d times", i, n)
		}
	}
}

// An apply that waits for a result makes the result itself when the other apply fails.
func TestAClaimEndsWithItsAttempt(t *testing.T) {
	worlds := sharing(t, 2)
	begun := make(chan bool)
	p := worlds[1].plan(node{at: "a.n", says: "1"})
	var both sync.WaitGroup
	both.Go(func() {
		r := worlds[0].apply(node{at: "a.n", says: "1", do: func(context.Context, *engine.Env) error {
			close(begun)
			time.Sleep(50 * time.Millisecond)
			return &engine.Failure{Failure: failure.Failure{Class: failure.Permanent, Message: "no"},
				Err: errors.New("no")}
		}})
		if r.Failed != 1 {
			t.Errorf("%+v", r)
		}
	})
	both.Go(func() {
		<-begun
		r, err := worlds[1].applyPlan(t.Context(), p)
		if err != nil || r.Done != 1 {
			t.Errorf("%+v: %v", r, err)
		}
		if e := worlds[1].event(engine.Note, "a.n"); e.Reason != "waiting: another apply makes it" {
			t.Error(e)
		}
	})
	both.Wait()
}
