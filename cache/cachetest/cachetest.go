// Package cachetest is the suite that every cache.Store must pass.
package cachetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/cache"
)

// Store is a cache.Store that makes the directories in which results are prepared.
type Store interface {
	cache.Store
	Scratch() (string, error)
}

// Hooks are actions of a suite beyond the interface.
type Hooks struct {
	// Again opens the same store a second time, as another process would; nil: it cannot be shared.
	Again func(t *testing.T, first Store) Store
}

// Run runs the suite. open makes a new, empty store for each story.
func Run(t *testing.T, open func(t *testing.T) Store, hooks ...Hooks) {
	var h Hooks
	for _, hook := range hooks {
		h = hook
	}
	t.Run("what was put is got", func(t *testing.T) { roundTrip(t, open(t)) })
	t.Run("a key never stored is a miss", func(t *testing.T) { misses(t, open(t)) })
	t.Run("the first of two entries wins", func(t *testing.T) { firstWins(t, open(t)) })
	t.Run("an entry is found by its content", func(t *testing.T) { contents(t, open(t)) })
	t.Run("equal results have equal digests", func(t *testing.T) { digests(t, open(t)) })
	t.Run("a damaged entry is a miss that says why", func(t *testing.T) { damages(t, open) })
	t.Run("what cannot be kept is refused", func(t *testing.T) { refusals(t, open(t)) })
	t.Run("an entry cannot be written to", func(t *testing.T) { readOnly(t, open(t)) })
	t.Run("many at once", func(t *testing.T) { many(t, open(t), h) })
	t.Run("a cancelled context ends it", func(t *testing.T) { cancelled(t, open(t)) })
}

// Meta is the Meta of a made-up node; equal names have equal keys.
func Meta(name string) cache.Meta {
	d := cache.Describe("test")
	d.Add("name", name)
	return cache.Meta{Key: d.Key(), Text: d.Text(), Address: `test.made["` + name + `"]`, Duration: time.Second,
		Log: "log-" + name, Transcript: `{"steps":[{"argv":["` + name + `"]}]}`}
}

