package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk/tree"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Put stores a draft. See Store.
func (d *Disk) Put(ctx context.Context, draft cache.Draft) (cache.Entry, error) {
	return d.putAs(ctx, draft, (*stage).hash)
}

// Import is Put for a result that was made elsewhere: its Files are known, and their bytes were hashed as they were
// written. The error wraps ErrDamaged if the directory does not hold exactly these files.
func (d *Disk) Import(ctx context.Context, draft cache.Draft) (cache.Entry, error) {
	return d.putAs(ctx, draft, (*stage).compare)
}

// putAs is Put with a function that finds the digests of the files.
func (d *Disk) putAs(ctx context.Context, draft cache.Draft, digests func(*stage, context.Context) error) (cache.Entry,
	error) {
	if draft.Key.IsZero() {
		return cache.Entry{}, errors.New("store an entry: its key is zero")
	}
	entry, err := d.put(ctx, draft, digests)
	if err != nil {
		return cache.Entry{}, fmt.Errorf("store entry %s: %w", draft.Key.Short(), err)
	}
	return entry, nil
}

func (d *Disk) put(ctx context.Context, draft cache.Draft, digests func(*stage, context.Context) error) (cache.Entry,
	error) {
	if _, err := os.Lstat(d.entryDir(draft.Key)); err == nil { // mostly not, and this check is cheap
		if entry, err := d.Get(ctx, draft.Key, false); !errors.Is(err, cache.ErrMiss) {
			if err == nil {
				err = errors.Join(d.durable(draft.Log, nil), fs.RemoveTree(draft.Dir))
			}
			return entry, err
		}
	}
	if !d.isScratch(draft.Dir) {
		return cache.Entry{}, fmt.Errorf("%s is no scratch directory of this store", draft.Dir)
	}
	s := &stage{dir: draft.Dir, meta: draft.Meta}
	s.meta.Looked = cache.Look{} // as the entry was seen in another store
	visible := false
	defer func() {
		if !visible { // else s.dir is an entry now
			_ = fs.RemoveTree(s.dir)
		}
	}()
	if s.clear() != nil { // a directory that cannot be emptied is replaced
		var err error
		if s.dir, err = d.Scratch(); err != nil {
			return cache.Entry{}, err
		}
		const out = sep + cache.FilesDir
		if err := os.Rename(draft.Dir+out, s.dir+out); err != nil {
			return cache.Entry{}, err
		}
	}
	if err := s.open(); err != nil {
		return cache.Entry{}, err
	}
	defer s.tree.Close()
	if err := s.complete(ctx, d, digests); err != nil {
		return cache.Entry{}, err
	}
	if draft.Waits != nil {
		draft.Waits()
	}
	if err := d.durable(draft.Log, s.sync); err != nil {
		return cache.Entry{}, err
	}
	d.keep(s.tree, s.fresh)
	entry, err := d.publish(ctx, s)
	visible = err == nil
	return entry, err
}

// stage is a directory that is becoming an entry.
type stage struct {
	dir   string
	tree  *tree.Tree    // its files
	fresh []*cache.File // files that the store did not have
	meta  cache.Meta
}

// open opens the directory of the files.
func (s *stage) open() (err error) {
	out := filepath.Join(s.dir, cache.FilesDir)
	if err := openUp(out); err != nil {
		return err
	}
	mounts, err := fs.MountsBelow(out)
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("%s is a mount point, so its files are not the store's", mounts[0])
	}
	s.tree, err = tree.Open(out)
	return err
}

// clear removes everything but the directory of the files: work files of benchgraph and of the task.
func (s *stage) clear() error {
	if err := openUp(s.dir); err != nil {
		return err
	}
	names, err := os.ReadDir(s.dir)
	for _, name := range names {
		if name.Name() != cache.FilesDir {
			err = errors.Join(err, fs.RemoveTree(filepath.Join(s.dir, name.Name())))
		}
	}
	return err
}

// openUp makes sure that dir is a directory that can be changed: a task may have made it read-only, or put a link in
// its place.
func openUp(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return errors.Join(err, fmt.Errorf("%s is no directory", dir))
	}
	if info.Mode().Perm() != 0o755 {
		return os.Chmod(dir, 0o755)
	}
	return nil
}

// hash reads the files and computes their digests.
func (s *stage) hash(ctx context.Context) error { return s.tree.Hash(ctx) }

