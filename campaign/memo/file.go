package memo

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"regexp"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// magic begins a memo's file. The checksum of the rest follows. The number goes up with each change of the format, and
// of what a plan reads from a memo.
const magic = "benchgraph memo 7\n"

var table = crc32.MakeTable(crc32.Castagnoli)

// read returns the memo in a file; nil if there is none that can be read and trusted.
func read(path string) *memo {
	data, err := fs.ReadOwn(path)
	if err != nil {
		return nil
	}
	m, err := decode(data)
	if err != nil {
		return nil
	}
	return m
}

// blocksFile returns the path of the file with the blocks of a memo.
func blocksFile(path string) string { return path + ".blocks" }

// readBlocks opens the file with the memo's blocks. read returns the text of a block; false if the file lacks it.
func (m *memo) readBlocks(path string) (read func(block) ([]byte, bool), close func()) {
	none := func(block) ([]byte, bool) { return nil, false }
	f, _, err := fs.OpenOwn(blocksFile(path))
	if err != nil {
		return none, func() {}
	}
	close = func() { f.Close() }
	var identity [4]byte
	if _, err := io.ReadFull(f, identity[:]); err != nil || binary.LittleEndian.Uint32(identity[:]) != m.identity {
		return none, close
	}
	return func(b block) ([]byte, bool) {
		text := make([]byte, b.length)
		_, err := f.ReadAt(text, int64(b.offset+len(identity)))
		return text, err == nil && !b.IsZero() && crc32.Checksum(text, table) == b.sum
	}, close
}

// write writes the memo to a file. It does not wait for the disk: after a loss of power, checksums show the damage.
func (m *memo) write(path string) error {
	if m.blocks != nil {
		identity := binary.LittleEndian.AppendUint32(nil, m.identity)
		if err := fs.ReplaceSoon(blocksFile(path), append([][]byte{identity}, m.blocks...)...); err != nil {
			return err
		}
	}
	return fs.ReplaceSoon(path, m.encode())
}

func (m *memo) encode() []byte {
	w := writer{make([]byte, len(magic)+4, 1<<12+len(m.Common)+len(m.Files)*128+len(m.Nodes)*320)}
	w.number(int(m.identity))
	w.number(int(m.Used.Unix()))
	w.text(m.For)
	w.things(m.World)
	w.things(m.Files)
	w.bytes(m.Common)
	w.number(len(m.Nodes))
	for i := range m.Nodes {
		w.node(&m.Nodes[i])
	}
	w.still(m.Still)
	copy(w.data, magic)
	binary.LittleEndian.PutUint32(w.data[len(magic):], crc32.Checksum(w.data[len(magic)+4:], table))
	return w.data
}

var errDamaged = errors.New("the memo is damaged")

func decode(data []byte) (*memo, error) {
	body, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok || len(body) < 4 || binary.LittleEndian.Uint32(body) != crc32.Checksum(body[4:], table) {
		return nil, errDamaged
	}
	r := &reader{rest: string(body[4:])}
	m := &memo{identity: uint32(r.number()), Used: time.Unix(int64(r.number()), 0), For: r.text(), World: r.things(),
		Files: r.things(), Common: []byte(r.text())}
	m.Nodes = make([]node, r.count(minNode))
	for i := range m.Nodes {
		r.node(&m.Nodes[i], i, len(m.Files))
	}
	m.Still = r.still()
	if r.bad || r.rest != "" {
		return nil, errDamaged
	}
	return m, nil
}

// writer appends values: numbers as varints, and values of variable length after their length.
type writer struct{ data []byte }

func (w *writer) number(n int)        { w.data = binary.AppendVarint(w.data, int64(n)) }
func (w *writer) bytes(b []byte)      { w.number(len(b)); w.data = append(w.data, b...) }
func (w *writer) text(s string)       { w.number(len(s)); w.data = append(w.data, s...) }
func (w *writer) key(k cache.Key)     { w.data = append(w.data, k[:]...) }
func (w *writer) indices(all []int32) { writeAll(w, all, func(i int32) { w.number(int(i)) }) }

func writeAll[T any](w *writer, all []T, write func(T)) {
	w.number(len(all))
	for _, one := range all {
		write(one)
	}
}