// Prepare makes a scratch directory with files to put: path → contents. A path that ends in / is a directory, a path
// that ends in * an executable file (without the *). Contents that begin with -> are the target of a link.
func Prepare(t testing.TB, s Store, files map[string]string) string {
	t.Helper()
	dir, err := s.Scratch()
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, cache.FilesDir), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(dir, cache.FilesDir, filepath.FromSlash(strings.TrimSuffix(name, "*")))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		link, isLink := strings.CutPrefix(content, "->")
		switch {
		case err != nil:
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		case isLink:
			err = os.Symlink(link, path)
		case strings.HasSuffix(name, "*"):
			err = os.WriteFile(path, []byte(content), 0o755)
		default:
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Put stores files as the result of a made-up node.
func Put(t testing.TB, s Store, name string, files map[string]string) cache.Entry {
	t.Helper()
	entry, err := s.Put(context.Background(), cache.Draft{Dir: Prepare(t, s, files), Meta: Meta(name)})
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

func roundTrip(t *testing.T, s Store) {
	ctx := context.Background()
	put := Put(t, s, "a", map[string]string{
		"wheel.whl": "bytes", "bin/tool*": "#!/bin/sh\n", "bin/alias": "->tool", "empty": "", "none/": "",
		"odd \"name\"\n\xff": "x", "dangling": "->nowhere", "up/and/down": "->../../wheel.whl",
	})
	if want := int64(len("bytes") + len("#!/bin/sh\n") + 1); put.Bytes != want {
		t.Errorf("Bytes = %d, want %d", put.Bytes, want)
	}
	for _, verify := range []bool{false, true} {
		got, err := s.Get(ctx, put.Key, verify)
		if err != nil {
			t.Fatalf("Get(verify=%t): %v", verify, err)
		}
		if got.Digest != put.Digest || got.Text != put.Text || got.Address != put.Address || got.Log != put.Log ||
			got.Transcript != put.Transcript || put.Transcript == "" ||
			got.Duration != put.Duration || !got.Created.Equal(put.Created) || got.Bytes != put.Bytes {
			t.Errorf("Get(verify=%t) = %+v, want %+v", verify, got, put)
		}
		if !slices.Equal(got.Files, put.Files) {
			t.Errorf("Files = %+v, want %+v", got.Files, put.Files)
		}
		for _, file := range got.Files {
			info, err := os.Lstat(filepath.Join(got.Dir, file.Path))
			if err != nil {
				t.Error(err)
				continue
			}
			if file.Link == "" && (info.Size() != file.Size || (info.Mode()&0o111 != 0) != (file.Mode == 0o755)) {
				t.Errorf("%s is %v, recorded as %+v", file.Path, info.Mode(), file)
			}
		}
		if text, err := os.ReadFile(filepath.Join(got.Dir, "up/and/down")); err != nil || string(text) != "bytes" {
			t.Errorf("through a link: %q, %v", text, err)
		}
	}
}

func misses(t *testing.T, s Store) {
	ctx := context.Background()
	for _, verify := range []bool{false, true} {
		if _, err := s.Get(ctx, Meta("x").Key, verify); !errors.Is(err, cache.ErrMiss) {
			t.Errorf("Get: %v, want a miss", err)
		}
	}
	for _, content := range []cache.Key{Meta("x").Key, {}} {
		if _, err := s.Find(ctx, content); !errors.Is(err, cache.ErrMiss) {
			t.Errorf("Find: %v, want a miss", err)
		}
	}
	if _, err := s.Put(ctx, cache.Draft{Dir: Prepare(t, s, nil), Meta: cache.Meta{}}); err == nil {
		t.Error("an entry without a key was stored")
	}
}

func firstWins(t *testing.T, s Store) {
	first := Put(t, s, "a", map[string]string{"f": "first"})
	second := Put(t, s, "a", map[string]string{"f": "second"})
	if second.Digest != first.Digest || second.Dir != first.Dir {
		t.Errorf("the second Put returned %+v, want %+v", second, first)
	}
	if text, _ := os.ReadFile(filepath.Join(second.Dir, "f")); string(text) != "first" {
		t.Errorf("the entry holds %q", text)
	}
}

func contents(t *testing.T, s Store) {
	ctx := context.Background()
	meta := Meta("a")
	meta.Content = Meta("content of a").Key
	put, err := s.Put(ctx, cache.Draft{Dir: Prepare(t, s, map[string]string{"f": "1"}), Meta: meta})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Find(ctx, meta.Content)
	if err != nil || got.Key != put.Key || got.Digest != put.Digest {
		t.Errorf("Find = %v, %v", got.Key, err)
	}
	again := Meta("b")
	again.Content = meta.Content
	if _, err := s.Put(ctx, cache.Draft{Dir: Prepare(t, s, map[string]string{"f": "1"}), Meta: again}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Find(ctx, meta.Content); err != nil || got.Digest != put.Digest {
		t.Errorf("Find = %v, %v", got.Key, err)
	}
}

func digests(t *testing.T, s Store) {
	base := map[string]string{"a": "1", "b*": "2", "c": "->a"}
	want := Put(t, s, "base", base).Digest
	if got := Put(t, s, "same", base).Digest; got != want {
		t.Errorf("the same files have digests %s and %s", want, got)
	}
	seen := map[string]string{want: "base"}
	for name, files := range map[string]map[string]string{
		"other bytes": {"a": "3", "b*": "2", "c": "->a"},
		"other mode":  {"a*": "1", "b*": "2", "c": "->a"},
		"other name":  {"A": "1", "b*": "2", "c": "->a"},
		"other link":  {"a": "1", "b*": "2", "c": "->b"},
		"no link":     {"a": "1", "b*": "2", "c": "1"},
		"one more":    {"a": "1", "b*": "2", "c": "->a", "d": ""},
		"none":        {},
	} {
		got := Put(t, s, name, files).Digest
		if other, dup := seen[got]; dup {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[got] = name
	}
}

func damages(t *testing.T, open func(t *testing.T) Store) {
	for _, story := range []struct {
		name     string
		harm     func(dir string) error
		needsAll bool // the damage shows only when every byte is read
		says     string
	}{
		{"cut short", func(dir string) error { return os.Truncate(filepath.Join(dir, "sub/f"), 3) }, false, "sub/f"},
		{"missing", func(dir string) error { return os.Remove(filepath.Join(dir, "sub/f")) }, false, "sub/f"},
		{"all missing", os.RemoveAll, false, "missing"},
		{"replaced by a link", func(dir string) error {
			name := filepath.Join(dir, "sub/f")
			return errors.Join(os.Remove(name), os.Symlink("../g", name))
		}, false, "sub/f"},
		{"one bit", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "sub/f"), []byte("contentt"), 0o644)
		}, true, "sub/f"},
		{"added", func(dir string) error { return os.WriteFile(filepath.Join(dir, "more"), nil, 0o644) }, true, "more"},
		{"executable", func(dir string) error { return os.Chmod(filepath.Join(dir, "g"), 0o755) }, true, "g"},
	} {
		t.Run(story.name, func(t *testing.T) {
			s, ctx := open(t), context.Background()
			files := map[string]string{"sub/f": "contents", "g": "1"}
			entry := Put(t, s, "a", files)
			thaw(t, entry.Dir)
			if err := story.harm(entry.Dir); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Get(ctx, entry.Key, false); story.needsAll == (err != nil) {
				t.Errorf("Get without verify: %v", err)
			}
			if story.needsAll {
				_, err := s.Get(ctx, entry.Key, true)
				if !errors.Is(err, cache.ErrMiss) || !strings.Contains(err.Error(), story.says) {
					t.Errorf("Get: %v, want a miss that names %s", err, story.says)
				}
			}
			if _, err := s.Get(ctx, entry.Key, false); !errors.Is(err, cache.ErrMiss) {
				t.Errorf("a damaged entry was served again: %v", err)
			}
			Put(t, s, "a", files)
			if _, err := s.Get(ctx, entry.Key, true); err != nil {
				t.Errorf("stored anew: %v", err)
			}
		})
	}
}

// thaw makes an entry writable; in a store, only damage does that.
func thaw(t *testing.T, dir string) {
	t.Helper()
	for _, d := range []string{filepath.Dir(dir), dir, filepath.Join(dir, "sub")} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"sub/f", "g"} {
		if err := os.Chmod(filepath.Join(dir, f), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func refusals(t *testing.T, s Store) {
	ctx := context.Background()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string]map[string]string{
		"absolute link":             {"l": "->" + outside},
		"link that leads out":       {"a/l": "->../../x"},
		"link out through a link":   {"self": "->.", "l": "->self/.."},
		"links that go in a circle": {"a": "->b", "b": "->a"},
	} {
		if _, err := s.Put(ctx, cache.Draft{Dir: Prepare(t, s, files), Meta: Meta(name)}); err == nil ||
			errors.Is(err, cache.ErrMiss) {
			t.Errorf("%s: %v, want an error", name, err)
		}
		if _, err := s.Get(ctx, Meta(name).Key, false); !errors.Is(err, cache.ErrMiss) {
			t.Errorf("%s: was stored all the same: %v", name, err)
		}
	}
	dir := Prepare(t, s, map[string]string{"f": "1"})
	if err := os.Link(outside, filepath.Join(dir, cache.FilesDir, "hard")); err != nil {
		t.Skip(err)
	}
	if _, err := s.Put(ctx, cache.Draft{Dir: dir, Meta: Meta("hard link")}); err == nil ||
		!strings.Contains(err.Error(), "hard link") {
		t.Errorf("hard link: %v, want an error", err)
	}
	if _, err := s.Put(ctx, cache.Draft{Dir: t.TempDir(), Meta: Meta("elsewhere")}); err == nil {
		t.Error("a directory that is not the store's was taken")
	}
}

func readOnly(t *testing.T, s Store) {
	entry := Put(t, s, "a", map[string]string{"sub/f": "1", "x*": "2"})
	for _, name := range []string{"", "sub", "sub/f", "x"} {
		info, err := os.Stat(filepath.Join(entry.Dir, name))
		if err != nil || info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%q: %v, %v", name, info.Mode(), err)
		}
	}
}

// many makes several goroutines store and read the same few keys, through several handles.
func many(t *testing.T, s Store, h Hooks) {
	ctx := context.Background()
	handles := []Store{s}
	if h.Again != nil {
		handles = append(handles, h.Again(t, s), h.Again(t, s))
	}
	digests := make([]string, 24)
	var wg sync.WaitGroup
	for i := range digests {
		handle, name := handles[i%len(handles)], fmt.Sprint("key ", i%4)
		dir := Prepare(t, handle, map[string]string{"who": fmt.Sprint(i), "also": "same"})
		wg.Go(func() {
			entry, err := handle.Put(ctx, cache.Draft{Dir: dir, Meta: Meta(name)})
			if err != nil {
				t.Errorf("Put %s: %v", name, err)
				return
			}
			digests[i] = entry.Digest
			if _, err := handle.Get(ctx, entry.Key, true); err != nil {
				t.Errorf("Get %s: %v", name, err)
			}
		})
	}
	wg.Wait()
	for i := range digests {
		if digests[i] != digests[i%4] {
			t.Errorf("key %d has two results", i%4)
		}
	}
}

func cancelled(t *testing.T, s Store) {
	dir := Prepare(t, s, map[string]string{"f": "1"})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Put(ctx, cache.Draft{Dir: dir, Meta: Meta("a")}); !errors.Is(err, context.Canceled) {
		t.Errorf("Put: %v", err)
	}
	if _, err := s.Get(ctx, Meta("a").Key, true); !errors.Is(err, context.Canceled) {
		t.Errorf("Get: %v", err)
	}
	if _, err := s.Get(context.Background(), Meta("a").Key, true); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("Get: %v", err)
	}
}
