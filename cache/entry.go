package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// outDir is the directory of an entry that holds its files.
const outDir = "out"

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
	if ctx.Err() != nil {
		return Entry{}, context.Cause(ctx)
	}
	entry, err := d.load(key)
	if err == nil && verify {
		err = check(ctx, entry)
	}
	var broken damage
	if errors.As(err, &broken) {
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
	meta, used, err := readMeta(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
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
	entry := Entry{Meta: meta, Dir: filepath.Join(dir, outDir)}
	if err := checkSizes(entry); err != nil {
		return Entry{}, err
	}
	// A use in the future is one before the clock was set back.
	if now := time.Now(); now.Sub(used).Abs() > UseGrain {
		_ = os.Chtimes(filepath.Join(dir, metaFile), now, now) // only the order of later collections depends on it
	}
	return entry, nil
}

// readMeta reads the meta file in the directory of an entry. Its time is that of the entry's last use.
func readMeta(dir string) (m Meta, used time.Time, err error) {
	f, info, err := openRegular(filepath.Join(dir, metaFile))
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return m, used, damage("it is no directory")
	case errors.Is(err, errIrregular):
		return m, used, damage("its meta file is no regular file")
	case err != nil:
		return m, used, err
	}
	defer f.Close()
	if info.Size() > longestMeta {
		return m, used, damage("its meta file is too long")
	}
	// What is in an entry is believed if its meta file is, so nobody else may have written that.
	if err := owned(info); err != nil {
		return m, used, damage("its meta file cannot be trusted: " + err.Error())
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return m, used, err
	}
	if m, err = decodeMeta(data); err != nil {
		return m, used, damage(err.Error())
	}
	return m, info.ModTime(), nil
}

// checkSizes compares what the directory tells of the files with what was recorded.
func checkSizes(e Entry) error {
	for _, file := range e.Files {
		info, err := os.Lstat(e.Dir + string(filepath.Separator) + filepath.FromSlash(file.Path))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), err == nil && (info.Mode()&fs.ModeSymlink != 0) != (file.Link != ""):
			return damage(file.Path + " is missing")
		case err != nil:
			return err
		case file.Link == "" && !info.Mode().IsRegular():
			return damage(file.Path + " is no regular file")
		case file.Link == "" && info.Size() != file.Size:
			return damage(fmt.Sprintf("%s has %d bytes instead of %d", file.Path, info.Size(), file.Size))
		}
	}
	return nil
}