func (w *writer) flags(flags ...bool) {
	var b byte
	for i, set := range flags {
		if set {
			b |= 1 << i
		}
	}
	w.data = append(w.data, b)
}

// digest writes hexadecimal digits as bytes, in half the space.
func (w *writer) digest(hexadecimal string) {
	raw, err := hex.DecodeString(hexadecimal)
	if err != nil {
		raw = nil // not a digest of ours; no file matches an empty one
	}
	w.bytes(raw)
}

func (w *writer) things(all []thing) {
	writeAll(w, all, func(t thing) {
		w.text(t.Path)
		w.data = append(w.data, byte(t.Is))
		w.flags(t.Exec)
		w.number(int(t.Stamp.Size))
		w.number(int(t.Stamp.Changed))
		w.number(int(t.Stamp.Touched))
		w.number(int(t.Stamp.Device))
		w.number(int(t.Stamp.Inode))
		w.digest(t.SHA256)
	})
}

func (w *writer) node(n *node) {
	w.text(n.Address)
	w.text(n.Kind)
	w.text(n.Place)
	w.key(n.Key)
	w.text(n.Reason)
	w.request(&n.Request)
	w.number(int(n.Estimate))
	w.indices(n.Needs)
	w.indices(n.Order)
	w.indices(n.After)
	w.indices(n.Files)
	w.flags(n.Excluded, n.Digest != "", n.Origin != nil)
	if n.Origin != nil {
		w.text(n.Origin.Serves)
		w.text(n.Origin.Reason)
		w.text(n.Origin.Ancestor)
		w.number(n.Origin.Back)
		writeAll(w, n.Origin.Passed, w.text)
	}
	if n.Digest != "" {
		w.text(n.Digest)
		w.text(n.Outside)
		w.outline(&n.Entry)
	} else {
		w.text(string(n.Action))
	}
	w.number(n.Block.length)
	w.number(n.Block.offset)
	w.number(int(n.Block.sum))
}

func (w *writer) outline(o *cache.Outline) {
	w.key(o.Key)
	w.number(int(o.Meta))
	w.number(int(o.First))
	writeAll(w, o.Files, func(f cache.File) {
		w.text(f.Path)
		w.flags(f.Link != "")
		w.number(int(f.Size))
	})
}

func (w *writer) still(s *still) {
	w.flags(s != nil)
	if s == nil {
		return
	}
	writeAll(w, s.Keys, w.key)
	writeAll(w, s.Contents, w.key)
	writeAll(w, s.Gone, func(g gone) {
		w.outline(&g.Entry)
		w.text(g.Outside)
	})
}

func (w *writer) request(q *device.Request) {
	w.flags(q.Quiet, q.GPUs.Model != nil)
	for _, n := range []int{q.CPUs, int(q.Memory), int(q.Disk), q.Ports, q.GPUs.Count, int(q.GPUs.Memory)} {
		w.number(n)
	}
	if q.GPUs.Model != nil {
		w.text(q.GPUs.Model.String())
	}
}

// reader takes values off the front of rest; strings are slices of rest. After the first malformed value, bad is set
// and all values are zero.
type reader struct {
	rest   string
	bad    bool
	models map[string]*regexp.Regexp
}

func (r *reader) fail() { r.bad, r.rest = true, "" }

func (r *reader) number() int {
	var n uint64
	for i := range len(r.rest) {
		b := r.rest[i]
		if i == binary.MaxVarintLen64-1 && b > 1 {
			break
		}
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			r.rest = r.rest[i+1:]
			return int(int64(n>>1) ^ -int64(n&1))
		}
		if i == binary.MaxVarintLen64-1 {
			break
		}
	}
	r.fail()
	return 0
}

