package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// List calls f for every entry with a wanted address (nil: for every entry), in the order of the keys, until f returns
// an error. It leaves out entries whose meta file cannot be read: Verify finds them.
func (d *Disk) List(ctx context.Context, wanted func(address string) bool, f func(cache.Meta) error) error {
	head := make([]byte, cache.HeadOfMeta)
	return d.each(ctx, func(key cache.Key) error {
		dir := d.entryDir(key)
		if wanted != nil {
			if address, known := cache.AddressIn(dir+sep+cache.MetaFile, head); known && !wanted(address) {
				return nil
			}
		}
		meta, _, err := d.readMeta(entryPath(key))
		if err != nil {
			return nil
		}
		return f(meta)
	})
}

// each calls f for the key of every entry. It skips names that are no key.
func (d *Disk) each(ctx context.Context, f func(cache.Key) error) error {
	shelves, err := os.ReadDir(d.path("entries"))
	if err != nil {
		return fmt.Errorf("store %s: %w", d.dir, err)
	}
	for _, shelf := range shelves {
		entries, err := os.ReadDir(d.path("entries", shelf.Name()))
		if err != nil {
			return fmt.Errorf("store %s: %w", d.dir, err)
		}
		for _, e := range entries {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			key, err := cache.ParseKey(e.Name())
			if err != nil {
				continue
			}
			if err := f(key); err != nil {
				return err
			}
		}
	}
	return nil
}

// Verify reads every byte of every entry, and calls report for each, with nil if it is whole. It moves damaged entries
// to the quarantine; their error wraps ErrMiss.
func (d *Disk) Verify(ctx context.Context, report func(cache.Key, error)) error {
	return d.each(ctx, func(key cache.Key) error {
		_, err := d.Get(ctx, key, true)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		report(key, err)
		return nil
	})
}

// Remove removes an entry. A missing entry is no error.
func (d *Disk) Remove(key cache.Key) error {
	dir := d.entryDir(key)
	meta, _, err := d.readMeta(entryPath(key))
	if err == nil {
		d.unlink(meta.Content, key)
	}
	trash, err := d.scratchName()
	if err != nil {
		return fmt.Errorf("remove entry %s: scratch directory: %w", key.Short(), err)
	}
	if err = moveAway(dir, trash); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove entry %s: %w", key.Short(), err)
	}
	err = fs.RemoveTree(trash)
	d.release(meta.Files, false)
	return err
}

// unlink removes the link from a content key to a key, unless it leads to another entry by now.
func (d *Disk) unlink(content, key cache.Key) {
	place := d.contentLink(content)
	if target, err := os.Readlink(place); err == nil && target == key.String() {
		_ = os.Remove(place) // a link to nothing is only a miss
	}
}

// resident is an entry, with the time of its last use.
type resident struct {
	meta cache.Meta
	used time.Time
}

// GC removes entries by the options, and everything in quarantine. It needs the store alone: while another process has
// the store open, and may use any entry, the error wraps ErrBusy. The time of an entry's last use is known to the hour.
// If there is an error, the result does not list entries that were removed before it.
func (d *Disk) GC(ctx context.Context, o cache.GCOptions) (cache.GCResult, error) {
	if !o.DryRun {
		if err := d.exclusive(); err != nil {
			return cache.GCResult{}, fmt.Errorf("collect garbage in %s: %w", d.dir, err)
		}
		defer d.share()
	}
	residents, err := d.residents(ctx)
	if err != nil {
		return cache.GCResult{}, err
	}
	var result cache.GCResult
	for _, r := range residents {
		result.KeptBytes += r.meta.Bytes
	}
	result.Kept = len(residents)
	for _, r := range residents {
		if !o.Takes(r.meta.Key, r.used, result.KeptBytes) {
			continue
		}
		result.Removed = append(result.Removed, r.meta)
		result.RemovedBytes += r.meta.Bytes
		result.Kept--
		result.KeptBytes -= r.meta.Bytes
	}
	if !o.DryRun {
		if err := d.removeAll(ctx, result.Removed); err != nil {
			return cache.GCResult{}, err
		}
	}
	if result.Quarantined, err = d.clearQuarantine(o.DryRun); err == nil && !o.DryRun {
		d.releaseAll()
	}
	return result, err
}

// removers is the number of entries that are removed at a time: a removal mostly waits for the disk.
const removers = 8

// removeAll removes entries until the first error.
func (d *Disk) removeAll(ctx context.Context, entries []cache.Meta) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(removers)
	for i := range entries {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return d.Remove(entries[i].Key)
		})
	}
	return g.Wait()
}

// residents lists the entries, the least recently used first.
func (d *Disk) residents(ctx context.Context) ([]resident, error) {
	var all []resident
	err := d.List(ctx, nil, func(m cache.Meta) error {
		info, err := os.Stat(filepath.Join(d.entryDir(m.Key), cache.MetaFile))
		if err != nil {
			return nil
		}
		m = cache.Meta{Key: m.Key, Content: m.Content, Digest: m.Digest, Address: strings.Clone(m.Address),
			Bytes:   m.Bytes,
			Created: m.Created, Duration: m.Duration, Log: strings.Clone(m.Log)}
		all = append(all, resident{meta: m, used: info.ModTime()})
		return nil
	})
	slices.SortStableFunc(all, func(a, b resident) int {
		return cmp.Or(a.used.Compare(b.used), a.meta.Created.Compare(b.meta.Created))
	})
	return all, err
}

func (d *Disk) clearQuarantine(dryRun bool) (int, error) {
	places, err := os.ReadDir(d.path("quarantine"))
	if err != nil || dryRun {
		return len(places), err
	}
	for _, place := range places {
		if err := fs.RemoveTree(d.path("quarantine", place.Name())); err != nil {
			return 0, err
		}
	}
	return len(places), nil
}

// exclusive waits a moment until other processes have closed the store.
func (d *Disk) exclusive() error {
	err := fs.LockWithin(d.lock, fs.Exclusive, time.Second)
	if err == nil {
		return nil
	}
	d.share() // a lock that could not be converted may have been given up
	if fs.Held(err) {
		return cache.ErrBusy
	}
	return err
}

func (d *Disk) share() { _ = fs.Lock(d.lock, fs.Shared) }
