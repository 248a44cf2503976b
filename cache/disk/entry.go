package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk/tree"
	"github.com/benchgraph/benchgraph/internal/fs"
)

const sep = string(filepath.Separator)

func (d *Disk) entryDir(key cache.Key) string { return d.dir + sep + "entries" + sep + entryPath(key) }

// entryPath returns the path of an entry below entries.
func entryPath(key cache.Key) string {
	name := key.String()
	return name[:2] + sep + name
}

// Get returns the entry of a key. See Store.
func (d *Disk) Get(ctx context.Context, key cache.Key, verify bool) (cache.Entry, error) {
	if verify {
		entry, _, err := d.GetSealed(ctx, key)
		return entry, err
	}
	return d.get(ctx, key, func(cache.Entry) error { return nil })
}

// GetSealed is Get with verify, and also returns the state of the files at the time of the check.
func (d *Disk) GetSealed(ctx context.Context, key cache.Key) (entry cache.Entry, sealed Seal, err error) {
	entry, err = d.get(ctx, key, func(e cache.Entry) error {
		var err error
		if sealed, err = d.seal(&e.Meta); err != nil {
			sealed = Seal{} // check reports the damage
		}
		return check(ctx, e)
	})
	return entry, sealed, err
}

// get loads an entry and checks it.
func (d *Disk) get(ctx context.Context, key cache.Key, check func(cache.Entry) error) (cache.Entry, error) {
	if ctx.Err() != nil {
		return cache.Entry{}, context.Cause(ctx)
	}
	entry, err := d.load(key)
	if err == nil {
		err = check(entry)
	}
	if broken, ok := errors.AsType[cache.Damage](err); ok {
		return cache.Entry{}, fmt.Errorf("entry %s: %w: %w; %s", key.Short(), cache.ErrMiss, broken,
			d.quarantine(key, broken))
	}
	if err != nil {
		return cache.Entry{}, fmt.Errorf("entry %s: %w", key.Short(), err)
	}
	return entry, nil
}

// load reads an entry's meta file, and compares names, kinds and sizes of the files with it.
func (d *Disk) load(key cache.Key) (cache.Entry, error) {
	dir := d.entryDir(key)
	meta, used, err := d.readMeta(entryPath(key))
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
			return cache.Entry{}, fmt.Errorf("%w: never stored, or removed", cache.ErrMiss)
		}
		return cache.Entry{}, cache.Damage("its meta file is missing")
	}
	if err != nil {
		return cache.Entry{}, err
	}
	if meta.Key != key {
		return cache.Entry{}, cache.Damage("its meta file is that of " + meta.Key.Short())
	}
	entry := cache.Entry{Meta: meta, Dir: filepath.Join(dir, cache.FilesDir)}
	if err := d.checkSizes(&entry.Meta); err != nil {
		return cache.Entry{}, err
	}
	use(filepath.Join(dir, cache.MetaFile), used)
	return entry, nil
}

// readMeta reads the meta file of the entry in a directory below entries. used, the time of the file, is that of the
// entry's last use. It makes no os.File, which would double the cost: a plan reads the meta files of all entries.
func (d *Disk) readMeta(dir string) (m cache.Meta, used time.Time, err error) {
	name := dir + sep + cache.MetaFile
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := interrupted(func() (int, error) { return unix.Openat(int(d.entries.Fd()), name, flags, 0) })
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return m, used, cache.Damage("it is no directory")
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO): // a link, a socket
		return m, used, cache.Damage("its meta file is no regular file")
	case err != nil:
		return m, used, fmt.Errorf("open %s: %w", d.path("entries", name), err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil:
		return m, used, fmt.Errorf("stat %s: %w", d.path("entries", name), err)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return m, used, cache.Damage("its meta file is no regular file")
	case st.Size > cache.LongestMeta:
		return m, used, cache.Damage("its meta file is too long")
	}
	// If a meta file is believed, the whole entry is, so nobody else may have written the meta file.
	if err := fs.OwnedBy(int(st.Uid), os.FileMode(st.Mode).Perm()); err != nil {
		return m, used, cache.Damage("its meta file cannot be trusted: " + err.Error())
	}
	data := make([]byte, st.Size)
	for n, got := 0, 0; n < len(data); n += got {
		if got, err = interrupted(func() (int, error) { return unix.Read(fd, data[n:]) }); err != nil {
			return m, used, fmt.Errorf("read %s: %w", d.path("entries", name), err)
		} else if got == 0 {
			return m, used, io.ErrUnexpectedEOF
		}
	}
	if m, err = cache.DecodeMeta(data); err != nil {
		return m, used, cache.Damage(err.Error())
	}
	m.Looked.Meta = st.Size
	return m, time.Unix(st.Mtim.Unix()), nil
}

