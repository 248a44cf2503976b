// Package index lists the entries of a shared store, with few requests.
//
// The index is a set of segments. A segment is an object with the records of some entries, one a line, compressed. It
// is never changed. A writer adds one segment for all entries that it has put. When there are many segments, the
// smallest are merged into one. Garbage collection replaces all segments by one. A machine keeps copies of the segments
// that it has read.
//
// A record is a hint. The contents of an entry are checked when the entry is read.
package index

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/internal/fs"
)

const (
	indexMagic     = "benchgraph shared index 1\n"
	prefix         = "index/"
	mostSegments   = 12        // if there are more, some are merged
	mergedSegments = 8         // how many are merged into one
	longestIndex   = 1 << 30   // bytes of the lines of all segments
	longestSegment = 256 << 20 // bytes of a segment
	// A line has a key and a digest, which cannot be compressed. More lines from few bytes are no index.
	mostCompressed = 32
	parallelReads  = 8
)

// Record is the meta of an entry, without text and files, as the index has it. Its Signature is in base64, or
// sshkey.NoSignature.
type Record struct{ cache.Meta }

// Statement returns the line of a record without its signature, which is the text that is signed. In it, the key stands
// for the text of the entry, and the digest for the files.
func Statement(m *cache.Meta) string {
	return fmt.Sprintf("%s %s %s %d %d %d %q %q", m.Key, m.Content, m.Digest,
		m.Bytes, m.Created.UnixNano(), int64(m.Duration), m.Address, m.Log)
}

// Line returns the line of a record in a segment.
func (r *Record) Line() string { return Statement(&r.Meta) + " " + r.Signature }

func parseRecord(line string) (Record, error) {
	var r Record
	said, signature, _ := cutLast(line, " ")
	r.Signature = signature
	fields := strings.SplitN(said, " ", 7)
	if len(fields) != 7 {
		return r, fmt.Errorf("%.60q is no record", line)
	}
	var errs [7]error
	r.Key, errs[0] = cache.ParseKey(fields[0])
	r.Content, errs[1] = cache.ParseKey(fields[1])
	r.Digest = fields[2]
	r.Bytes, errs[2] = strconv.ParseInt(fields[3], 10, 64)
	created, err := strconv.ParseInt(fields[4], 10, 64)
	r.Created, errs[3] = time.Unix(0, created).UTC(), err
	duration, err := strconv.ParseInt(fields[5], 10, 64)
	r.Duration, errs[4] = time.Duration(duration), err
	address, err := strconv.QuotedPrefix(fields[6])
	if err == nil {
		r.Address, errs[5] = strconv.Unquote(address)
		r.Log, err = strconv.Unquote(strings.TrimPrefix(fields[6][len(address):], " "))
	}
	errs[6] = err
	return r, errors.Join(errs[:]...)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// Table is an index in memory. Lines are parsed when they are asked for, since a plan asks for few of many.
type Table struct {
	Segments map[string]int64        // bytes, by object
	Lines    map[cache.Key][]string  // by key; a key may have several
	Contents map[cache.Key]cache.Key // by content key
}

// New returns an empty table.
func New() *Table {
	return &Table{Segments: map[string]int64{}, Lines: map[cache.Key][]string{}, Contents: map[cache.Key]cache.Key{}}
}

// Clone returns a copy that can be changed while others read t.
func (t *Table) Clone() *Table {
	return &Table{maps.Clone(t.Segments), maps.Clone(t.Lines), maps.Clone(t.Contents)}
}

// add adds the lines of a segment. It leaves out damaged lines, and returns the error of the first.
func (t *Table) add(text string) (damaged error) {
	for _, line := range linesOf(text) {
		first, rest, _ := strings.Cut(line, " ")
		second, _, _ := strings.Cut(rest, " ")
		key, err := cache.ParseKey(first)
		content, err2 := cache.ParseKey(second)
		if err := cmp.Or(err, err2); err != nil {
			damaged = cmp.Or(damaged, err)
			continue
		}
		if known := t.Lines[key]; !slices.Contains(known, line) {
			t.Lines[key] = append(slices.Clip(known), line)
		}
		if !content.IsZero() {
			t.Contents[content] = key
		}
	}
	return damaged
}

// linesOf returns the lines of a segment. Some segments have empty ones, which earlier merges of empty segments left.
func linesOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

// Record returns the first record of a key that is accepted.
func (t *Table) Record(key cache.Key, accepted func(*Record) bool) (Record, bool) {
	for _, line := range t.Lines[key] {
		if r, err := parseRecord(line); err == nil && accepted(&r) {
			return r, true
		}
	}
	return Record{}, false
}

// All returns the accepted records in the order of their keys.
func (t *Table) All(accepted func(*Record) bool) []Record {
	var list []Record
	order := func(a, b cache.Key) int { return bytes.Compare(a[:], b[:]) }
	for _, key := range slices.SortedFunc(maps.Keys(t.Lines), order) {
		if r, ok := t.Record(key, accepted); ok {
			list = append(list, r)
		}
	}
	return list
}

// compress returns a segment with lines.
func compress(lines []string) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, indexMagic)
	for _, line := range lines {
		if err == nil {
			_, err = io.WriteString(z, line+"\n")
		}
	}
	err = errors.Join(err, z.Close())
	return b.Bytes(), err
}

