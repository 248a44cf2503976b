package cache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// Whoever can write to a store can write a meta file whose checksum is right. An entry counts as whole only when all
// that it lists is there, and is what it lists.
func FuzzEntry(f *testing.F) {
	d, err := OpenDisk(filepath.Join(f.TempDir(), "store"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { d.Close() })
	key := Describe("a").Key()
	if err := os.MkdirAll(filepath.Join(d.entryDir(key), FilesDir, "d"), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.Symlink("../a", filepath.Join(d.entryDir(key), FilesDir, "d", "link")); err != nil {
		f.Fatal(err)
	}
	store, storeFile := fuzzing.Place(f, filepath.Join(d.entryDir(key), metaFile)),
		fuzzing.Place(f, filepath.Join(d.entryDir(key), FilesDir, "a"))
	files := func(content string) []File {
		return []File{{Path: "a", Mode: modePlain, Size: int64(len(content)),
			SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(content)))}, {Path: "d/link", Mode: modePlain, Link: "../a"}}
	}
	seed := func(content string, listed []File) {
		text, err := EncodeMeta(Meta{Key: key, Text: Describe("a").Text(), Address: "a", Created: time.Unix(1, 0).UTC(),
			Digest: digest(listed), Files: listed})
		if err != nil {
			f.Fatal(err)
		}
		_, body, _ := bytes.Cut(text, []byte("\n"))
		f.Add(body, []byte(content))
	}
	seed("text", files("text"))
	seed("tuxt", files("text"))
	seed("text", []File{{Path: strings.Repeat("x", 300), Mode: modePlain}})
	seed("text", []File{{Path: "a\x00", Mode: modePlain}})
	seed("text", []File{{Path: "d/link/x", Mode: modePlain}})
	seed("", append(files(""), File{Path: "d/x", Mode: modeExecutable}))
	seed("text", []File{{Path: "d", Mode: modePlain, Link: "/etc"}, {Path: "d/passwd", Mode: modePlain, Size: 4},
		{Path: "a/../b", Mode: modePlain}})
	f.Fuzz(func(t *testing.T, body, content []byte) {
		store(seal(metaMagic, body))
		storeFile(content)
		var entry Entry
		var err error
		fuzzing.Frugal(t, len(body)+len(content), func() {
			if entry, err = d.load(key); err == nil {
				err = check(context.Background(), entry)
			}
		})
		want := files(string(content))
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("not damage, but %v", err)
			}
			return
		}
		if entry.Key != key || difference(want, entry.Files) != "" || entry.Digest != digest(want) {
			t.Fatalf("%+v passes for an entry with %q", entry, content)
		}
	})
}
