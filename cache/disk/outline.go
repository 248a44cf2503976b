package disk

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/cache"
)

// Outline returns the outline of an entry: as Get saw it, or, for a new entry, as it is now; zero if the entry is gone.
func (d *Disk) Outline(m *cache.Meta) cache.Outline {
	if m.Looked != (cache.Look{}) {
		return cache.Outline{Key: m.Key, Look: m.Looked, Files: m.Files}
	}
	var st unix.Stat_t
	if d.lstat(entryPath(m.Key)+sep+cache.MetaFile, &st) != nil {
		return cache.Outline{}
	}
	o := cache.Outline{Key: m.Key, Look: cache.Look{Meta: st.Size}, Files: m.Files}
	if len(m.Files) > 0 && d.checkSize(entryPath(m.Key), &m.Files[0], &st) == nil {
		o.First = mark(&st)
	}
	return o
}

// mark tells files of the same size apart, even if a new file got the inode of a removed one.
func mark(st *unix.Stat_t) uint64 { return st.Ino*31 + uint64(st.Mtim.Nano()) }

// Intact reports whether the files of an entry still match their outline. With used, it counts as a use of the entry,
// and also checks the meta file, as Get without verify does. Of an entry without files, it always checks the meta file.
func (d *Disk) Intact(o *cache.Outline, used bool) bool {
	dir := entryPath(o.Key)
	var st unix.Stat_t
	if used || len(o.Files) == 0 {
		meta := dir + sep + cache.MetaFile
		if d.lstat(meta, &st) != nil || st.Size != o.Meta || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return false
		}
		if used {
			use(d.dir+sep+"entries"+sep+meta, time.Unix(st.Mtim.Unix()))
		}
	}
	for i := range o.Files {
		if d.checkSize(dir, &o.Files[i], &st) != nil || i == 0 && mark(&st) != o.First {
			return false
		}
	}
	return true
}

// Absent reports whether there is no entry under any of the keys and content keys.
func (d *Disk) Absent(keys, contents []cache.Key) bool {
	var st unix.Stat_t
	there := func(key cache.Key) bool { return !errors.Is(d.lstat(entryPath(key), &st), fs.ErrNotExist) }
	linked := func(content cache.Key) bool {
		return !errors.Is(unix.Lstat(d.contentLink(content), &st), fs.ErrNotExist)
	}
	return !slices.ContainsFunc(keys, there) && !slices.ContainsFunc(contents, linked)
}

// lstat is lstat of a path below entries. It uses the open directory, since a plan looks at every file of every entry.
func (d *Disk) lstat(name string, st *unix.Stat_t) error {
	return unix.Fstatat(int(d.entries.Fd()), name, st, unix.AT_SYMLINK_NOFOLLOW)
}
