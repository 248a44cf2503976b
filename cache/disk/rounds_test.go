package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk/rounds"
)

// slow gives a store the rounds of a disk that takes a second for each sync, and counts these.
func slow(t *testing.T, d *Disk) (count *int) {
	count = new(int)
	d.rounds = rounds.New(d.entries, 0, func(*os.File) error {
		time.Sleep(time.Second)
		*count++
		return nil
	})
	t.Cleanup(func() { d.rounds = nil })
	return count
}

func newDisk(t *testing.T) *Disk {
	d, err := Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// makeDraft makes a result with one file.
func makeDraft(t *testing.T, d *Disk, name string) cache.Draft {
	dir, err := d.Scratch()
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, cache.FilesDir), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, cache.FilesDir, "f"), []byte(name), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	text := cache.Describe("test")
	text.Add("name", name)
	return cache.Draft{Dir: dir, Meta: cache.Meta{Key: text.Key(), Text: text.Text(), Content: text.Key()}}
}

// Others see a result after the first sync that began when the result was whole; Put returns after the next sync.
func TestPutIsVisibleAfterOneSyncAndOverAfterTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		count := slow(t, d)
		draft := makeDraft(t, d, "a")
		begin := time.Now()
		var waited time.Duration
		draft.Waits = func() { waited = time.Since(begin) }
		visible := func() bool {
			_, err := d.Get(t.Context(), draft.Key, true)
			if err != nil && !errors.Is(err, cache.ErrMiss) {
				t.Error(err)
			}
			return err == nil
		}
		var looks sync.WaitGroup
		looks.Go(func() {
			time.Sleep(900 * time.Millisecond)
			if visible() {
				t.Error("the entry was visible before its files were durable")
			}
			time.Sleep(200 * time.Millisecond)
			if !visible() {
				t.Error("the entry is not visible after its files are durable")
			}
		})
		if _, err := d.Put(t.Context(), draft); err != nil {
			t.Fatal(err)
		}
		looks.Wait()
		if took := time.Since(begin); took != 2*time.Second || waited != 0 || *count != 2 {
			t.Errorf("%d syncs took %s, announced after %s", *count, took, waited)
		}
	})
}

// A caller that comes while a sync is under way shares the next one: the present sync may have passed over its files
// already.
func TestPutsShareTheirSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		count := slow(t, d)
		begin := time.Now()
		var all sync.WaitGroup
		put := func(name string) {
			draft := makeDraft(t, d, name)
			all.Go(func() {
				if _, err := d.Put(t.Context(), draft); err != nil {
					t.Error(err)
				}
			})
		}
		put("first")
		time.Sleep(500 * time.Millisecond)
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			put(name)
		}
		all.Wait()
		// The first two rounds make the files durable, and the next two the directories with their names.
		if took := time.Since(begin); *count != 4 || took != 4*time.Second {
			t.Errorf("nine results took %d syncs and %s", *count, took)
		}
	})
}

// Results that come one after the other share their syncs, too, as long as more are on their way; the last one need not
// wait.
func TestPutsGatherWhileMoreAreExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		count := 0
		d.rounds = rounds.New(d.entries, 0, func(*os.File) error { count++; return nil })
		defer func() { d.rounds = nil }()
		put := func(name string) {
			if _, err := d.Put(t.Context(), makeDraft(t, d, name)); err != nil {
				t.Error(err)
			}
		}
		begin := time.Now()
		put("alone")
		if took := time.Since(begin); took != 0 || count != 2 {
			t.Errorf("one that nobody follows took %d syncs and %s", count, took)
		}
		d.Expect(true)
		count = 0
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() { put(strconv.Itoa(i)) })
			time.Sleep(rounds.Gather / 10)
		}
		all.Wait()
		if took := time.Since(begin); count != 2 || took != 2*rounds.Gather {
			t.Errorf("ten results took %d syncs and %s", count, took)
		}
		begin = time.Now()
		time.AfterFunc(rounds.Gather/2, func() { d.Expect(false) })
		put("last")
		if took := time.Since(begin); took != rounds.Gather/2 {
			t.Errorf("the last one took %s", took)
		}
	})
}

func TestPutFailsWithItsSync(t *testing.T) {
	d := newDisk(t)
	broken := errors.New("input/output error")
	d.rounds = rounds.New(d.entries, 0, func(*os.File) error { return broken })
	defer func() { d.rounds = nil }()
	draft := makeDraft(t, d, "a")
	if _, err := d.Put(t.Context(), draft); !errors.Is(err, broken) {
		t.Errorf("Put: %v", err)
	}
	if _, err := d.Get(t.Context(), draft.Key, false); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("Get: %v, want a miss", err)
	}
}

// If the file system cannot be synced as a whole, results are stored nevertheless.
func TestPutSyncsFileByFile(t *testing.T) {
	d := newDisk(t)
	d.rounds = nil
	draft := makeDraft(t, d, "a")
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	log.Close() // so that its sync fails
	draft.Log = log
	if _, err := d.Put(t.Context(), draft); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the log was not synced: %v", err)
	}
	draft = makeDraft(t, d, "b")
	if _, err := d.Put(t.Context(), draft); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Find(t.Context(), draft.Content); err != nil {
		t.Error(err)
	}
}

// A log on another file system than the store's is synced by itself.
func TestPutSyncsALogElsewhere(t *testing.T) {
	d := newDisk(t)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	if d.rounds == nil || !d.rounds.Covers(log) {
		t.Skip("the store does not lie on a file system that is synced as a whole")
	}
	d.rounds.Device++
	log.Close()
	draft := makeDraft(t, d, "a")
	draft.Log = log
	if _, err := d.Put(t.Context(), draft); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the log was not synced: %v", err)
	}
}