// interrupted repeats a system call until no signal interrupts it.
func interrupted(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

// checkSizes compares the names, kinds and sizes of an entry's files with its meta.
func (d *Disk) checkSizes(m *cache.Meta) error {
	dir := entryPath(m.Key)
	var st unix.Stat_t
	for i := range m.Files {
		if err := d.checkSize(dir, &m.Files[i], &st); err != nil {
			return err
		}
		if i == 0 {
			m.Looked.First = mark(&st)
		}
	}
	return nil
}

// checkSize is checkSizes for one file of the entry in a directory below entries. It leaves the result of lstat in st.
func (d *Disk) checkSize(dir string, file *cache.File, st *unix.Stat_t) error {
	err := d.lstat(dir+sep+cache.FilesDir+sep+filepath.FromSlash(file.Path), st)
	kind := st.Mode & unix.S_IFMT
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), err == nil &&
		(kind == unix.S_IFLNK) != (file.Link != ""):
		return cache.Damage(file.Path + " is missing")
	case errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EINVAL):
		return cache.Damage(fmt.Sprintf("%.80q cannot be the name of a file here", file.Path))
	case err != nil:
		return &os.PathError{Op: "lstat", Path: filepath.Join(d.dir, "entries", dir, cache.FilesDir,
			filepath.FromSlash(file.Path)), Err: err}
	case file.Link == "" && kind != unix.S_IFREG:
		return cache.Damage(file.Path + " is no regular file")
	case file.Link == "" && st.Size != file.Size:
		return cache.Damage(fmt.Sprintf("%s has %d bytes instead of %d", file.Path, st.Size, file.Size))
	}
	return nil
}

// use notes that the entry of a meta file was used now; before is the time of the use before.
func use(meta string, before time.Time) {
	// A use in the future was noted before the clock was set back.
	if now := time.Now(); now.Sub(before).Abs() > cache.UseGrain {
		_ = os.Chtimes(meta, now, now) // only the order of later collections depends on it
	}
}

// check reads all files of an entry, and compares them with its meta.
func check(ctx context.Context, e cache.Entry) error {
	// If a link is in the place of a directory, its files can be changed elsewhere.
	for _, dir := range []string{filepath.Dir(e.Dir), e.Dir} {
		info, err := os.Lstat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return cache.Damage("its directory of files is missing")
		case err != nil:
			return err
		case !info.IsDir():
			return cache.Damage("its directory of files is no directory")
		}
	}
	t, err := tree.Open(e.Dir)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := t.Walk(ctx, false); err != nil {
		return err
	}
	err = t.Hash(ctx)
	if errors.Is(err, os.ErrNotExist) {
		return cache.Damage(err.Error())
	}
	if err != nil {
		return err
	}
	if diff := cache.Difference(t.Files, e.Files); diff != "" {
		return cache.Damage(diff)
	}
	if cache.Digest(e.Files) != e.Digest {
		return cache.Damage("its digest is not that of its files")
	}
	return nil
}

// Seal is the state of the files of an entry at a time.
type Seal struct {
	stamps []cache.Stamp
	at     time.Time
}

