package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// Put stores a draft. See Store.
func (d *Disk) Put(ctx context.Context, draft Draft) (Entry, error) {
	return d.putAs(ctx, draft, (*stage).hash)
}

// Import is Put for a result that was made elsewhere: its Files are known, and their bytes were hashed as they were
// written. The error wraps ErrDamaged if the directory holds anything else.
func (d *Disk) Import(ctx context.Context, draft Draft) (Entry, error) {
	return d.putAs(ctx, draft, (*stage).compare)
}

// putAs is Put with a way to find out the digests of the files.
func (d *Disk) putAs(ctx context.Context, draft Draft, digests func(*stage, context.Context) error) (Entry, error) {
	if draft.Key.IsZero() {
		return Entry{}, errors.New("store an entry: its key is zero")
	}
	entry, err := d.put(ctx, draft, digests)
	if err != nil {
		return Entry{}, fmt.Errorf("store entry %s: %w", draft.Key.Short(), err)
	}
	return entry, nil
}

func (d *Disk) put(ctx context.Context, draft Draft, digests func(*stage, context.Context) error) (Entry, error) {
	if _, err := os.Lstat(d.entryDir(draft.Key)); err == nil { // mostly there is nothing, which a lookup tells cheapest
		if entry, err := d.Get(ctx, draft.Key, false); !errors.Is(err, ErrMiss) {
			if err == nil {
				err = errors.Join(d.durable(draft.Log, nil), fs.RemoveTree(draft.Dir))
			}
			return entry, err
		}
	}
	if !d.isScratch(draft.Dir) {
		return Entry{}, fmt.Errorf("%s is no scratch directory of this store", draft.Dir)
	}
	s := &stage{dir: draft.Dir, meta: draft.Meta}
	s.meta.looked = look{} // of an entry of another store
	visible := false
	defer func() {
		if !visible { // else it is no scratch directory any more
			_ = fs.RemoveTree(s.dir)
		}
	}()
	if s.clear() != nil { // what cannot be removed stays behind
		var err error
		if s.dir, err = d.Scratch(); err != nil {
			return Entry{}, err
		}
		if err := os.Rename(filepath.Join(draft.Dir, FilesDir), filepath.Join(s.dir, FilesDir)); err != nil {
			return Entry{}, err
		}
	}
	if err := s.open(); err != nil {
		return Entry{}, err
	}
	defer s.tree.close()
	if err := s.complete(ctx, d, digests); err != nil {
		return Entry{}, err
	}
	if draft.Waits != nil {
		draft.Waits()
	}
	if err := d.durable(draft.Log, s.sync); err != nil {
		return Entry{}, err
	}
	d.keep(s.tree, s.fresh)
	entry, err := d.publish(ctx, s)
	visible = err == nil
	return entry, err
}

// stage is a directory that is becoming an entry.
type stage struct {
	dir   string
	tree  *tree   // its files
	fresh []*File // those that the store did not have
	meta  Meta
}

// open opens the directory of the files.
func (s *stage) open() (err error) {
	out := filepath.Join(s.dir, FilesDir)
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
	s.tree, err = openTree(out)
	return err
}

// clear removes all but the directory of the files: what was worked with, and whatever a task has put there.
func (s *stage) clear() error {
	if err := openUp(s.dir); err != nil {
		return err
	}
	names, err := os.ReadDir(s.dir)
	for _, name := range names {
		if name.Name() != FilesDir {
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

// hash reads the files.
func (s *stage) hash(ctx context.Context) error { return s.tree.hash(ctx) }

// compare takes the digests of the files from the meta, which must list exactly the files of the tree.
func (s *stage) compare(context.Context) error {
	if len(s.tree.files) == len(s.meta.Files) {
		for i := range s.tree.files {
			s.tree.files[i].SHA256 = s.meta.Files[i].SHA256
		}
	}
	if diff := difference(s.tree.files, s.meta.Files); diff != "" {
		return damage(diff)
	}
	return nil
}

// complete completes and writes the meta file.
func (s *stage) complete(ctx context.Context, d *Disk, digests func(*stage, context.Context) error) (err error) {
	if err := s.tree.walk(ctx, true); err != nil {
		return err
	}
	if err := digests(s, ctx); err != nil {
		return err
	}
	if s.fresh, err = d.adopt(s.tree); err != nil {
		return err
	}
	if err := s.tree.freeze(); err != nil {
		return err
	}
	files := s.tree.files
	s.meta.Files, s.meta.Bytes, s.meta.Digest = files, 0, digest(files)
	for _, file := range files {
		s.meta.Bytes += file.Size
	}
	if s.meta.Created.IsZero() {
		s.meta.Created = time.Now()
	}
	s.meta.Created = s.meta.Created.Round(0).UTC() // as it will be read back
	data, err := EncodeMeta(s.meta)
	if err != nil {
		return err
	}
	return writeNew(filepath.Join(s.dir, metaFile), data, 0o444)
}

// writeNew writes a file that must not be there yet: nothing that a task left is followed.
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
	return errors.Join(s.tree.sync(), fs.Sync(filepath.Join(s.dir, metaFile)), fs.Sync(s.dir))
}

// publish makes a durable entry visible in one step, and that durable, too. Of two processes that store the same key
// the first wins.
func (d *Disk) publish(ctx context.Context, s *stage) (Entry, error) {
	final := d.entryDir(s.meta.Key)
	if err := makeDir(filepath.Dir(final)); err != nil {
		return Entry{}, err
	}
	for {
		err := os.Rename(s.dir, final)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrExist) {
			return Entry{}, err
		}
		// Another process was faster. If its entry is damaged, Get moves it away, and the place is free.
		if entry, err := d.Get(context.WithoutCancel(ctx), s.meta.Key, false); !errors.Is(err, ErrMiss) {
			return entry, err
		}
	}
	if err := os.Chmod(final, 0o555); err != nil {
		return Entry{}, err
	}
	changed := []string{filepath.Dir(final), d.path("entries")}
	if !s.meta.Content.IsZero() {
		place := d.contentLink(s.meta.Content)
		if err := link(place, s); err != nil {
			return Entry{}, err
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
		return Entry{}, err
	}
	return Entry{Meta: s.meta, Dir: filepath.Join(final, FilesDir)}, nil
}

// link makes the entry the one that its content key finds at place.
func link(place string, s *stage) error {
	if err := makeDir(filepath.Dir(place)); err != nil {
		return err
	}
	target := s.meta.Key.String()
	err := os.Symlink(target, place)
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	fresh := s.dir + ".link" // the scratch directory's name is free again, and nobody else's
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
