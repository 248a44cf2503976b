package disk

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk/tree"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Entries share equal files: trees of one repository differ in a few files of thousands. blobs/<2 digits>/<SHA-256> is
// one more name of a file of some entry, and a new entry takes that file in place of its own. A file is never written
// to after it was stored, and gets no name outside the store: commands get copies of files that they may write to.

// sharedFrom and sharedFiles bound which files are shared. To link a small file costs more than it saves.
const (
	sharedFrom  = 64 << 10 // bytes of a file
	sharedFiles = 16       // files of an entry
)

// shares reports whether a file of an entry with so many files is shared.
func shares(f *cache.File, files int) bool {
	return f.Link == "" && f.Size > 0 && (f.Size >= sharedFrom || files >= sharedFiles)
}

// blob returns the path at which the store has a file by its content.
func (d *Disk) blob(f *cache.File) string {
	name := f.SHA256
	if f.Mode&0o100 != 0 {
		name += "x"
	}
	return d.dir + sep + "blobs" + sep + f.SHA256[:2] + sep + name
}

// adopt replaces files of a tree that is becoming an entry by equal files that the store has. It returns the files that
// are new to the store. On a file system without hard links, all files are new.
func (d *Disk) adopt(t *tree.Tree) (fresh []*cache.File, err error) {
	at := &directory{root: t.Root}
	defer at.close()
	for i := range t.Files {
		f := &t.Files[i]
		if !shares(f, len(t.Files)) {
			continue
		}
		var st unix.Stat_t
		if d.whole(f, &st) {
			if err := at.open(path.Dir(f.Path)); err != nil {
				return nil, err
			}
			if err := at.replace(d.blob(f), path.Base(f.Path)); err == nil {
				continue
			} else if errors.Is(err, unix.EMLINK) { // too many names: the new file takes its place
				_ = os.Remove(d.blob(f))
			}
		}
		fresh = append(fresh, f)
	}
	return fresh, nil
}

// whole reports whether the store has a file, by its kind, size, owner and mode. It leaves the result of lstat in st.
func (d *Disk) whole(f *cache.File, st *unix.Stat_t) bool {
	return unix.Lstat(d.blob(f), st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size == f.Size &&
		int(st.Uid) == os.Geteuid() && uint32(st.Mode)&0o777 == uint32(f.Mode)&^0o222
}

// keep gives files of an entry names by which later entries find them. The files must be durable already, so that after
// a crash no name leads to a file that was not written. A file that cannot be named is not shared.
func (d *Disk) keep(t *tree.Tree, fresh []*cache.File) {
	at := &directory{root: t.Root}
	defer at.close()
	for _, f := range fresh {
		if at.open(path.Dir(f.Path)) != nil {
			return
		}
		name := d.blob(f)
		err := unix.Linkat(at.fd(), path.Base(f.Path), unix.AT_FDCWD, name, 0)
		if errors.Is(err, unix.ENOENT) && makeDir(filepath.Dir(name)) == nil {
			err = unix.Linkat(at.fd(), path.Base(f.Path), unix.AT_FDCWD, name, 0)
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			return
		}
	}
}

// release removes the shared names of files that no entry has any more. For a damaged entry it removes the names of all
// files, so that no new entry links to a damaged file. A process that links to a file meanwhile keeps its link.
func (d *Disk) release(files []cache.File, damaged bool) {
	var st unix.Stat_t
	for i := range files {
		if f := &files[i]; shares(f, len(files)) && unix.Lstat(d.blob(f), &st) == nil && (damaged || st.Nlink == 1) {
			_ = os.Remove(d.blob(f))
		}
	}
}

// releaseAll is release for all files of the store.
func (d *Disk) releaseAll() {
	shelves, _ := os.ReadDir(d.path("blobs"))
	var st unix.Stat_t
	for _, shelf := range shelves {
		names, _ := os.ReadDir(d.path("blobs", shelf.Name()))
		for _, name := range names {
			at := d.path("blobs", shelf.Name(), name.Name())
			if unix.Lstat(at, &st) == nil && st.Nlink == 1 {
				_ = os.Remove(at)
			}
		}
	}
}

// directory is the open directory of the file in hand. Files are sorted, so one directory serves many files.
type directory struct {
	root *fs.Root
	name string
	f    *os.File
}

func (d *directory) open(name string) error {
	if d.f != nil && d.name == name {
		return nil
	}
	d.close()
	var err error
	d.name = name
	d.f, err = d.root.Open(name)
	return err
}

func (d *directory) fd() int { return int(d.f.Fd()) }

func (d *directory) close() {
	if d.f != nil {
		d.f.Close()
		d.f = nil
	}
}

// replace puts the file at a path into the place of a file in the directory.
func (d *directory) replace(file, name string) error {
	for i := 0; ; i++ {
		fresh := ".benchgraph-" + strconv.Itoa(i)
		err := unix.Linkat(unix.AT_FDCWD, file, d.fd(), fresh, 0)
		if errors.Is(err, unix.EEXIST) {
			continue // a file of the result has this name
		}
		if err != nil {
			return err
		}
		if err := unix.Renameat(d.fd(), fresh, d.fd(), name); err != nil {
			return errors.Join(err, unix.Unlinkat(d.fd(), fresh, 0))
		}
		// If both names are of one file already, a rename does nothing.
		if err := unix.Unlinkat(d.fd(), fresh, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		return nil
	}
}
