package shared

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared/index"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// An entry is one object: a line with the length of the meta file and the signature, the meta file as in a local store,
// and the bytes of the files in the order of their list.
const (
	magic       = "benchgraph shared entry 1"
	longestLine = 512
	longestMeta = 64 << 20 // bytes
	entries     = "entries/"
	buffered    = 1 << 20 // bytes read ahead of hashing and writing
)

// ObjectOf returns the name of an entry's object.
func ObjectOf(key cache.Key) string {
	name := key.String()
	return entries + name[:2] + "/" + name
}

// keyOf returns the key of an entry's object; false if the object is of no entry.
func keyOf(object string) (cache.Key, bool) {
	key, err := cache.ParseKey(path.Base(object))
	return key, err == nil && ObjectOf(key) == object
}

// errRefused is wrapped by the error for an object that exists and is not accepted.
var errRefused = errors.New("refused")

// ErrUntrusted is wrapped by the error for a whole entry that no key of trust signed.
var ErrUntrusted = fmt.Errorf("%w: it is not signed by a key of trust", errRefused)

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errRefused, fmt.Sprintf(format, args...))
}

// packed has the bytes of the object of a local entry.
type packed struct {
	head  []byte
	parts []part // the files that are not empty; they follow head
	size  int64
}

// part is a file in an object.
type part struct {
	from int64 // its offset
	size int64
	path string
}

func pack(e cache.Entry, signature string) (*packed, error) {
	e.Signature = "" // the first line has it
	meta, err := cache.EncodeMeta(e.Meta)
	if err != nil {
		return nil, err
	}
	if len(meta) > longestMeta {
		return nil, fmt.Errorf("its meta file is longer than %d bytes", longestMeta)
	}
	p := &packed{head: append(fmt.Appendf(nil, "%s %d %s\n", magic, len(meta), signature), meta...)}
	p.size = int64(len(p.head))
	for _, f := range e.Files {
		if f.Link == "" && f.Size > 0 {
			p.parts = append(p.parts, part{p.size, f.Size, filepath.Join(e.Dir, filepath.FromSlash(f.Path))})
			p.size += f.Size
		}
	}
	return p, nil
}

// ReadAt reads from the object. It may be called by several goroutines.
func (p *packed) ReadAt(b []byte, at int64) (n int, err error) {
	if at < int64(len(p.head)) {
		n = copy(b, p.head[at:])
	}
	i := sort.Search(len(p.parts), func(i int) bool { return p.parts[i].from+p.parts[i].size > at+int64(n) })
	for ; n < len(b) && i < len(p.parts); i++ {
		f := &p.parts[i]
		within := at + int64(n) - f.from
		want := b[n:min(int64(len(b)), int64(n)+f.size-within)]
		m, err := f.readAt(want, within)
		n += m
		if err != nil {
			return n, err
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *part) readAt(b []byte, at int64) (int, error) {
	file, err := os.OpenFile(f.path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	n, err := file.ReadAt(b, at)
	if n == len(b) {
		err = nil
	} else if err == io.EOF {
		err = fmt.Errorf("%s is shorter than it was: %w", f.path, io.ErrUnexpectedEOF)
	}
	return n, err
}

// readHead reads the beginning of the object of a key. It checks that the text has the key, and the list of files the
// digest. It does not check the signature.
func readHead(r *bufio.Reader, key cache.Key) (index.Record, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || errors.Is(err, io.EOF) || err == nil && len(line) > longestLine {
		return index.Record{}, refuse("it is no entry")
	}
	if err != nil {
		return index.Record{}, err
	}
	rest, ours := strings.CutPrefix(strings.TrimSuffix(string(line), "\n"), magic+" ")
	length, signature, framed := strings.Cut(rest, " ")
	n, err := strconv.Atoi(length)
	one := len(strings.Fields(signature)) == 1 // an entry without one would count as made here
	if !ours || !framed || !one || err != nil || n < 0 || n > longestMeta {
		return index.Record{}, refuse("it is no entry")
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return index.Record{}, refuse("it is cut short")
	} else if err != nil {
		return index.Record{}, err
	}
	m, err := cache.DecodeMeta(text)
	if err != nil {
		return index.Record{}, refuse("%v", err)
	}
	bytes := int64(0)
	for _, f := range m.Files {
		if f.Size < 0 {
			return index.Record{}, refuse("%s has a negative size", f.Path)
		}
		bytes += f.Size
	}
	switch {
	case m.Key != key:
		return index.Record{}, refuse("it is the entry of another key")
	case cache.KeyOf(m.Text) != key:
		return index.Record{}, refuse("its description does not have its key")
	case !m.Lists(), bytes != m.Bytes:
		return index.Record{}, refuse("its digest is not that of its files")
	}
	m.Signature = signature
	return index.Record{Meta: m}, nil
}

// creator opens the file of an entry for writing. For a link, it makes the link and returns nil.
type creator func(f *cache.File) (io.WriteCloser, error)

// readFiles reads the files of an entry into the writers of create. It refuses bytes that do not match the list.
func readFiles(ctx context.Context, r io.Reader, m *cache.Meta, create creator) error {
	for i := range m.Files {
		f := &m.Files[i]
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w, err := create(f)
		if err == nil && f.Link == "" {
			err = errors.Join(readFile(r, f, w), w.Close())
		}
		if err != nil {
			return err
		}
	}
	if n, err := r.Read(make([]byte, 1)); n > 0 || err != nil && err != io.EOF {
		return errors.Join(err, refuse("it is longer than its files"))
	}
	return nil
}

// readFile copies the bytes of a file and compares their digest. Hashing and writing go on side by side.
func readFile(r io.Reader, f *cache.File, w io.Writer) error {
	h := sha256.New()
	n, err := fs.CopyBoth(w, h, io.LimitReader(r, f.Size))
	switch {
	case err != nil:
		return err
	case n != f.Size:
		return refuse("%s has %d bytes instead of %d", f.Path, n, f.Size)
	case hex.EncodeToString(h.Sum(nil)) != f.SHA256:
		return refuse("%s has other contents than it says", f.Path)
	}
	return nil
}

// unpack reads the files of an entry into a directory.
func unpack(ctx context.Context, r io.Reader, m *cache.Meta, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := fs.OpenRoot(dir) // so that a link of the entry cannot lead out
	if err != nil {
		return err
	}
	defer root.Close()
	return readFiles(ctx, r, m, func(f *cache.File) (io.WriteCloser, error) {
		if parent := path.Dir(f.Path); parent != "." {
			if err := root.MkdirAll(parent, 0o755); err != nil {
				return nil, refuse("%v", err)
			}
		}
		if f.Link != "" {
			if err := root.Symlink(f.Link, f.Path); err != nil {
				return nil, refuse("%v", err)
			}
			return nil, nil
		}
		w, err := root.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, os.FileMode(f.Mode))
		if errors.Is(err, os.ErrExist) {
			return nil, refuse("%s is listed twice", f.Path)
		}
		return &fs.Ahead{File: w}, err
	})
}