// compare takes the digests of the files from the meta, which must list exactly the files of the tree.
func (s *stage) compare(context.Context) error {
	if len(s.tree.Files) == len(s.meta.Files) {
		for i := range s.tree.Files {
			s.tree.Files[i].SHA256 = s.meta.Files[i].SHA256
		}
	}
	if diff := cache.Difference(s.tree.Files, s.meta.Files); diff != "" {
		return cache.Damage(diff)
	}
	return nil
}

// complete prepares the files, completes the meta and writes the meta file.
func (s *stage) complete(ctx context.Context, d *Disk, digests func(*stage, context.Context) error) (err error) {
	if err := s.tree.Walk(ctx, true); err != nil {
		return err
	}
	if err := digests(s, ctx); err != nil {
		return err
	}
	if s.fresh, err = d.adopt(s.tree); err != nil {
		return err
	}
	if err := s.tree.Freeze(); err != nil {
		return err
	}
	files := s.tree.Files
	s.meta.Files, s.meta.Bytes, s.meta.Digest = files, 0, cache.Digest(files)
	for _, file := range files {
		s.meta.Bytes += file.Size
	}
	if s.meta.Created.IsZero() {
		s.meta.Created = time.Now()
	}
	s.meta.Created = s.meta.Created.Round(0).UTC() // as it will be read back
	data, err := cache.EncodeMeta(s.meta)
	if err != nil {
		return err
	}
	return writeNew(filepath.Join(s.dir, cache.MetaFile), data, 0o444)
}

// writeNew creates and writes a file. It fails if the path exists, so it never follows a link that a task left there.
func writeNew(path string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// sync makes the entry durable, file by file.
func (s *stage) sync() error {
	return errors.Join(s.tree.Sync(), fs.Sync(filepath.Join(s.dir, cache.MetaFile)), fs.Sync(s.dir))
}

// publish makes a durable entry visible in one step, and makes that step durable, too. Of two processes that store the
// same key, the first wins.
func (d *Disk) publish(ctx context.Context, s *stage) (cache.Entry, error) {
	final := d.entryDir(s.meta.Key)
	if err := makeDir(filepath.Dir(final)); err != nil {
		return cache.Entry{}, err
	}
	for {
		err := os.Rename(s.dir, final)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrExist) {
			return cache.Entry{}, err
		}
		// Another process was faster. If its entry is damaged, Get moves the entry away, and the next rename succeeds.
		if entry, err := d.Get(context.WithoutCancel(ctx), s.meta.Key, false); !errors.Is(err, cache.ErrMiss) {
			return entry, err
		}
	}
	if err := os.Chmod(final, 0o555); err != nil {
		return cache.Entry{}, err
	}
	changed := []string{filepath.Dir(final), d.path("entries")}
	if !s.meta.Content.IsZero() {
		place := d.contentLink(s.meta.Content)
		if err := link(place, s); err != nil {
			return cache.Entry{}, err
		}
		changed = append(changed, filepath.Dir(place), d.path("content"))
	}
	err := d.durable(nil, func() error {
		var errs []error
		for _, dir := range changed {
			errs = append(errs, fs.Sync(dir))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return cache.Entry{}, err
	}
	return cache.Entry{Meta: s.meta, Dir: filepath.Join(final, cache.FilesDir)}, nil
}

// link makes the content key at place lead to the entry.
func link(place string, s *stage) error {
	if err := makeDir(filepath.Dir(place)); err != nil {
		return err
	}
	target := s.meta.Key.String()
	err := os.Symlink(target, place)
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	fresh := s.dir + ".link" // no other process uses this name
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, place)
}

// makeDir makes one directory unless it is there.
func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// durable makes a log durable, with everything that was written to the store so far. It shares a sync with other
// callers, or, if the file system cannot do that, calls each to sync the files one by one.
func (d *Disk) durable(log *os.File, each func() error) error {
	var err error
	if log != nil && (d.rounds == nil || !d.rounds.Covers(log)) {
		err = log.Sync()
	}
	switch {
	case d.rounds != nil:
		err = errors.Join(err, d.rounds.Wait())
	case each != nil:
		err = errors.Join(err, each())
	}
	return err
}

// Expect tells the store whether more results are on their way. If so, a caller that waits for the disk waits a moment
// longer, so that others can share the sync.
func (d *Disk) Expect(more bool) {
	if d.rounds != nil {
		d.rounds.Expect(more)
	}
}
