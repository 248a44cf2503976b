package disk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Supersede makes room for another result of a key: it moves the entry of the key to the key that cache.Superseded
// returns, where it stays until a GC. A missing entry is no error. After a crash, the entry is in at least one of the
// two places. Processes take turns, so that no process removes an entry while another process copies it.
func (d *Disk) Supersede(ctx context.Context, key cache.Key) error {
	alone, err := fs.MakeOwn(d.path("supersede.lock"), 0)
	if err != nil {
		return fmt.Errorf("keep entry %s: %w", key.Short(), err)
	}
	defer alone.Close()
	if err := fs.Lock(alone, fs.Exclusive); err != nil {
		return fmt.Errorf("keep entry %s: %w", key.Short(), err)
	}
	if err := d.keepAside(ctx, key); err != nil && !errors.Is(err, cache.ErrMiss) {
		return fmt.Errorf("keep entry %s: %w", key.Short(), err)
	}
	return d.Remove(key)
}

func (d *Disk) keepAside(ctx context.Context, key cache.Key) error {
	entry, err := d.Get(ctx, key, true)
	if err != nil {
		return err
	}
	dir, err := d.Scratch()
	if err != nil {
		return err
	}
	if err := fs.CopyTree(filepath.Join(dir, cache.FilesDir), entry.Dir); err != nil {
		return errors.Join(err, fs.RemoveTree(dir))
	}
	text := cache.SupersededText(key, entry.Log)
	meta := cache.Meta{Key: text.Key(), Text: text.Text(), Address: entry.Address, Created: entry.Created,
		Duration: entry.Duration, Log: entry.Log, Transcript: entry.Transcript,
		Signature: entry.Signature} // it is over the former key, so with trust the copy does not count
	_, err = d.Put(ctx, cache.Draft{Meta: meta, Dir: dir})
	return err
}
