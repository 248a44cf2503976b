package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// unfinished begins the names of files that are being written. Such a file is no object.
const unfinished = ".unfinished-"

// abandoned is the age from which an unfinished file is removed: its writer is gone.
const abandoned = 24 * time.Hour

// Directory is a bucket in a directory, as of a network file system.
type Directory struct{ root string }

// NewDirectory returns the bucket in a directory. Create makes the directory if its parent exists. If the parent is
// missing, too, a file system is not mounted.
func NewDirectory(root string) *Directory { return &Directory{root} }

// there returns why the directory cannot be used; nil if it can. The error does not wrap fs.ErrNotExist, which is for
// objects.
func (d *Directory) there() error {
	_, err := os.Stat(d.root)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(filepath.Dir(d.root))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return away{fmt.Errorf("directory %s is not there, nor is the one above it: mount its file system, or make "+
			"the directory", d.root)}
	}
	return err
}

func (d *Directory) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

// Open opens an object. See Reader.
func (d *Directory) Open(_ context.Context, name string) (io.ReadCloser, error) {
	// Others can write to the directory: a pipe would block, and a link could lead anywhere.
	f, err := os.OpenFile(d.path(name), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, cmp.Or(d.there(), err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: errors.New("it is no regular file")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// List lists objects. See Reader.
func (d *Directory) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if err := d.there(); err != nil {
			yield(Object{}, err)
			return
		}
		base := d.path(prefix)
		if prefix != "" && !strings.HasSuffix(prefix, "/") {
			base = filepath.Dir(base)
		}
		err := filepath.WalkDir(base, func(path string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil // removed meanwhile
			case err != nil:
				return err
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case !e.Type().IsRegular() || strings.HasPrefix(e.Name(), unfinished):
				return nil
			}
			rel, err := filepath.Rel(d.root, path)
			name := filepath.ToSlash(rel)
			if err != nil || !strings.HasPrefix(name, prefix) {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return nil
			}
			if !yield(Object{Name: name, Size: info.Size(), Stored: info.ModTime()}, nil) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(Object{}, err)
		}
	}
}

// Create writes a new object. See Writer.
func (d *Directory) Create(ctx context.Context, name string, content io.ReaderAt, size int64) error {
	if _, err := os.Lstat(d.path(name)); err == nil {
		return &fs.PathError{Op: "create", Path: d.path(name), Err: fs.ErrExist}
	}
	return d.write(ctx, name, content, size, func(from, to string) error {
		err := os.Link(from, to)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return errors.Join(err, os.Remove(from))
		}
		return os.Rename(from, to) // a file system without hard links
	})
}

// Replace writes an object. See Writer.
func (d *Directory) Replace(ctx context.Context, name string, content io.ReaderAt, size int64) error {
	return d.write(ctx, name, content, size, os.Rename)
}

func (d *Directory) write(
	ctx context.Context, name string, content io.ReaderAt, size int64, publish func(from, to string) error,
) (err error) {
	if err := d.there(); err != nil {
		return err
	}
	defer func() {
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) { // of the store, not of this machine's disk
			err = fmt.Errorf("%w: %v", ErrFull, err)
		}
	}()
	path := d.path(name)
	if err := makeAll(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), unfinished+"*")
	if err != nil {
		return err
	}
	published := false
	defer func() {
		if !published {
			_ = os.Remove(f.Name())
		}
	}()
	body := &cancellable{ctx, io.NewSectionReader(content, 0, size)}
	n, err := io.Copy(f, body)
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = f.Chmod(0o444)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	err = publish(f.Name(), path)
	published = err == nil
	return err
}

// makeAll makes a directory and its parents. Each gets the rights that the group has to its parent, whatever the umask
// of the user.
func makeAll(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := makeAll(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o777); errors.Is(err, fs.ErrExist) {
		return nil // if it is no directory, the next call says so
	} else if err != nil {
		return err
	}
	var outer, inner unix.Stat_t
	if err := errors.Join(unix.Stat(above, &outer), unix.Stat(dir, &inner)); err != nil {
		return err
	}
	// In a sticky directory, such as /tmp, new directories stay with their maker.
	if outer.Gid != inner.Gid || outer.Mode&unix.S_ISVTX != 0 || outer.Mode&^inner.Mode&unix.S_IRWXG == 0 {
		return nil
	}
	return unix.Chmod(dir, uint32(inner.Mode&0o7777|outer.Mode&unix.S_IRWXG))
}

// Remove removes objects, and unfinished files of dead processes beside them. See Writer.
func (d *Directory) Remove(_ context.Context, names []string) error {
	var errs []error
	for _, name := range names {
		if err := os.Remove(d.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(d.path(name)), unfinished+"*"))
		for _, path := range left {
			if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > abandoned {
				_ = os.Remove(path)
			}
		}
	}
	return errors.Join(errs...)
}

// cancellable is a reader that ends with its context.
type cancellable struct {
	ctx context.Context
	io.Reader
}

func (r *cancellable) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}
