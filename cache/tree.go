package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// The modes of files: only whether a file can be executed is part of a result.
const (
	modePlain      = 0o644
	modeExecutable = 0o755
)

// tree is a directory that is, or is to become, the files of an entry. All access goes through an os.Root, so that a
// link that a task left behind cannot lead out of it.
type tree struct {
	root  *fs.Root
	files []File   // sorted by path
	dirs  []string // each after its parent
}

func openTree(dir string) (*tree, error) {
	root, err := fs.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &tree{root: root}, nil
}

func (t *tree) close() { t.root.Close() }

// LongestPath bounds the depth of trees, which a hostile task could make as deep as it likes. Deeper ones could not be
// opened by their whole path anyway.
const LongestPath = 3500

// inode names a file on this machine.
type inode struct{ dev, ino uint64 }

// walk lists the files. With admit, it makes a task's output fit for the store on the way: files become read-only,
// sockets and pipes that a server left are dropped, and what cannot be kept (a device, a file that has another name
// outside, a link that leads out) is an error.
func (t *tree) walk(ctx context.Context, admit bool) error {
	names := map[inode]int{}
	links := map[inode]uint64{}
	sample := map[inode]string{}
	visit := func(name string, info os.FileInfo) error {
		file := File{Path: name, Size: info.Size(), Mode: modePlain}
		switch info.Mode().Type() {
		case 0:
			if info.Mode()&0o100 != 0 {
				file.Mode = modeExecutable
			}
			if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
				id := inode{uint64(st.Dev), st.Ino}
				names[id]++
				links[id], sample[id] = uint64(st.Nlink), name
			}
			if admit {
				if err := t.root.Chmod(name, os.FileMode(file.Mode&^0o222)); err != nil {
					return err
				}
			}
		case os.ModeSymlink:
			target, err := t.root.Readlink(name)
			if err != nil {
				return err
			}
			file.Link, file.Size, file.Mode = target, 0, modePlain
		case os.ModeSocket, os.ModeNamedPipe:
			if admit {
				return t.root.Remove(name)
			}
			return damage(name + " was added")
		default:
			return damage(name + " is a device; a result holds only files, directories and links")
		}
		t.files = append(t.files, file)
		return nil
	}
	if err := t.walkDir(ctx, ".", admit, visit); err != nil {
		return err
	}
	slices.SortFunc(t.files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	if !admit {
		return nil
	}
	for id, count := range names {
		if links[id] != uint64(count) {
			return fmt.Errorf("%s is a hard link to a file outside the result, where it could be changed; copy the "+
				"file instead", sample[id])
		}
	}
	return t.checkLinks()
}

func (t *tree) walkDir(ctx context.Context, dir string, admit bool, visit func(string, os.FileInfo) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(dir) > LongestPath {
		return damage(fmt.Sprintf("%.60s… has a path of more than %d bytes", dir, LongestPath))
	}
	t.dirs = append(t.dirs, dir)
	f, err := t.root.Open(dir)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		info, err := t.root.Lstat(name)
		switch {
		case err != nil:
		case info.IsDir():
			if admit && info.Mode().Perm() != 0o755 {
				err = t.root.Chmod(name, 0o755)
			}
			if err == nil {
				err = t.walkDir(ctx, name, admit, visit)
			}
		default:
			err = visit(name, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkLinks refuses links that lead out of the tree. Only following them tells: link/../.. depends on what link is.
func (t *tree) checkLinks() error {
	for _, file := range t.files {
		if file.Link == "" {
			continue
		}
		_, err := t.root.Stat(file.Path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s is a link to %q, which cannot be followed inside the result: %w", file.Path,
				file.Link, err)
		}
		if filepath.IsAbs(file.Link) {
			return fmt.Errorf("%s is a link to %q, which is outside the result", file.Path, file.Link)
		}
	}
	return nil
}

// hash reads every file and fills in its size and SHA-256.
func (t *tree) hash(ctx context.Context) error {
	if len(t.files) == 1 && t.files[0].Link == "" { // mostly; then a goroutine would cost more than it reads
		return t.hashFile(ctx, &t.files[0])
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range t.files {
		if t.files[i].Link != "" {
			continue
		}
		g.Go(func() error { return t.hashFile(ctx, &t.files[i]) })
	}
	return g.Wait()
}

func (t *tree) hashFile(ctx context.Context, file *File) error {
	f, err := t.root.OpenFile(file.Path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return err
	}
	sum, size, err := hashReader(ctx, f)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Path, err)
	}
	after, err := f.Stat()
	if err != nil {
		return err
	}
	if size != before.Size() || after.Size() != size || !after.ModTime().Equal(before.ModTime()) {
		return fmt.Errorf("%s changed while it was read; is a process that the task started still running?", file.Path)
	}
	file.Size, file.SHA256 = size, sum
	return nil
}

// buffers are what files are read into. Most files are much smaller.
var buffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// hashReader is the SHA-256 of all that r has, in hexadecimal digits, and its length.
func hashReader(ctx context.Context, r io.Reader) (sum string, size int64, err error) {
	h := sha256.New()
	buffer := buffers.Get().(*[128 << 10]byte)
	defer buffers.Put(buffer)
	buf := buffer[:]
	for {
		if ctx.Err() != nil {
			return "", 0, context.Cause(ctx)
		}
		n, err := r.Read(buf)
		h.Write(buf[:n])
		size += int64(n)
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), size, nil
		}
		if err != nil {
			return "", 0, err
		}
	}
}