// seal returns the state of an entry's files and of their directories, since files could be added there. It must be
// called before the bytes are checked.
func (d *Disk) seal(m *cache.Meta) (Seal, error) {
	seal := Seal{stamps: make([]cache.Stamp, 0, len(m.Files)+1), at: time.Now()}
	dir := entryPath(m.Key)
	dirs := []string{"."}
	var st unix.Stat_t
	for i := range m.Files {
		if err := d.checkSize(dir, &m.Files[i], &st); err != nil {
			return seal, err
		}
		seal.stamps = append(seal.stamps, cache.StampOf(&st))
		dirs = append(dirs, path.Dir(m.Files[i].Path))
	}
	seen := map[string]bool{}
	for _, at := range dirs {
		for ; !seen[at]; at = path.Dir(at) {
			seen[at] = true
			name := dir + sep + cache.FilesDir + sep + filepath.FromSlash(at)
			if err := d.lstat(name, &st); err != nil {
				return seal, &os.PathError{Op: "lstat", Path: name, Err: err}
			}
			seal.stamps = append(seal.stamps, cache.StampOf(&st))
		}
	}
	return seal, nil
}

// Untouched reports whether the files of an entry are certainly the same as at the time of the seal. A file that was
// changed shortly before the seal does not count as untouched: it may have changed again without another stamp.
func (d *Disk) Untouched(m *cache.Meta, sealed Seal) bool {
	now, err := d.seal(m)
	if err != nil || len(now.stamps) != len(sealed.stamps) {
		return false
	}
	for i, stamp := range now.stamps {
		if stamp != sealed.stamps[i] || !stamp.Settled(sealed.at) {
			return false
		}
	}
	return true
}

// quarantine moves a damaged entry out of the way, where people can look at it, and returns what it did.
func (d *Disk) quarantine(key cache.Key, reason cache.Damage) string {
	place, err := os.MkdirTemp(d.path("quarantine"), key.Short()+"-*")
	if err != nil {
		return err.Error()
	}
	dir := d.entryDir(key)
	if meta, _, err := d.readMeta(entryPath(key)); err == nil {
		d.release(meta.Files, true)
	}
	if err := moveAway(dir, filepath.Join(place, "entry")); err != nil {
		_ = os.Remove(place)
		if errors.Is(err, os.ErrNotExist) {
			return "another process has removed it"
		}
		return err.Error()
	}
	_ = os.WriteFile(filepath.Join(place, "reason"), []byte(key.String()+": "+string(reason)+"\n"), 0o644)
	return "moved to " + place
}

// SetAside moves an entry to the quarantine, so that it does not count any more. A missing entry is no error.
func (d *Disk) SetAside(key cache.Key, reason string) error {
	done := d.quarantine(key, cache.Damage(reason))
	if _, err := os.Lstat(d.entryDir(key)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("entry %s: %s", key.Short(), done)
}

// moveAway renames an entry's directory, or whatever is in its place.
func moveAway(dir, to string) error {
	if info, err := os.Lstat(dir); err == nil && info.IsDir() { // chmod of a link would change its target
		_ = os.Chmod(dir, 0o755) // a directory that cannot be written to cannot be moved
	}
	return os.Rename(dir, to)
}

// Find returns the entry of a content key. See Store.
func (d *Disk) Find(ctx context.Context, content cache.Key) (cache.Entry, error) {
	if content.IsZero() {
		return cache.Entry{}, fmt.Errorf("content key: %w: it is zero", cache.ErrMiss)
	}
	target, err := os.Readlink(d.contentLink(content))
	if errors.Is(err, os.ErrNotExist) {
		return cache.Entry{}, fmt.Errorf("content %s: %w: never stored, or removed", content.Short(), cache.ErrMiss)
	}
	if err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: it is no link
		return cache.Entry{}, err
	}
	key, err := cache.ParseKey(target)
	if err != nil {
		_ = fs.RemoveTree(d.contentLink(content)) // it may be in the way of a new one
		return cache.Entry{}, fmt.Errorf("content %s: %w: its link is damaged", content.Short(), cache.ErrMiss)
	}
	entry, err := d.Get(ctx, key, false)
	if err == nil && entry.Content != content {
		return cache.Entry{}, fmt.Errorf("content %s: %w: it was stored anew with other inputs", content.Short(),
			cache.ErrMiss)
	}
	return entry, err
}

func (d *Disk) contentLink(content cache.Key) string {
	name := content.String()
	return d.path("content", name[:2], name)
}