func (r *reader) take(n int) string {
	if n < 0 || n > len(r.rest) {
		r.fail()
		return ""
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) text() string { return r.take(r.number()) }

func (r *reader) key() (k cache.Key) {
	copy(k[:], r.take(len(k)))
	return k
}

func (r *reader) byte() byte {
	if b := r.take(1); b != "" {
		return b[0]
	}
	return 0
}

// count returns the number of elements of a list; each element takes at least so many bytes.
func (r *reader) count(least int) int {
	n := r.number()
	if n < 0 || n > len(r.rest)/least {
		r.fail()
		return 0
	}
	return n
}

func (r *reader) indices(below int) []int32 {
	n := r.count(1)
	if n == 0 {
		return nil
	}
	all := make([]int32, n)
	for i := range all {
		k := r.number()
		if k < 0 || k >= below {
			r.fail()
			return nil
		}
		all[i] = int32(k)
	}
	return all
}

// The least number of bytes of an element, by list.
const (
	minThing = 9
	minNode  = 51
	minGone  = 35
	minFile  = 3
)

func (r *reader) things() []thing {
	all := make([]thing, r.count(minThing))
	for i := range all {
		t := &all[i]
		t.Path, t.Is, t.Exec = r.text(), kind(r.byte()), r.byte() != 0
		t.Stamp = cache.Stamp{Size: int64(r.number()), Changed: int64(r.number()), Touched: int64(r.number()),
			Device: uint64(r.number()), Inode: uint64(r.number())}
		t.SHA256 = hex.EncodeToString([]byte(r.text()))
	}
	return all
}

func (r *reader) node(n *node, index, files int) {
	n.Address, n.Kind, n.Place = r.text(), r.text(), r.text()
	n.Key, n.Reason = r.key(), r.text()
	n.Request = r.request()
	n.Estimate = time.Duration(r.number())
	n.Needs, n.Order, n.After = r.indices(index), r.indices(index), r.indices(index)
	n.Files = r.indices(files)
	flags := r.byte()
	n.Excluded = flags&1 != 0
	if flags&4 != 0 {
		n.Origin = &engine.Origin{Serves: r.text(), Reason: r.text(), Ancestor: r.text(), Back: int(r.number()),
			Passed: make([]string, r.count(1))}
		for i := range n.Origin.Passed {
			n.Origin.Passed[i] = r.text()
		}
	}
	if flags&2 != 0 {
		n.Digest, n.Outside = r.text(), r.text()
		n.Entry = r.outline()
	} else {
		n.Action = engine.Action(r.text())
	}
	n.Block = block{length: r.number(), offset: r.number(), sum: uint32(r.number())}
	if n.Block.length < 0 || n.Block.length > longestBlock || n.Block.offset < 0 {
		r.fail()
	}
}

func (r *reader) outline() (o cache.Outline) {
	o.Key, o.Meta, o.First = r.key(), int64(r.number()), uint64(r.number())
	o.Files = make([]cache.File, r.count(minFile))
	for i := range o.Files {
		f := &o.Files[i]
		f.Path = r.text()
		if r.byte() != 0 {
			f.Link = linked
		}
		f.Size = int64(r.number())
	}
	return o
}

func (r *reader) still() *still {
	if r.byte() == 0 {
		return nil
	}
	s := &still{Keys: r.keys(), Contents: r.keys()}
	s.Gone = make([]gone, r.count(minGone))
	for i := range s.Gone {
		s.Gone[i] = gone{r.outline(), r.text()}
	}
	return s
}

func (r *reader) keys() []cache.Key {
	all := make([]cache.Key, r.count(len(cache.Key{})))
	for i := range all {
		all[i] = r.key()
	}
	return all
}

// longestBlock bounds the allocation that a damaged memo can cause, in bytes.
const longestBlock = 64 << 20

// linked stands for the target of a link, which an outline does not keep.
const linked = "?"

func (r *reader) request() device.Request {
	var q device.Request
	flags := r.byte()
	q.Quiet = flags&1 != 0
	q.CPUs, q.Memory, q.Disk, q.Ports = r.number(), int64(r.number()), int64(r.number()), r.number()
	q.GPUs.Count, q.GPUs.Memory = r.number(), int64(r.number())
	if flags&2 != 0 {
		q.GPUs.Model = r.model(r.text())
	}
	return q
}

// model compiles each pattern once: requests are equal only if they point to the same regexp.
func (r *reader) model(pattern string) *regexp.Regexp {
	if m := r.models[pattern]; m != nil {
		return m
	}
	m, err := regexp.Compile(pattern)
	if err != nil {
		r.fail()
		return nil
	}
	if r.models == nil {
		r.models = map[string]*regexp.Regexp{}
	}
	r.models[pattern] = m
	return m
}
