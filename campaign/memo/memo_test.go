package memo

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func drawThing(t *rapid.T) thing {
	return thing{
		Path: rapid.String().Draw(t, "path"),
		Is:   rapid.SampledFrom([]kind{file, regularFile, nothing, directory}).Draw(t, "is"),
		Exec: rapid.Bool().Draw(t, "exec"), SHA256: rapid.StringMatching(`([0-9a-f]{64})?`).Draw(t, "sha256"),
		Stamp: cache.Stamp{
			Size: rapid.Int64().Draw(t, "size"), Changed: rapid.Int64().Draw(t, "changed"),
			Touched: rapid.Int64().Draw(t, "touched"),
			Device:  rapid.Uint64().Draw(t, "device"), Inode: rapid.Uint64().Draw(t, "inode"),
		},
	}
}

func drawIndices(t *rapid.T, below int) []int32 {
	if below == 0 {
		return nil
	}
	all := rapid.SliceOfN(rapid.Int32Range(0, int32(below-1)), 0, 3).Draw(t, "indices")
	if len(all) == 0 {
		return nil
	}
	return all
}

func drawKey(t *rapid.T) (k cache.Key) {
	copy(k[:], rapid.SliceOfN(rapid.Byte(), len(k), len(k)).Draw(t, "key"))
	return k
}

func drawMemo(t *rapid.T) *memo {
	models := []*regexp.Regexp{nil, regexp.MustCompile("H100|H200")}
	m := &memo{
		For: rapid.String().Draw(t, "for"), Common: []byte(rapid.String().Draw(t, "common")),
		Used:  time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "used"), 0),
		World: rapid.SliceOfN(rapid.Custom(drawThing), 0, 3).Draw(t, "world"),
		Files: rapid.SliceOfN(rapid.Custom(drawThing), 0, 3).Draw(t, "files"),
		Nodes: make([]node, rapid.IntRange(0, 5).Draw(t, "nodes")),
	}
	if rapid.Bool().Draw(t, "still") {
		m.Still = &still{Keys: rapid.SliceOfN(rapid.Custom(drawKey), 0, 2).Draw(t, "keys"),
			Contents: rapid.SliceOfN(rapid.Custom(drawKey), 0, 2).Draw(t, "contents"), Gone: []gone{
				{cache.Outline{Key: drawKey(t), Look: cache.Look{Meta: rapid.Int64().Draw(t, "gone")},
					Files: []cache.File{{Path: "image.json", Size: 7}}}, rapid.String().Draw(t, "was")},
			}}
	}
	for i := range m.Nodes {
		n := &m.Nodes[i]
		*n = node{
			Address: rapid.String().Draw(t, "address"), Kind: rapid.String().Draw(t, "kind"),
			Place: rapid.String().Draw(t, "place"),
			Request: device.Request{
				CPUs: rapid.Int().Draw(t, "cpus"), Memory: rapid.Int64().Draw(t, "memory"),
				Disk: rapid.Int64().Draw(t, "disk"), Quiet: rapid.Bool().Draw(t, "quiet"),
				Ports: rapid.Int().Draw(t, "ports"),
				GPUs: device.GPUs{Count: rapid.Int().Draw(t, "gpus"), Memory: rapid.Int64().Draw(t, "device memory"),
					Model: rapid.SampledFrom(models).Draw(t, "model")},
			},
			Estimate: time.Duration(rapid.Int64().Draw(t, "estimate")), Key: drawKey(t),
			Reason: rapid.String().Draw(t, "reason"),
			Needs:  drawIndices(t, i), Order: drawIndices(t, i), After: drawIndices(t, i),
			Files: drawIndices(t, len(m.Files)), Excluded: rapid.Bool().Draw(t, "excluded"),
		}
		if rapid.Bool().Draw(t, "origin") {
			n.Origin = &engine.Origin{Serves: rapid.String().Draw(t, "serves"), Reason: rapid.String().Draw(t, "why"),
				Passed: rapid.SliceOfN(rapid.String(), 0, 2).Draw(t, "passed")}
		}
		if n.Digest = rapid.String().Draw(t, "digest"); n.Digest == "" {
			n.Action = engine.Action(rapid.SampledFrom([]string{"", "blocked"}).Draw(t, "action"))
		} else {
			n.Outside = rapid.String().Draw(t, "outside")
			n.Entry = cache.Outline{Key: drawKey(t), Look: cache.Look{Meta: rapid.Int64().Draw(t, "meta"),
				First: rapid.Uint64().Draw(t, "first")}, Files: []cache.File{
				{Path: rapid.String().Draw(t, "file"), Size: rapid.Int64().Draw(t, "size")},
				{Path: "link", Link: linked},
			}}
		}
	}
	texts := make([][]byte, len(m.Nodes))
	for i := range texts {
		texts[i] = rapid.SliceOf(rapid.Byte()).Draw(t, "block")
	}
	m.addBlocks(texts)
	return m
}

// TestWrittenMemosAreRead writes memos and reads them again, with their blocks.
func TestWrittenMemosAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memo")
	rapid.Check(t, func(t *rapid.T) {
		m := drawMemo(t)
		if err := m.write(path); err != nil {
			t.Fatal(err)
		}
		got := read(path)
		if got == nil {
			t.Fatal("not read")
		}
		block, done := got.readBlocks(path)
		defer done()
		blocks := slices.Concat(m.blocks...)
		for _, n := range got.Nodes {
			want := string(blocks[n.Block.offset : n.Block.offset+n.Block.length])
			if text, ok := block(n.Block); ok != (want != "") || ok && string(text) != want {
				t.Fatalf("block %q, %t instead of %q", text, ok, want)
			}
		}
		m.blocks = nil
		for i := range m.Nodes { // patterns are equal if their texts are
			if a, b := m.Nodes[i].Request.GPUs.Model, got.Nodes[i].Request.GPUs.Model; (a == nil) == (b == nil) &&
				(a == nil || a.String() == b.String()) {
				got.Nodes[i].Request.GPUs.Model = a
			}
		}
		if !reflect.DeepEqual(got, m) {
			t.Fatalf("read %+v\ninstead of %+v", got, m)
		}
	})
}