// decompress returns the lines of a segment.
func decompress(segment []byte) (string, error) {
	z, err := gzip.NewReader(bytes.NewReader(segment))
	if err != nil {
		return "", err
	}
	most := min(longestIndex, mostCompressed*int64(len(segment)))
	var b strings.Builder
	n, err := io.Copy(&b, io.LimitReader(z, most+1))
	text, ours := strings.CutPrefix(b.String(), indexMagic)
	if err == nil && (!ours || n > most) {
		err = errors.New("it is no index")
	}
	return text, err
}

// Copies is a directory with copies of the segments that this machine has read.
type Copies struct{ Dir string }

func (c Copies) path(segment string) string { return filepath.Join(c.Dir, path.Base(segment)) }

// ErrEmptied is wrapped by the error for a bucket without an index, if this machine has read one there. An index never
// loses its last segment, so the bucket was emptied, or is in a file system that is not mounted.
var ErrEmptied = errors.New("it is empty, and this machine has seen results there")

// Load reads the index of a bucket. It asks only for segments that this machine has not read yet, and calls tell with
// warnings.
func (c Copies) Load(ctx context.Context, b bucket.Bucket, tell func(string)) (*Table, error) {
	t := New()
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, err
	}
	for o, err := range b.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		t.Segments[o.Name] = o.Size
	}
	if have, _ := os.ReadDir(c.Dir); len(t.Segments) == 0 && len(have) > 0 {
		return nil, fmt.Errorf("%w: mount its file system, or, if somebody emptied it, remove %s", ErrEmptied, c.Dir)
	}
	c.forget(t)
	names := slices.Sorted(maps.Keys(t.Segments))
	texts := make([]string, len(names))
	var bytes atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	for i, name := range names {
		g.Go(func() (err error) {
			texts[i], err = c.read(ctx, b, name)
			if bytes.Add(int64(len(texts[i]))) > longestIndex {
				texts[i] = ""
				err = fmt.Errorf("%s: %w: the index has more than %d bytes", name, cache.ErrDamaged, longestIndex)
			}
			if errors.Is(err, cache.ErrDamaged) {
				tell(err.Error() + "; benchgraph cache verify -shared makes the index anew")
				err = nil
			}
			if errors.Is(err, os.ErrNotExist) { // merged meanwhile; the next look finds its records in another segment
				err = nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, name := range names {
		if err := t.add(texts[i]); err != nil {
			tell(fmt.Sprintf("%s is damaged: %v; benchgraph cache verify -shared makes the index anew", name, err))
		}
	}
	return t, nil
}

// read returns the lines of a segment.
func (c Copies) read(ctx context.Context, b bucket.Bucket, name string) (string, error) {
	if own, err := fs.ReadOwn(c.path(name)); err == nil {
		if text, err := decompress(own); err == nil {
			return text, nil
		}
	}
	body, err := b.Open(ctx, name)
	if err != nil {
		return "", err
	}
	defer body.Close()
	segment, err := io.ReadAll(io.LimitReader(body, longestSegment))
	if err != nil {
		return "", err
	}
	text, err := decompress(segment)
	if err != nil {
		return "", fmt.Errorf("%s: %w: %w", name, cache.ErrDamaged, err)
	}
	_ = fs.Replace(c.path(name), segment) // else the bucket is asked again the next time
	return text, nil
}

// forget removes copies of segments that are gone.
func (c Copies) forget(t *Table) {
	have, _ := os.ReadDir(c.Dir)
	for _, e := range have {
		if _, there := t.Segments[prefix+e.Name()]; !there && !strings.HasPrefix(e.Name(), ".") {
			_ = os.Remove(filepath.Join(c.Dir, e.Name()))
		}
	}
}

// Write adds a segment with lines to the index of a bucket.
func (c Copies) Write(ctx context.Context, b bucket.Bucket, t *Table, lines []string) error {
	segment, err := compress(lines)
	if err != nil {
		return err
	}
	random := make([]byte, 6)
	_, _ = rand.Read(random)
	name := fmt.Sprintf("%s%016x-%s", prefix, time.Now().UnixNano(), hex.EncodeToString(random))
	if err := b.Create(ctx, name, bytes.NewReader(segment), int64(len(segment))); err != nil {
		return err
	}
	_ = fs.Replace(c.path(name), segment)
	t.Segments[name] = int64(len(segment))
	if len(lines) == 0 {
		return nil
	}
	return t.add(strings.Join(lines, "\n") + "\n")
}

// Merge replaces the smallest segments by one when there are many. Two machines that merge at the same time leave some
// records in two segments.
func (c Copies) Merge(ctx context.Context, b bucket.Bucket, t *Table) error {
	if len(t.Segments) <= mostSegments {
		return nil
	}
	bySize := func(a, b string) int { return int(t.Segments[a] - t.Segments[b]) }
	names := slices.SortedFunc(maps.Keys(t.Segments), bySize)[:mergedSegments]
	var lines []string
	for _, name := range names {
		text, err := c.read(ctx, b, name)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, cache.ErrDamaged) {
			continue
		}
		if err != nil {
			return err
		}
		lines = append(lines, linesOf(text)...)
	}
	slices.Sort(lines)
	if err := c.Write(ctx, b, t, slices.Compact(lines)); err != nil {
		return err
	}
	for _, name := range names {
		delete(t.Segments, name)
	}
	return b.Remove(ctx, names)
}
