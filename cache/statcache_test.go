package cache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func openStats(t testing.TB, path string) *StatCache {
	t.Helper()
	c := OpenStatCache(path)
	c.load()
	return c
}

// forge makes the cache believe that it hashed the present file, with a digest that no file has: a test that gets this
// digest knows that the file was not read.
func forge(t *testing.T, c *StatCache, file string) string {
	t.Helper()
	st, _, err := StampFile(nil, file)
	if err != nil {
		t.Fatal(err)
	}
	const sum = "remembered"
	c.remember(file, stat{Stamp: st, SHA256: sum}, time.Now().Add(time.Hour))
	return sum
}

func writeTestFile(t *testing.T, name, content string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
}

// later makes the cache see the files in an hour from now, when they are old enough.
func later(c *StatCache) *StatCache {
	c.clock = func() time.Time { return time.Now().Add(time.Hour) }
	return c
}

func TestAnUnchangedFileIsNotReadTwice(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	file, path := filepath.Join(dir, "file"), filepath.Join(dir, "state", "stats")
	want := writeTestFile(t, file, "contents")
	c := openStats(t, path)
	if h, err := c.Hash(ctx, file); h.SHA256 != want || h.Stamp.Size != 8 || err != nil {
		t.Fatalf("Hash = %+v, %v", h, err)
	}
	remembered := forge(t, c, file)
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*StatCache{"the same": later(c), "another process": later(openStats(t, path))} {
		if h, err := c.Hash(ctx, file); h.SHA256 != remembered || h.Stamp.Size != 8 || !h.Settled || err != nil {
			t.Errorf("%s: Hash = %+v, %v", name, h, err)
		}
	}
}

func TestAChangedFileIsReadAgain(t *testing.T) {
	ctx := context.Background()
	for name, change := range map[string]func(file string) error{
		"longer":      func(file string) error { return os.WriteFile(file, []byte("contents!"), 0o644) },
		"same length": func(file string) error { return os.WriteFile(file, []byte("CONTENTS"), 0o644) },
		"same length and time": func(file string) error {
			info, err := os.Stat(file)
			return errors.Join(err, os.WriteFile(file, []byte("CONTENTS"), 0o644),
				os.Chtimes(file, info.ModTime(), info.ModTime()))
		},
		"replaced": func(file string) error {
			info, err := os.Stat(file)
			return errors.Join(err, os.WriteFile(file+"2", []byte("CONTENTS"), 0o644),
				os.Chtimes(file+"2", info.ModTime(), info.ModTime()),
				os.Rename(file+"2", file))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "file")
			writeTestFile(t, file, "contents")
			c := openStats(t, filepath.Join(dir, "stats"))
			forge(t, later(c), file)
			time.Sleep(20 * time.Millisecond) // two ticks of the file system's clock
			if err := change(file); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if h, err := c.Hash(ctx, file); h.SHA256 != fmt.Sprintf("%x", sha256.Sum256(text)) ||
				h.Stamp.Size != int64(len(text)) || err != nil {
				t.Errorf("Hash = %+v, %v", h, err)
			}
		})
	}
}

// TestARacyFileIsNotRemembered writes a file again within one tick of the file system's clock: same size, same times.
func TestARacyFileIsNotRemembered(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	file := filepath.Join(dir, "file")
	c := openStats(t, filepath.Join(dir, "stats"))
	for i := range 60 {
		want := writeTestFile(t, file, fmt.Sprintf("%03d", i))
		if h, err := c.Hash(ctx, file); h.SHA256 != want || h.Settled || err != nil {
			t.Fatalf("write %d: the digest of older contents (%v)", i, err)
		}
	}
	if len(c.files) != 0 {
		t.Errorf("remembered: %v", c.files)
	}
	st, _, err := StampFile(nil, file)
	if err != nil {
		t.Fatal(err)
	}
	changed := time.Unix(0, max(st.Changed, st.Touched))
	for delay, want := range map[time.Duration]int{-time.Hour: 0, 0: 0, StampGrain: 0, StampGrain +
		time.Nanosecond: 1} {
		clear(c.files)
		c.remember(file, stat{Stamp: st}, changed.Add(delay))
		if len(c.files) != want {
			t.Errorf("hashed %v after the change: %d remembered, want %d", delay, len(c.files), want)
		}
	}
}

