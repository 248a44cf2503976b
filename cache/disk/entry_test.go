package disk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// Anybody who can write to a store can write a meta file with a right checksum. An entry is whole only if each file
// that the meta file lists exists, with the listed contents.
func FuzzEntry(f *testing.F) {
	d, err := Open(filepath.Join(f.TempDir(), "store"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { d.Close() })
	key := cache.Describe("a").Key()
	if err := os.MkdirAll(filepath.Join(d.entryDir(key), cache.FilesDir, "d"), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.Symlink("../a", filepath.Join(d.entryDir(key), cache.FilesDir, "d", "link")); err != nil {
		f.Fatal(err)
	}
	store, storeFile := fuzzing.Place(f, filepath.Join(d.entryDir(key), cache.MetaFile)),
		fuzzing.Place(f, filepath.Join(d.entryDir(key), cache.FilesDir, "a"))
	files := func(content string) []cache.File {
		return []cache.File{{Path: "a", Mode: cache.ModePlain, Size: int64(len(content)),
			SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(content)))},
			{Path: "d/link", Mode: cache.ModePlain, Link: "../a"}}
	}
	seed := func(content string, listed []cache.File) {
		text, err := cache.EncodeMeta(cache.Meta{Key: key, Text: cache.Describe("a").Text(), Address: "a",
			Created: time.Unix(1, 0).UTC(),
			Digest:  cache.Digest(listed), Files: listed})
		if err != nil {
			f.Fatal(err)
		}
		_, body, _ := bytes.Cut(text, []byte("\n"))
		f.Add(body, []byte(content))
	}
	seed("text", files("text"))
	seed("tuxt", files("text"))
	seed("text", []cache.File{{Path: strings.Repeat("x", 300), Mode: cache.ModePlain}})
	seed("text", []cache.File{{Path: "a\x00", Mode: cache.ModePlain}})
	seed("text", []cache.File{{Path: "d/link/x", Mode: cache.ModePlain}})
	seed("", append(files(""), cache.File{Path: "d/x", Mode: cache.ModeExecutable}))
	seed("text", []cache.File{{Path: "d", Mode: cache.ModePlain, Link: "/etc"},
		{Path: "d/passwd", Mode: cache.ModePlain, Size: 4},
		{Path: "a/../b", Mode: cache.ModePlain}})
	f.Fuzz(func(t *testing.T, body, content []byte) {
		sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
		store(append(fmt.Appendf(nil, "benchgraph entry 3 %08x\n", sum), body...))
		storeFile(content)
		var entry cache.Entry
		var err error
		fuzzing.Frugal(t, len(body)+len(content), func() {
			if entry, err = d.load(key); err == nil {
				err = check(context.Background(), entry)
			}
		})
		want := files(string(content))
		if err != nil {
			if !errors.Is(err, cache.ErrDamaged) {
				t.Fatalf("not damage, but %v", err)
			}
			return
		}
		if entry.Key != key || cache.Difference(want, entry.Files) != "" || entry.Digest != cache.Digest(want) {
			t.Fatalf("%+v passes for an entry with %q", entry, content)
		}
	})
}
