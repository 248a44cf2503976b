package cache

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

	"github.com/benchgraph/benchgraph/internal/fs"
)

// FilesDir is the directory of an entry that holds its files.
const FilesDir = "out"

// damage is why an entry cannot be served, now or ever. Other errors (no file descriptor left, say) condemn no entry.
type damage string

func (d damage) Error() string { return string(d) }

// Is makes a damage an ErrDamaged.
func (d damage) Is(target error) bool { return target == ErrDamaged }

const sep = string(filepath.Separator)

func (d *Disk) entryDir(key Key) string { return d.dir + sep + "entries" + sep + entryPath(key) }

// entryPath is the place of an entry below entries.
func entryPath(key Key) string {
	name := key.String()
	return name[:2] + sep + name
}

// Get returns the entry of a key. See Store.
func (d *Disk) Get(ctx context.Context, key Key, verify bool) (Entry, error) {
	if verify {
		entry, _, err := d.GetSealed(ctx, key)
		return entry, err
	}
	return d.get(ctx, key, func(Entry) error { return nil })
}

// GetSealed is Get with verify, and returns the state in which the files were when they were checked.
func (d *Disk) GetSealed(ctx context.Context, key Key) (entry Entry, sealed Seal, err error) {
	entry, err = d.get(ctx, key, func(e Entry) error {
		var err error
		if sealed, err = d.seal(&e.Meta); err != nil {
			sealed = Seal{} // check reports the damage
		}
		return check(ctx, e)
	})
	return entry, sealed, err
}

// get loads an entry and checks it.
func (d *Disk) get(ctx context.Context, key Key, check func(Entry) error) (Entry, error) {
	if ctx.Err() != nil {
		return Entry{}, context.Cause(ctx)
	}
	entry, err := d.load(key)
	if err == nil {
		err = check(entry)
	}
	if broken, ok := errors.AsType[damage](err); ok {
		return Entry{}, fmt.Errorf("entry %s: %w: %w; %s", key.Short(), ErrMiss, broken, d.quarantine(key, broken))
	}
	if err != nil {
		return Entry{}, fmt.Errorf("entry %s: %w", key.Short(), err)
	}
	return entry, nil
}

// UseGrain is how exactly the time of an entry's last use is known. Writing it at every use would wear disks.
const UseGrain = time.Hour

// load reads an entry's meta file and compares the names, kinds and sizes of its files.
func (d *Disk) load(key Key) (Entry, error) {
	dir := d.entryDir(key)
	meta, used, err := d.readMeta(entryPath(key))
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
			return Entry{}, fmt.Errorf("%w: never stored, or removed", ErrMiss)
		}
		return Entry{}, damage("its meta file is missing")
	}
	if err != nil {
		return Entry{}, err
	}
	if meta.Key != key {
		return Entry{}, damage("its meta file is that of " + meta.Key.Short())
	}
	entry := Entry{Meta: meta, Dir: filepath.Join(dir, FilesDir)}
	if err := d.checkSizes(&entry.Meta); err != nil {
		return Entry{}, err
	}
	use(filepath.Join(dir, metaFile), used)
	return entry, nil
}

// readMeta reads the meta file of the entry in a directory below entries. Its time is that of the entry's last use. It
// makes no os.File, which would cost as much as all the rest: a plan reads the meta files of all entries.
func (d *Disk) readMeta(dir string) (m Meta, used time.Time, err error) {
	name := dir + sep + metaFile
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := interrupted(func() (int, error) { return unix.Openat(int(d.entries.Fd()), name, flags, 0) })
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return m, used, damage("it is no directory")
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO): // a link, a socket
		return m, used, damage("its meta file is no regular file")
	case err != nil:
		return m, used, fmt.Errorf("open %s: %w", d.path("entries", name), err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil:
		return m, used, fmt.Errorf("stat %s: %w", d.path("entries", name), err)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return m, used, damage("its meta file is no regular file")
	case st.Size > LongestMeta:
		return m, used, damage("its meta file is too long")
	}
	// What is in an entry is believed if its meta file is, so nobody else may have written that.
	if err := fs.OwnedBy(int(st.Uid), os.FileMode(st.Mode).Perm()); err != nil {
		return m, used, damage("its meta file cannot be trusted: " + err.Error())
	}
	data := make([]byte, st.Size)
	for n, got := 0, 0; n < len(data); n += got {
		if got, err = interrupted(func() (int, error) { return unix.Read(fd, data[n:]) }); err != nil {
			return m, used, fmt.Errorf("read %s: %w", d.path("entries", name), err)
		} else if got == 0 {
			return m, used, io.ErrUnexpectedEOF
		}
	}
	if m, err = DecodeMeta(data); err != nil {
		return m, used, damage(err.Error())
	}
	m.looked.meta = st.Size
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

// checkSizes compares what the directory tells of the files with what was recorded.
func (d *Disk) checkSizes(m *Meta) error {
	dir := entryPath(m.Key)
	var st unix.Stat_t
	for i := range m.Files {
		if err := d.checkSize(dir, &m.Files[i], &st); err != nil {
			return err
		}
		if i == 0 {
			m.looked.first = mark(&st)
		}
	}
	return nil
}

