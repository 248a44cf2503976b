package cache_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/cachetest"
)

// Whatever takes its place, a result that was superseded is found by the attempt that made it, whole, until it is collected.
func TestWhatIsSupersededStays(t *testing.T) {
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
		dir := cachetest.Prepare(t, d, map[string]string{"d/f": attempt})
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
		if text, err := os.ReadFile(filepath.Join(e.Dir, "link")); string(text) != attempt || e.Log != attempt || e.Address != meta.Address {
			t.Errorf("%s: %q, %v in %+v", attempt, text, err, e)
		}
	}
	result, err := d.GC(ctx, cache.GCOptions{Keep: func(k cache.Key) bool { return k == meta.Key }})
	if err != nil || len(result.Removed) != 2 || result.Kept != 1 {
		t.Errorf("%+v, %v", result, err)
	}
}

// What is damaged is no result, and makes way as well.
func TestWhatIsDamagedIsNotKept(t *testing.T) {
	d := openDisk(t, storeDir(t))
	ctx := context.Background()
	e := cachetest.Put(t, d, "a", map[string]string{"f": "1"})
	if err := errors.Join(os.Chmod(filepath.Join(e.Dir, "f"), 0o644), os.WriteFile(filepath.Join(e.Dir, "f"), []byte("2"), 0o644)); err != nil {
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