// check reads all files of an entry and compares them with what was recorded.
func check(ctx context.Context, e Entry) error {
	// A link in the place of a directory leads to files that can be changed elsewhere.
	for _, dir := range []string{filepath.Dir(e.Dir), e.Dir} {
		info, err := os.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
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
	if errors.Is(err, fs.ErrNotExist) {
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

// quarantine moves a damaged entry out of the way, where it can be looked at, and says so.
func (d *Disk) quarantine(key Key, reason damage) string {
	place, err := os.MkdirTemp(d.path("quarantine"), key.Short()+"-*")
	if err != nil {
		return err.Error()
	}
	dir := d.entryDir(key)
	if err := moveAway(dir, filepath.Join(place, "entry")); err != nil {
		_ = os.Remove(place)
		if errors.Is(err, fs.ErrNotExist) {
			return "another process has removed it"
		}
		return err.Error()
	}
	_ = os.WriteFile(filepath.Join(place, "reason"), []byte(key.String()+": "+string(reason)+"\n"), 0o644)
	return "moved to " + place
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
	if errors.Is(err, fs.ErrNotExist) {
		return Entry{}, fmt.Errorf("content %s: %w: never stored, or removed", content.Short(), ErrMiss)
	}
	if err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: it is no link
		return Entry{}, err
	}
	key, err := ParseKey(target)
	if err != nil {
		_ = RemoveTree(d.contentLink(content)) // it may be in the way of a new one
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

// Put stores the files below dir, which Scratch gave or which lies below what Scratch gave. See Store.
func (d *Disk) Put(ctx context.Context, dir string, meta Meta) (Entry, error) {
	if meta.Key.IsZero() {
		return Entry{}, errors.New("store an entry: its key is zero")
	}
	entry, err := d.put(ctx, dir, meta)
	if err != nil {
		return Entry{}, fmt.Errorf("store entry %s: %w", meta.Key.Short(), err)
	}
	return entry, nil
}

func (d *Disk) put(ctx context.Context, dir string, meta Meta) (Entry, error) {
	if entry, err := d.Get(ctx, meta.Key, false); !errors.Is(err, ErrMiss) {
		if err == nil {
			err = RemoveTree(dir)
		}
		return entry, err
	}
	stage, err := d.Scratch()
	if err != nil {
		return Entry{}, err
	}
	if !strings.HasPrefix(dir, filepath.Dir(stage)+string(filepath.Separator)) {
		return Entry{}, fmt.Errorf("%s does not lie in a scratch directory of this store", dir)
	}
	defer RemoveTree(stage) // gone already when all went well
	if err := fill(ctx, stage, dir, &meta); err != nil {
		return Entry{}, err
	}
	return d.publish(ctx, stage, meta)
}

// fill makes stage the directory of an entry: it takes the files over from dir, and completes and writes meta.
func fill(ctx context.Context, stage, dir string, meta *Meta) error {
	// A task may have put a link in the directory's place, or made it read-only, so that it cannot be moved.
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return errors.Join(err, fmt.Errorf("%s is no directory", dir))
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	out := filepath.Join(stage, outDir)
	if err := os.Rename(dir, out); err != nil {
		return err
	}
	t, err := openTree(out)
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.walk(ctx, true); err != nil {
		return err
	}
	if err := t.hash(ctx); err != nil {
		return err
	}
	if err := t.sync(ctx); err != nil {
		return err
	}
	meta.Files, meta.Bytes, meta.Digest = t.files, 0, digest(t.files)
	for _, file := range t.files {
		meta.Bytes += file.Size
	}
	if meta.Created.IsZero() {
		meta.Created = time.Now()
	}
	meta.Created = meta.Created.Round(0).UTC() // as it will be read back
	data, err := encodeMeta(*meta)
	if err != nil {
		return err
	}
	name := filepath.Join(stage, metaFile)
	if err := writeFile(name, data); err != nil {
		return err
	}
	return os.Chmod(name, 0o444)
}

// publish makes the entry visible in one step. Of two processes that store the same key the first wins.
func (d *Disk) publish(ctx context.Context, stage string, meta Meta) (Entry, error) {
	final := d.entryDir(meta.Key)
	if err := makeDir(filepath.Dir(final)); err != nil {
		return Entry{}, err
	}
	for {
		err := os.Rename(stage, final)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return Entry{}, err
		}
		// Another process was faster. If its entry is damaged, Get moves it away, and the place is free.
		if entry, err := d.Get(ctx, meta.Key, false); !errors.Is(err, ErrMiss) {
			return entry, err
		}
	}
	if err := syncDir(filepath.Dir(final)); err != nil {
		return Entry{}, err
	}
	if err := os.Chmod(final, 0o555); err != nil {
		return Entry{}, err
	}
	if err := d.link(meta); err != nil {
		return Entry{}, err
	}
	return Entry{Meta: meta, Dir: filepath.Join(final, outDir)}, nil
}

// link makes the entry the one that its content key finds.
func (d *Disk) link(meta Meta) error {
	if meta.Content.IsZero() {
		return nil
	}
	place := d.contentLink(meta.Content)
	if err := makeDir(filepath.Dir(place)); err != nil {
		return err
	}
	beside, err := d.Scratch()
	if err != nil {
		return err
	}
	defer RemoveTree(beside)
	fresh := filepath.Join(beside, "link")
	if err := os.Symlink(meta.Key.String(), fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, place); err != nil {
		return err
	}
	return syncDir(filepath.Dir(place))
}

// makeDir makes one directory, durably, unless it is there.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}