// checkSize is checkSizes for one file of the entry in a directory below entries. What the directory tells is left in
// st.
func (d *Disk) checkSize(dir string, file *File, st *unix.Stat_t) error {
	err := d.lstat(dir+sep+FilesDir+sep+filepath.FromSlash(file.Path), st)
	kind := st.Mode & unix.S_IFMT
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), err == nil &&
		(kind == unix.S_IFLNK) != (file.Link != ""):
		return damage(file.Path + " is missing")
	case errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EINVAL):
		return damage(fmt.Sprintf("%.80q cannot be the name of a file here", file.Path))
	case err != nil:
		return &os.PathError{Op: "lstat", Path: filepath.Join(d.dir, "entries", dir, FilesDir,
			filepath.FromSlash(file.Path)), Err: err}
	case file.Link == "" && kind != unix.S_IFREG:
		return damage(file.Path + " is no regular file")
	case file.Link == "" && st.Size != file.Size:
		return damage(fmt.Sprintf("%s has %d bytes instead of %d", file.Path, st.Size, file.Size))
	}
	return nil
}

// use notes that the entry with a meta file was used now, and before at a time.
func use(meta string, before time.Time) {
	// A use in the future is one before the clock was set back.
	if now := time.Now(); now.Sub(before).Abs() > UseGrain {
		_ = os.Chtimes(meta, now, now) // only the order of later collections depends on it
	}
}

// check reads all files of an entry and compares them with what was recorded.
func check(ctx context.Context, e Entry) error {
	// A link in the place of a directory leads to files that can be changed elsewhere.
	for _, dir := range []string{filepath.Dir(e.Dir), e.Dir} {
		info, err := os.Lstat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return damage("its directory of files is missing")
		case err != nil:
			return err
		case !info.IsDir():
			return damage("its directory of files is no directory")
		}
	}
	t, err := openTree(e.Dir)
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.walk(ctx, false); err != nil {
		return err
	}
	err = t.hash(ctx)
	if errors.Is(err, os.ErrNotExist) {
		return damage(err.Error())
	}
	if err != nil {
		return err
	}
	if diff := difference(t.files, e.Files); diff != "" {
		return damage(diff)
	}
	if digest(e.Files) != e.Digest {
		return damage("its digest is not that of its files")
	}
	return nil
}

// Seal is the state in which the files of an entry were at a time.
type Seal struct {
	stamps []Stamp
	at     time.Time
}

// seal returns the state of an entry's files, and of their directories, to which files could be added. It belongs
// before the check of the bytes.
func (d *Disk) seal(m *Meta) (Seal, error) {
	seal := Seal{stamps: make([]Stamp, 0, len(m.Files)+1), at: time.Now()}
	dir := entryPath(m.Key)
	dirs := []string{"."}
	var st unix.Stat_t
	for i := range m.Files {
		if err := d.checkSize(dir, &m.Files[i], &st); err != nil {
			return seal, err
		}
		seal.stamps = append(seal.stamps, StampOf(&st))
		dirs = append(dirs, path.Dir(m.Files[i].Path))
	}
	seen := map[string]bool{}
	for _, at := range dirs {
		for ; !seen[at]; at = path.Dir(at) {
			seen[at] = true
			name := dir + sep + FilesDir + sep + filepath.FromSlash(at)
			if err := d.lstat(name, &st); err != nil {
				return seal, &os.PathError{Op: "lstat", Path: name, Err: err}
			}
			seal.stamps = append(seal.stamps, StampOf(&st))
		}
	}
	return seal, nil
}

// Untouched reports whether the files of an entry are certainly as they were when the entry was sealed. A file that was
// new then may have changed again without another stamp, and does not count as untouched.
func (d *Disk) Untouched(m *Meta, sealed Seal) bool {
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

// quarantine moves a damaged entry out of the way, where it can be looked at, and says so.
func (d *Disk) quarantine(key Key, reason damage) string {
	place, err := os.MkdirTemp(d.path("quarantine"), key.Short()+"-*")
	if err != nil {
		return err.Error()
	}
	dir := d.entryDir(key)
	if meta, _, err := d.readMeta(entryPath(key)); err == nil {
		d.forget(meta.Files)
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

// SetAside moves an entry that is not to count to the quarantine, as it does damaged ones. A missing entry is no error.
func (d *Disk) SetAside(key Key, reason string) error {
	done := d.quarantine(key, damage(reason))
	if _, err := os.Lstat(d.entryDir(key)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("entry %s: %s", key.Short(), done)
}

// moveAway renames what is in an entry's place.
func moveAway(dir, to string) error {
	if info, err := os.Lstat(dir); err == nil && info.IsDir() { // of a link, the target would be changed
		_ = os.Chmod(dir, 0o755) // a directory that cannot be written to cannot be moved
	}
	return os.Rename(dir, to)
}

// Find returns the entry of a content key. See Store.
func (d *Disk) Find(ctx context.Context, content Key) (Entry, error) {
	if content.IsZero() {
		return Entry{}, fmt.Errorf("content key: %w: it is zero", ErrMiss)
	}
	target, err := os.Readlink(d.contentLink(content))
	if errors.Is(err, os.ErrNotExist) {
		return Entry{}, fmt.Errorf("content %s: %w: never stored, or removed", content.Short(), ErrMiss)
	}
	if err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: it is no link
		return Entry{}, err
	}
	key, err := ParseKey(target)
	if err != nil {
		_ = fs.RemoveTree(d.contentLink(content)) // it may be in the way of a new one
		return Entry{}, fmt.Errorf("content %s: %w: its link is damaged", content.Short(), ErrMiss)
	}
	entry, err := d.Get(ctx, key, false)
	if err == nil && entry.Content != content {
		return Entry{}, fmt.Errorf("content %s: %w: it was stored anew with other inputs", content.Short(), ErrMiss)
	}
	return entry, err
}

func (d *Disk) contentLink(content Key) string {
	name := content.String()
	return d.path("content", name[:2], name)
}