// syncers is how many files are synced at once: the disk, not the processors, is waited for, and a journalling file
// system commits what is waiting together.
const syncers = 16

// freeze makes the directories read-only.
func (t *tree) freeze() error {
	for _, dir := range slices.Backward(t.dirs) {
		if err := t.root.Chmod(dir, 0o555); err != nil {
			return err
		}
	}
	return nil
}

// sync makes the files, then the directories, durable.
func (t *tree) sync() error {
	var g errgroup.Group
	g.SetLimit(syncers)
	for _, file := range t.files {
		if file.Link == "" {
			g.Go(func() error { return t.syncOne(file.Path) })
		}
	}
	err := g.Wait()
	for _, dir := range slices.Backward(t.dirs) {
		err = errors.Join(err, t.syncOne(dir))
	}
	return err
}

func (t *tree) syncOne(name string) error {
	f, err := t.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// listing is the canonical list of files, one a line: the quoted path, x, - or l, the size, and the SHA-256 or, quoted,
// the link's target. It is what Digest is made from, and how meta files keep the list.
func listing(files []File) string {
	var b strings.Builder
	for _, f := range files {
		switch {
		case f.Link != "":
			fmt.Fprintf(&b, "%q l 0 %q\n", f.Path, f.Link)
		case f.Mode&0o100 != 0:
			fmt.Fprintf(&b, "%q x %d %s\n", f.Path, f.Size, f.SHA256)
		default:
			fmt.Fprintf(&b, "%q - %d %s\n", f.Path, f.Size, f.SHA256)
		}
	}
	return b.String()
}

// digest is the SHA-256 over the list of files.
func digest(files []File) string {
	sum := sha256.Sum256([]byte("benchgraph files 1\n" + listing(files)))
	return hex.EncodeToString(sum[:])
}

// ListDigest returns the digest that an entry with these files has.
func (m *Meta) ListDigest() string { return digest(m.Files) }

// Lists reports whether Digest is that of Files.
func (m *Meta) Lists() bool { return m.Digest == m.ListDigest() }

// parseListing reads what listing wrote.
func parseListing(text string) ([]File, error) {
	var files []File
	for line := range strings.Lines(text) {
		file, err := parseFile(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("list of files: line %d: %w", len(files)+1, err)
		}
		files = append(files, file)
	}
	return files, nil
}

func parseFile(line string) (File, error) {
	name, rest, err := cutQuoted(line)
	if err != nil {
		return File{}, err
	}
	fields, ok := strings.CutPrefix(rest, " ")
	kind, fields, _ := strings.Cut(fields, " ")
	size, last, complete := strings.Cut(fields, " ")
	if !ok || !complete || !filepath.IsLocal(name) {
		return File{}, fmt.Errorf("%.80q is no file", line)
	}
	file := File{Path: name, Mode: modePlain, SHA256: last}
	if file.Size, err = strconv.ParseInt(size, 10, 64); err != nil {
		return File{}, err
	}
	switch kind {
	case "-":
	case "x":
		file.Mode = modeExecutable
	case "l":
		file.SHA256 = ""
		file.Link, _, err = cutQuoted(last)
	default:
		err = fmt.Errorf("%.80q is no file", line)
	}
	return file, err
}

// difference says how the files found differ from those recorded; it is empty when they do not.
func difference(found, recorded []File) string {
	for i := 0; i < len(found) || i < len(recorded); i++ {
		switch {
		case i == len(found) || i < len(recorded) && recorded[i].Path < found[i].Path:
			return recorded[i].Path + " is missing"
		case i == len(recorded) || found[i].Path < recorded[i].Path:
			return found[i].Path + " was added"
		case found[i].Size != recorded[i].Size:
			return fmt.Sprintf("%s has %d bytes instead of %d", found[i].Path, found[i].Size, recorded[i].Size)
		case found[i].SHA256 != recorded[i].SHA256:
			return found[i].Path + " has other contents than were stored"
		case found[i] != recorded[i]:
			return found[i].Path + " has another mode or target than was stored"
		}
	}
	return ""
}
