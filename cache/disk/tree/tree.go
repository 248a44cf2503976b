// Package tree lists, reads and seals the files of an entry, and turns the output of a task into such files.
package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Tree is a directory with the files of an entry, or of a future entry. All access goes through an os.Root, so that a
// link that a task left behind cannot lead out of it.
type Tree struct {
	Root  *fs.Root
	Files []cache.File // sorted by path
	dirs  []string     // each after its parent
}

func Open(dir string) (*Tree, error) {
	root, err := fs.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Tree{Root: root}, nil
}

func (t *Tree) Close() { t.Root.Close() }

// inode identifies a file on this machine.
type inode struct{ dev, ino uint64 }

// Walk lists the files. With admit, it also prepares a task's output for the store: it makes files read-only and
// removes sockets and pipes that a server left. Then a device, a file with another name outside, or a link that leads
// out is an error.
func (t *Tree) Walk(ctx context.Context, admit bool) error {
	names := map[inode]int{}
	links := map[inode]uint64{}
	sample := map[inode]string{}
	visit := func(name string, info os.FileInfo) error {
		file := cache.File{Path: name, Size: info.Size(), Mode: cache.ModePlain}
		switch info.Mode().Type() {
		case 0:
			if info.Mode()&0o100 != 0 {
				file.Mode = cache.ModeExecutable
			}
			if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
				id := inode{uint64(st.Dev), st.Ino}
				names[id]++
				links[id], sample[id] = uint64(st.Nlink), name
			}
			if admit {
				if err := t.Root.Chmod(name, os.FileMode(file.Mode&^0o222)); err != nil {
					return err
				}
			}
		case os.ModeSymlink:
			target, err := t.Root.Readlink(name)
			if err != nil {
				return err
			}
			file.Link, file.Size, file.Mode = target, 0, cache.ModePlain
		case os.ModeSocket, os.ModeNamedPipe:
			if admit {
				return t.Root.Remove(name)
			}
			return cache.Damage(name + " was added")
		default:
			return cache.Damage(name + " is a device; a result holds only files, directories and links")
		}
		t.Files = append(t.Files, file)
		return nil
	}
	if err := t.walkDir(ctx, ".", admit, visit); err != nil {
		return err
	}
	slices.SortFunc(t.Files, func(a, b cache.File) int { return strings.Compare(a.Path, b.Path) })
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

func (t *Tree) walkDir(ctx context.Context, dir string, admit bool, visit func(string, os.FileInfo) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(dir) > cache.LongestPath {
		return cache.Damage(fmt.Sprintf("%.60s… has a path of more than %d bytes", dir, cache.LongestPath))
	}
	t.dirs = append(t.dirs, dir)
	f, err := t.Root.Open(dir)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		info, err := t.Root.Lstat(name)
		switch {
		case err != nil:
		case info.IsDir():
			if admit && info.Mode().Perm() != 0o755 {
				err = t.Root.Chmod(name, 0o755)
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

// checkLinks refuses links that lead out of the tree. Only following them shows that: link/../.. depends on the target
// of link.
func (t *Tree) checkLinks() error {
	for _, file := range t.Files {
		if file.Link == "" {
			continue
		}
		_, err := t.Root.Stat(file.Path)
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

// Hash reads every file and fills in its size and SHA-256.
func (t *Tree) Hash(ctx context.Context) error {
	if len(t.Files) == 1 && t.Files[0].Link == "" { // as mostly; a goroutine would cost more than the reading
		return t.hashFile(ctx, &t.Files[0])
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range t.Files {
		if t.Files[i].Link != "" {
			continue
		}
		g.Go(func() error { return t.hashFile(ctx, &t.Files[i]) })
	}
	return g.Wait()
}

func (t *Tree) hashFile(ctx context.Context, file *cache.File) error {
	f, err := t.Root.OpenFile(file.Path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return err
	}
	sum, size, err := cache.HashReader(ctx, f)
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

// syncers is the number of files that are synced at once: a sync waits for the disk, not for processors, and a
// journalling file system commits waiting files together.
const syncers = 16

// Freeze makes the directories read-only.
func (t *Tree) Freeze() error {
	for _, dir := range slices.Backward(t.dirs) {
		if err := t.Root.Chmod(dir, 0o555); err != nil {
			return err
		}
	}
	return nil
}

// Sync makes the files, then the directories, durable.
func (t *Tree) Sync() error {
	var g errgroup.Group
	g.SetLimit(syncers)
	for _, file := range t.Files {
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

func (t *Tree) syncOne(name string) error {
	f, err := t.Root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