// TestAClockThatWasSetBack has digests of files from the future: they are computed again, and are not kept for ever.
func TestAClockThatWasSetBack(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("contents"), 0o644); err != nil {
		t.Fatal(err)
	}
	tomorrow := time.Now().Add(24 * time.Hour)
	if err := os.Chtimes(file, tomorrow, tomorrow); err != nil {
		t.Fatal(err)
	}
	c := openStats(t, filepath.Join(dir, "stats"))
	st, _, err := StampFile(nil, file)
	if err != nil {
		t.Fatal(err)
	}
	const sum = "of-what-it-held-when-the-clock-was-last-there"
	c.remember(file, stat{Stamp: st, SHA256: sum}, tomorrow.Add(time.Hour))
	if h, err := c.Hash(ctx, file); err != nil || h.SHA256 == sum {
		t.Errorf("Hash believes a digest from the future: %+v, %v", h, err)
	}
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	if used := c.files[file].Used; used > time.Now().Unix() {
		t.Errorf("it was last used in %s", time.Until(time.Unix(used, 0)))
	}
}

func TestHashRefuses(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	c := openStats(t, filepath.Join(dir, "stats"))
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, pipe, os.DevNull} {
		if _, err := c.Hash(ctx, name); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Hash(ctx, filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// TestAFileThatChangesWhileItIsRead has a growing file: a digest must be that of the bytes at one moment.
func TestAFileThatChangesWhileItIsRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "growing")
	writeTestFile(t, file, strings.Repeat("x", 1<<20))
	c := openStats(t, filepath.Join(dir, "stats"))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	defer func() { stop(); <-done }()
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(done)
		defer f.Close()
		for ctx.Err() == nil {
			if _, err := f.WriteString("x"); err != nil {
				return
			}
		}
	}()
	for range 200 {
		h, err := c.Hash(context.Background(), file)
		if err != nil {
			if !strings.Contains(err.Error(), "changed each of the 3 times") {
				t.Fatal(err)
			}
			return
		}
		if want := fmt.Sprintf("%x", sha256.Sum256(bytes.Repeat([]byte("x"), int(h.Stamp.Size)))); h.SHA256 != want {
			t.Fatalf("%d bytes have digest %s, want %s", h.Stamp.Size, h.SHA256, want)
		}
	}
	t.Error("that the file changes was never noticed")
}

