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

// List calls f for every entry of an address that is wanted (nil: of any), in the order of the keys, until it returns
// an error. Entries whose meta file cannot be read are left out: Verify finds them.
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

// each calls f for the key of every entry. Names that are no key are passed over.
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

// Verify reads every byte of every entry and calls report for each, with nil for one that is whole. Damaged entries are
// moved to the quarantine, and their error wraps ErrMiss.
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

// Remove removes an entry. That there is none is no error.
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

// unlink takes back what link did, unless the content key finds another entry by now.
func (d *Disk) unlink(content, key cache.Key) {
	place := d.contentLink(content)
	if target, err := os.Readlink(place); err == nil && target == key.String() {
		_ = os.Remove(place) // a link to nothing is a miss, no harm
	}
}

// resident is an entry, with the time of its last use.
type resident struct {
	meta cache.Meta
	used time.Time
}

// GC removes entries that are not wanted any more, and what lies in quarantine. It needs the store for itself: while
// another process has it open, which may be working with any entry, the error wraps ErrBusy. When an entry was last
// used is known to the hour. An error tells nothing of what was removed before it.
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

// removers is how many entries are removed at a time: a removal waits for the disk most of the time.
const removers = 8

// removeAll removes entries, all of them or until the first error.
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

// exclusive waits a moment for other processes to close the store.
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
