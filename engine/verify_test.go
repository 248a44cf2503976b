package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

// diary is a store and a pool that note when bytes are checked, and devices are granted and given back.
type diary struct {
	*disk.Disk
	device.Pool
	mu    sync.Mutex
	notes []string
}

func (d *diary) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, what)
}

func (d *diary) GetSealed(ctx context.Context, key cache.Key) (cache.Entry, disk.Seal, error) {
	d.note("checked")
	return d.Disk.GetSealed(ctx, key)
}

func (d *diary) TryAcquire(q device.Request) (*device.Lease, *device.Refusal) {
	l, why := d.Pool.TryAcquire(q)
	if l != nil && len(l.GPUs) > 0 {
		d.note("granted")
	}
	return l, why
}

func poolOfOneGPU(t *testing.T) *device.LocalPool {
	pool, err := device.NewPool(device.Options{CPUs: 4, GPUs: gpu.These(gputest.Devices(1, "NVIDIA H100", 80<<30))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// A model is read once, before the first of three nodes that use it gets a device, and not again while they hold one.
func TestLargeInputsAreCheckedBeforeDevicesAreGranted(t *testing.T) {
	w := newWorld(t)
	pool := poolOfOneGPU(t)
	d := &diary{Disk: w.disk, Pool: pool}
	w.store, w.pool = d, d
	story := []node{{at: "a.model", says: "model", do: func(_ context.Context, env *engine.Env) error {
		return os.WriteFile(filepath.Join(env.Out, "weights"), make([]byte, 65<<20), 0o644)
	}}}
	for _, at := range []string{"b.one", "b.two", "b.three"} {
		story = append(story, node{at: at, says: at, needs: []string{"a.model"},
			asks: device.Request{GPUs: device.GPUs{Count: 1}}, do: func(context.Context, *engine.Env) error {
				d.note("ran")
				return nil
			}})
	}
	if r := w.apply(story...); r.Done != 4 {
		t.Errorf("%+v", r)
	}
	first := slices.Index(d.notes, "granted")
	if want := []string{"granted", "ran", "granted", "ran", "granted", "ran"}; first < 1 ||
		!slices.Equal(d.notes[first:], want) {
		t.Errorf("%q", d.notes)
	}
	told := slices.IndexFunc(w.events, func(e engine.Event) bool {
		return e.Reason == engine.Waiting+"the check of a.model (65MiB)"
	})
	if last := w.event(engine.Note, ""); told < 0 || last.Reason != engine.Waiting+"its turn" {
		t.Errorf("told: %d, %q", told, last.Reason)
	}

	// A small input is not worth a place in the queue: the node checks it.
	d.notes = nil
	small := []node{
		{at: "a.file", says: "file"},
		{at: "b.one", says: "one of file", needs: []string{"a.file"},
			asks: device.Request{GPUs: device.GPUs{Count: 1}}},
	}
	if r := w.apply(small...); r.Done != 2 {
		t.Errorf("%+v", r)
	}
	if i := slices.Index(d.notes, "granted"); i < 0 || !slices.Contains(d.notes[i:], "checked") {
		t.Errorf("%q", d.notes)
	}
}

// Files outside of the store are checked once, too, while nodes that do not need them run. A check holds neither
// devices nor cores. A node that asks for one core, as a check does, waits for the check as well.
func TestChecksEndBeforeResourcesAreGranted(t *testing.T) {
	needtest.NoRace(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store, w.pool = newMemory(w), poolOfOneGPU(t)
		begin := time.Now()
		var checked, held int
		check := engine.Check{Name: "mount.model", Run: func(context.Context) {
			checked++
			time.Sleep(time.Minute)
		}}
		story := []node{{at: "a.other", says: "other", asks: device.Request{CPUs: 3, GPUs: device.GPUs{Count: 1}},
			do: func(context.Context, *engine.Env) error {
				held += int(time.Since(begin).Seconds())
				time.Sleep(30 * time.Second)
				return nil
			}}}
		for at, asks := range map[string]device.Request{
			"b.device": {GPUs: device.GPUs{Count: 1}}, "b.cores": {CPUs: 4}, "b.core": {CPUs: 1},
			"b.quiet": {Quiet: true},
		} {
			story = append(story, node{at: at, says: at, asks: asks, checks: []engine.Check{check},
				do: func(context.Context, *engine.Env) error {
					if since := time.Since(begin); since < time.Minute {
						t.Errorf("%s was started after %s", at, since)
					}
					return nil
				}})
		}
		if r := w.apply(story...); r.Done != len(story) || checked != 1 || held > 0 {
			t.Errorf("%+v, %d checks, the node without one began after %d s", r, checked, held)
		}
		if took := time.Since(begin); took > 65*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// Nobody waits for a check when nothing more is to be started.
func TestACheckEndsWithTheApply(t *testing.T) {
	w := newWorld(t)
	pool := poolOfOneGPU(t)
	stopped := &stoppedStore{Disk: w.disk, begun: make(chan struct{})}
	w.store, w.pool = stopped, pool
	w.applies.FailFast = true
	r := w.apply(
		node{at: "a.model", says: "model", do: func(_ context.Context, env *engine.Env) error {
			return os.WriteFile(filepath.Join(env.Out, "weights"), make([]byte, 65<<20), 0o644)
		}},
		node{at: "b.gpu", says: "gpu", needs: []string{"a.model"}, asks: device.Request{GPUs: device.GPUs{Count: 1}}},
		node{at: "c.fails", says: "fails", do: func(ctx context.Context, _ *engine.Env) error {
			<-stopped.begun
			return errors.New("no")
		}})
	if r.Failed != 1 || r.Done != 1 {
		t.Errorf("%+v", r)
	}
}

// stoppedStore checks bytes until it is told to stop.
type stoppedStore struct {
	*disk.Disk
	once  sync.Once
	begun chan struct{}
}

func (s *stoppedStore) GetSealed(ctx context.Context, key cache.Key) (cache.Entry, disk.Seal, error) {
	s.once.Do(func() { close(s.begun) })
	<-ctx.Done()
	return cache.Entry{}, disk.Seal{}, context.Cause(ctx)
}