func TestHashAll(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	c := openStats(t, filepath.Join(dir, "stats"))
	var names, sums []string
	for i := range 50 {
		name := filepath.Join(dir, fmt.Sprint(i))
		names, sums = append(names, name), append(sums, writeTestFile(t, name, strings.Repeat("x", i)))
	}
	if err := os.Chmod(names[3], 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := c.HashAll(ctx, names)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		if f.SHA256 != sums[i] || f.Stamp.Size != int64(i) || (f.Mode == 0o755) != (i == 3) {
			t.Errorf("%d: %+v", i, f)
		}
	}
	_, err = c.HashAll(ctx, []string{names[0], filepath.Join(dir, "a"), filepath.Join(dir, "b")})
	if err == nil || !strings.Contains(err.Error(), "/a") || !strings.Contains(err.Error(), "/b") {
		t.Errorf("two missing files: %v", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.HashAll(ctx, names); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestADamagedStatCacheIsEmpty(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	file, path := filepath.Join(dir, "file"), filepath.Join(dir, "stats")
	want := writeTestFile(t, file, "contents")
	c := openStats(t, path)
	forge(t, c, file)
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		harmed := [][]byte{whole[:i], bytes.Clone(whole)}
		harmed[1][i] ^= 4
		for _, text := range harmed {
			files, err := decodeStats(text)
			if err == nil {
				t.Fatalf("byte %d: %q was read as %v", i, text, files)
			}
		}
	}
	if err := os.WriteFile(path, whole[:len(whole)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	c = openStats(t, path)
	if !strings.Contains(c.Damage(), "read again") {
		t.Errorf("Damage = %q", c.Damage())
	}
	if h, err := c.Hash(ctx, file); h.SHA256 != want || h.Settled || err != nil {
		t.Errorf("Hash = %+v, %v", h, err)
	}
}

// TestAStatCacheThatIsNotOursIsEmpty puts another file, or the file of another user, into the cache's place.
func TestAStatCacheThatIsNotOursIsEmpty(t *testing.T) {
	for name, test := range map[string]struct {
		put  func(path string) error
		says string
	}{
		"pipe": {func(path string) error {
			return unix.Mkfifo(path, 0o644)
		}, "it is no regular file: move it away; all files are read again"},
		"directory": {func(path string) error {
			return os.Mkdir(path, 0o755)
		}, "move it away; all files are read again"},
		"link": {func(path string) error {
			return os.Symlink("/etc/passwd", path)
		}, "move it away; all files are read again"},
		"writable": {func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Chmod(path, 0o666))
		}, "others can write to it (mode 0666)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, path := filepath.Join(dir, "file"), filepath.Join(dir, "stats")
			want := writeTestFile(t, file, "contents")
			if err := test.put(path); err != nil {
				t.Fatal(err)
			}
			c := later(OpenStatCache(path))
			if h, err := c.Hash(context.Background(), file); err != nil || h.SHA256 != want {
				t.Errorf("Hash = %+v, %v", h, err)
			}
			if !strings.Contains(c.Damage(), test.says) {
				t.Errorf("Damage = %q", c.Damage())
			}
		})
	}
}

func TestUnusedDigestsGo(t *testing.T) {
	dir := t.TempDir()
	file, path := filepath.Join(dir, "file"), filepath.Join(dir, "stats")
	writeTestFile(t, file, "contents")
	c := openStats(t, path)
	forge(t, c, file)
	c.files["/gone"] = stat{SHA256: "x", Used: time.Now().Add(-2 * statLife).Unix()}
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	if c := openStats(t, path); len(c.files) != 1 {
		t.Errorf("saved: %v", c.files)
	}
}

// TestOddFilesAreRemembered has files as archives and rsync make them: times before 1970, names that are no text.
func TestOddFilesAreRemembered(t *testing.T) {
	want := map[string]stat{
		"/old": {Stamp: Stamp{Size: 1, Changed: -1, Touched: -1 << 63}, SHA256: "1", Used: 5},
		"/new": {Stamp: Stamp{Size: 1<<63 - 1, Changed: 1<<63 - 1, Device: 1<<64 - 1, Inode: 1<<64 - 1},
			SHA256: "2"},
		"/a b\n\"c\"\xff 1 2": {SHA256: "3"},
	}
	text, err := encodeStats(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeStats(text); err != nil || !maps.Equal(got, want) {
		t.Errorf("read back %v, %v, want %v", got, err, want)
	}
}

func FuzzStatCache(f *testing.F) {
	for _, files := range []map[string]stat{
		{},
		{"/a b\n\"c\"": {Stamp: Stamp{Size: 1, Changed: -1, Touched: 1 << 62, Device: 1 << 63, Inode: 7},
			SHA256: fmt.Sprintf("%064x", 1), Used: 5}},
	} {
		text, err := encodeStats(files)
		if err != nil {
			f.Fatal(err)
		}
		_, body, _ := bytes.Cut(text, []byte("\n"))
		f.Add(body)
	}
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, body []byte) {
		var files map[string]stat
		var err error
		fuzzing.Frugal(t, len(body), func() { files, err = decodeStats(seal(statMagic, body)) })
		if err != nil {
			return
		}
		text, err := encodeStats(files)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeStats(text)
		if err != nil || len(again) != len(files) {
			t.Fatalf("%v were written as %q and read as %v: %v", files, text, again, err)
		}
		for name, s := range files {
			if again[name] != s {
				t.Fatalf("%q: %+v was read as %+v", name, s, again[name])
			}
		}
	})
}

// BenchmarkStatCacheLoad reads the digests of 100,000 files.
func BenchmarkStatCacheLoad(b *testing.B) {
	files := map[string]stat{}
	for i := range 100_000 {
		name := fmt.Sprintf("/home/somebody/project/sources/package%d/module%d/file%d.py", i%97, i%1013, i)
		files[name] = stat{Stamp: Stamp{Size: int64(i), Changed: 1700000000000000000 + int64(i),
			Touched: 1700000000500000000 + int64(i),
			Device:  66305, Inode: uint64(1<<20 + i)}, SHA256: hex.EncodeToString(fmt.Appendf(nil, "%032d", i)),
			Used: 1700000000}
	}
	text, err := encodeStats(files)
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "stats")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c := OpenStatCache(path)
		if c.load(); c.Damage() != "" || len(c.files) != len(files) {
			b.Fatal(c.Damage(), len(c.files))
		}
	}
}