// TestABlockOfAnotherMemoIsNotRead makes two processes write memos at the same time.
func TestABlockOfAnotherMemoIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memo")
	one, other := &memo{Nodes: make([]node, 1)}, &memo{Nodes: make([]node, 1)}
	one.addBlocks([][]byte{[]byte("one")})
	other.addBlocks([][]byte{[]byte("two")})
	b := one.Nodes[0].Block
	for _, m := range []*memo{other, one} {
		if err := m.write(path); err != nil {
			t.Fatal(err)
		}
	}
	m := read(path)
	read := func() bool {
		block, done := m.readBlocks(path)
		defer done()
		_, ok := block(b)
		return ok
	}
	if !read() {
		t.Error("its own block is not read")
	}
	if err := fs.Replace(blocksFile(path), binary.LittleEndian.AppendUint32(nil, crc32.Checksum([]byte("two"), table)),
		[]byte("two")); err != nil {
		t.Fatal(err)
	}
	if read() {
		t.Error("a block of another memo is read")
	}
}

// TestADamagedMemoIsNone changes every byte of a memo.
func TestADamagedMemoIsNone(t *testing.T) {
	m := &memo{For: "all", Files: []thing{{Path: "a"}}, Nodes: []node{{Address: "task.a", Files: []int32{0}}}}
	whole := m.encode()
	if _, err := decode(whole); err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		harmed := bytes.Clone(whole)
		harmed[i] ^= 16
		for _, text := range [][]byte{whole[:i], harmed} {
			if m, err := decode(text); err == nil {
				t.Fatalf("byte %d: read as %+v", i, m)
			}
		}
	}
}

type intact map[cache.Key]bool

func (s intact) Absent(keys, _ []cache.Key) bool { return len(keys) == 0 }

func (s intact) Intact(o *cache.Outline, use bool) bool {
	return s[o.Key] && !use || s[o.Key] && o.Meta == 1
}

// TestResultsAreUsed checks that a recall looks closer, and tells the store of the use, only once an hour.
func TestResultsAreUsed(t *testing.T) {
	key := cache.Key{1}
	for _, test := range []struct {
		name    string
		used    time.Time
		meta    int64
		changed bool
		renewed bool
	}{
		{"just now", time.Now(), 2, false, false},
		{"long ago", time.Now().Add(-2 * cache.UseGrain), 1, false, true},
		{"long ago, and its meta file has changed", time.Now().Add(-2 * cache.UseGrain), 2, true, true},
		{"tomorrow, by a clock that was set back", time.Now().Add(24 * time.Hour), 1, false, true},
	} {
		m := &memo{Used: test.used, Nodes: []node{{Digest: "d",
			Entry: cache.Outline{Key: key, Look: cache.Look{Meta: test.meta}}}}}
		c, err := newChecker(t.TempDir(), nil, intact{key: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		changed, ok := c.changed(context.Background(), m)
		if !ok || changed[0] != test.changed || c.refreshed.Load() != test.renewed || test.renewed &&
			time.Since(m.Used) > time.Minute {
			t.Errorf("%s: changed %t, renewed %t, used %v", test.name, changed[0], c.refreshed.Load(), m.Used)
		}
		// A memo that does not hold as a whole looks as closely.
		m.Used, m.Nodes[0].Kind = test.used, "task"
		known := m.known(intact{key: true})
		if there := known.Result(key) != nil; there == test.changed || test.renewed == known.Used.Equal(test.used) ||
			test.renewed && time.Since(known.Used) > time.Minute {
			t.Errorf("%s: knows it %t, used %v", test.name, there, known.Used)
		}
	}
}

// FuzzRead reads files of others, with a right checksum.
func FuzzRead(f *testing.F) {
	for i := range 20 {
		f.Add(rapid.Custom(drawMemo).Example(i).encode()[len(magic)+4:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		text := binary.LittleEndian.AppendUint32([]byte(magic), crc32.Checksum(body, table))
		var m *memo
		var err error
		fuzzing.Frugal(t, len(body), func() { m, err = decode(append(text, body...)) })
		if err != nil {
			return
		}
		if again, err := decode(m.encode()); err != nil || len(again.Nodes) != len(m.Nodes) {
			t.Fatalf("written again: %v", err)
		}
	})
}

func BenchmarkRead10k(b *testing.B) {
	m := &memo{Nodes: make([]node, 10_000), Files: make([]thing, 10_000)}
	for i := range m.Nodes {
		m.Files[i] = thing{Path: "in/some.txt",
			SHA256: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
			Stamp:  cache.Stamp{Size: 1024, Changed: 1700000000000000000, Inode: 1 << 20}}
		m.Nodes[i] = node{Address: `task.t["some"]`, Kind: "task", Place: "benchmarks.hcl:1", Reason: "up to date",
			Files:  []int32{int32(i)},
			Digest: m.Files[i].SHA256, Entry: cache.Outline{Look: cache.Look{Meta: 648},
				Files: []cache.File{{Path: "o", Size: 1024}}}}
	}
	path := filepath.Join(b.TempDir(), "memo")
	if err := m.write(path); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		if read(path) == nil {
			b.Fatal("not read")
		}
	}
}
