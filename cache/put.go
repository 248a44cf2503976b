package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Put stores a draft. See Store.
func (d *Disk) Put(ctx context.Context, draft Draft) (Entry, error) {
	if draft.Key.IsZero() {
		return Entry{}, errors.New("store an entry: its key is zero")
	}
	entry, err := d.put(ctx, draft)
	if err != nil {
		return Entry{}, fmt.Errorf("store entry %s: %w", draft.Key.Short(), err)
	}
	return entry, nil
}

func (d *Disk) put(ctx context.Context, draft Draft) (Entry, error) {
	if _, err := os.Lstat(d.entryDir(draft.Key)); err == nil { // mostly there is nothing, which a lookup tells cheapest
		if entry, err := d.Get(ctx, draft.Key, false); !errors.Is(err, ErrMiss) {
			if err == nil {
				err = errors.Join(d.durable(draft.Log, nil), RemoveTree(draft.Dir))
			}
			return entry, err
		}
	}
	dir, err := d.Scratch()
	if err != nil {
		return Entry{}, err
	}
	if !strings.HasPrefix(draft.Dir, filepath.Dir(dir)+string(filepath.Separator)) {
		return Entry{}, fmt.Errorf("%s does not lie in a scratch directory of this store", draft.Dir)
	}
	s := &stage{dir: dir, meta: draft.Meta}
	defer RemoveTree(s.dir) // gone already when all went well
	if err := s.take(draft.Dir); err != nil {
		return Entry{}, err
	}
	defer s.close()
	if err := s.complete(ctx); err != nil {
		return Entry{}, err
	}
	if draft.Waits != nil {
		draft.Waits()
	}
	if err := d.durable(draft.Log, s.sync); err != nil {
		return Entry{}, err
	}
	return d.publish(ctx, s)
}

// stage is a directory that is becoming an entry.
type stage struct {
	dir  string
	tree *tree // its files
	meta Meta
}

// take takes over the directory of the files.
func (s *stage) take(dir string) error {
	// A task may have put a link in the directory's place, or made it read-only, so that it cannot be moved.
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return errors.Join(err, fmt.Errorf("%s is no directory", dir))
	}
	if info.Mode().Perm() != 0o755 {
		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	out := filepath.Join(s.dir, outDir)
	if err := os.Rename(dir, out); err != nil {
		return err
	}
	s.tree, err = openTree(out)
	return err
}

func (s *stage) close() { s.tree.close() }

// complete reads the files, and completes and writes the meta file.
func (s *stage) complete(ctx context.Context) error {
	if err := s.tree.walk(ctx, true); err != nil {
		return err
	}
	if err := s.tree.hash(ctx); err != nil {
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
	data, err := encodeMeta(s.meta)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, metaFile), data, 0o444)
}

// sync makes the entry durable, file by file.
func (s *stage) sync() error {
	return errors.Join(s.tree.sync(), syncPath(filepath.Join(s.dir, metaFile)), syncPath(s.dir))
}

// publish makes a durable entry visible in one step, and that durable, too. Of two processes that store the same key the
// first wins.
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
		if !errors.Is(err, fs.ErrExist) {
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
			errs = append(errs, syncPath(dir))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return Entry{}, err
	}
	return Entry{Meta: s.meta, Dir: filepath.Join(final, outDir)}, nil
}

// link makes the entry the one that its content key finds at place.
func link(place string, s *stage) error {
	if err := makeDir(filepath.Dir(place)); err != nil {
		return err
	}
	target := s.meta.Key.String()
	err := os.Symlink(target, place)
	if !errors.Is(err, fs.ErrExist) {
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
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
