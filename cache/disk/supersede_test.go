package disk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/cachetest"
	"github.com/benchgraph/benchgraph/cache/disk"
)

// A superseded result is found by the attempt that made it, whole, until a garbage collection, whatever takes its
// place.
func TestASupersededResultStays(t *testing.T) {
	d := openDisk(t, storeDir(t))
	ctx := context.Background()
	meta := cachetest.Meta("a")
	for _, attempt := range []string{"first", "second", "third"} {
		if err := d.Supersede(ctx, meta.Key); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Get(ctx, meta.Key, false); !errors.Is(err, cache.ErrMiss) {
			t.Fatalf("before %s: %v", attempt, err)
		}
		meta.Log = attempt
		dir := cachetest.Prepare(t, d, map[string]string{"d/f": attempt, "d/not UTF-8 \xff": ""})
		if err := os.Symlink("d/f", filepath.Join(dir, cache.FilesDir, "link")); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Put(ctx, cache.Draft{Meta: meta, Dir: dir}); err != nil {
			t.Fatal(err)
		}
	}
	now, err := d.Get(ctx, meta.Key, true)
	if err != nil || now.Log != "third" {
		t.Fatalf("%+v, %v", now, err)
	}
	for _, attempt := range []string{"first", "second"} {
		e, err := d.Get(ctx, cache.Superseded(meta.Key, attempt), true)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(e.Dir, "link")); string(text) != attempt || e.Log != attempt ||
			e.Address != meta.Address {
			t.Errorf("%s: %q, %v in %+v", attempt, text, err, e)
		}
	}
	result, err := d.GC(ctx, cache.GCOptions{Keep: func(k cache.Key) bool { return k == meta.Key }})
	if err != nil || len(result.Removed) != 2 || result.Kept != 1 {
		t.Errorf("%+v, %v", result, err)
	}
}

// A damaged entry is no result, and makes room as well.
func TestADamagedResultIsNotKept(t *testing.T) {
	d := openDisk(t, storeDir(t))
	ctx := context.Background()
	e := cachetest.Put(t, d, "a", map[string]string{"f": "1"})
	if err := errors.Join(os.Chmod(filepath.Join(e.Dir, "f"), 0o644),
		os.WriteFile(filepath.Join(e.Dir, "f"), []byte("2"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := d.Supersede(ctx, e.Key); err != nil {
		t.Fatal(err)
	}
	for _, key := range []cache.Key{e.Key, cache.Superseded(e.Key, e.Log)} {
		if _, err := d.Get(ctx, key, false); !errors.Is(err, cache.ErrMiss) {
			t.Errorf("%v", err)
		}
	}
}

// Two processes replace one result at the same time, as if projects shared a store. Neither fails because the entry
// that it copies has gone.
func TestTwoMakeWayAtTheSameTime(t *testing.T) {
	dir := storeDir(t)
	disks := []*disk.Disk{openDisk(t, dir), openDisk(t, dir)}
	files := map[string]string{}
	for i := range 50 {
		files[fmt.Sprintf("d%d/f", i)] = "x"
	}
	meta := cachetest.Meta("a")
	for round := range 40 {
		meta.Log = fmt.Sprint(round)
		if _, err := disks[0].Put(t.Context(), cache.Draft{Meta: meta,
			Dir: cachetest.Prepare(t, disks[0], files)}); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		for i, d := range disks {
			both.Go(func() {
				time.Sleep(time.Duration(i*round) * 200 * time.Microsecond) // the other one is at another step
				if err := d.Supersede(t.Context(), meta.Key); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		both.Wait()
		if _, err := disks[0].Get(t.Context(), cache.Superseded(meta.Key, meta.Log), true); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
}
