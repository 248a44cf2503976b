package shared

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Brought counts the entries that Pull brought.
type Brought struct {
	Entries int
	Bytes   int64
	Lost    int // entries that the index has, but not the store, or not whole; they are no longer known
}

// Bring is Pull, and reports whether an entry was lost.
func (s *Store) Bring(ctx context.Context, keys []cache.Key) (lost bool) {
	return s.Pull(ctx, keys).Lost > 0
}

// Pull brings entries of the shared store here that this machine lacks. It skips keys that the shared store does not
// know.
func (s *Store) Pull(ctx context.Context, keys []cache.Key) Brought {
	var done Brought
	if s.remote == nil {
		return done
	}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(8) // entries at a time
	for _, key := range keys {
		miss := s.missing(ctx, key)
		if miss == nil || ctx.Err() != nil {
			continue
		}
		if _, known := s.remote.known(ctx, key); !known {
			continue
		}
		g.Go(func() error {
			e, err := s.remote.get(ctx, key, miss)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				done.Lost++
				return nil
			}
			done.Entries++
			done.Bytes += e.Bytes
			return nil
		})
	}
	_ = g.Wait()
	return done
}

// Ask looks for an entry in the shared store itself, since the index may not list it yet, and brings the entry here.
// The error wraps cache.ErrMiss if there is none.
func (s *Store) Ask(ctx context.Context, key cache.Key) (cache.Entry, error) {
	if e, err := s.here(ctx, key, false); err == nil {
		return e, nil
	}
	s.remote.mu.Lock()
	delete(s.remote.refused, key)
	s.remote.mu.Unlock()
	e, err := s.remote.fetch(ctx, key)
	if errors.Is(err, iofs.ErrNotExist) {
		err = fmt.Errorf("entry %s: %w", key.Short(), cache.ErrMiss)
	}
	return e, err
}

// missing returns why an entry is not here; nil if it is here.
func (s *Store) missing(ctx context.Context, key cache.Key) error {
	_, err := s.here(ctx, key, false)
	return err
}

// get brings an entry here; missing is why it is not here. Its errors wrap cache.ErrMiss, so that a store that is away
// fails no node.
func (r *remote) get(ctx context.Context, key cache.Key, missing error) (cache.Entry, error) {
	if _, ok := r.known(ctx, key); !ok {
		return cache.Entry{}, missing
	}
	r.mu.Lock()
	one := r.fetching[key]
	if one == nil {
		one = &sync.Mutex{}
		r.fetching[key] = one
	}
	r.mu.Unlock()
	one.Lock()
	defer one.Unlock()
	if e, err := r.local.here(ctx, key, false); err == nil {
		return e, nil // another goroutine brought it
	}
	e, err := r.fetch(ctx, key)
	if err == nil {
		return e, nil
	}
	if ctx.Err() != nil {
		return cache.Entry{}, context.Cause(ctx)
	}
	r.mu.Lock()
	r.refused[key] = true
	if !errors.Is(err, ErrUntrusted) && !errors.Is(err, errRefused) && !errors.Is(err, iofs.ErrNotExist) {
		r.broken = err
	}
	r.mu.Unlock()
	if errors.Is(err, ErrUntrusted) {
		r.doubt(key)
	}
	switch {
	case errors.Is(err, ErrUntrusted): // Warn counts it
	case errors.Is(err, errRefused):
		r.tell("entry %s: %v. It is not taken, and is made here when a node needs it", key.Short(), err)
	case errors.Is(err, iofs.ErrNotExist):
		err = fmt.Errorf("it was removed from the shared store")
	default:
		r.tell("%v", reach(err))
	}
	return cache.Entry{}, fmt.Errorf("entry %s: %w: %w", key.Short(), cache.ErrMiss, err)
}

// Lay unpacks the entry of a key with a digest (empty: any) from an object into dir, an empty directory. The error
// wraps cache.ErrMiss if there is no such object. After an error, dir is empty.
func (s *Store) Lay(ctx context.Context, key cache.Key, object, digest, dir string) (cache.Meta, error) {
	m, err := s.remote.lay(ctx, key, object, digest, func() (string, error) { return dir, os.Remove(dir) })
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		err = fmt.Errorf("%s: %w", object, cache.ErrMiss)
	case err != nil:
		err = errors.Join(fmt.Errorf("%s: %w", object, err), fs.RemoveTree(dir), os.Mkdir(dir, 0o755))
	}
	return m, err
}

// lay unpacks an entry from an object. It calls place for the directory, which must not exist yet, after the object has
// proved to be the entry of the key.
func (r *remote) lay(ctx context.Context, key cache.Key, object, digest string, place func() (string, error)) (
	m cache.Meta, err error) {
	body, err := r.Bucket.Open(ctx, object)
	if err != nil {
		return m, err
	}
	defer body.Close()
	stream := bufio.NewReaderSize(body, buffered)
	head, err := readHead(stream, key)
	if err != nil {
		return m, err
	}
	if !r.accepts(&head) {
		return m, ErrUntrusted
	} else if digest != "" && digest != head.Digest { // perhaps somebody has put an earlier result there
		return m, refuse("it is another result of its key than the one that is asked for")
	}
	if len(r.Trust) > 0 { // the signature does not cover it
		head.Transcript = ""
	}
	dir, err := place()
	if err == nil {
		err = unpack(ctx, stream, &head.Meta, dir)
	}
	return head.Meta, err
}

// fetch brings an entry into the machine's store.
func (r *remote) fetch(ctx context.Context, key cache.Key) (cache.Entry, error) {
	scratch := ""
	m, err := r.lay(ctx, key, r.object(key), r.Digests[key], func() (dir string, err error) {
		scratch, err = r.local.Scratch()
		return filepath.Join(scratch, cache.FilesDir), err
	})
	if err != nil {
		if scratch != "" {
			err = errors.Join(err, fs.RemoveTree(scratch))
		}
		return cache.Entry{}, err
	}
	if err := r.local.makeRoom(ctx, key); err != nil {
		return cache.Entry{}, errors.Join(err, fs.RemoveTree(scratch))
	}
	e, err := r.local.Import(ctx, cache.Draft{Meta: m, Dir: scratch})
	if errors.Is(err, cache.ErrDamaged) {
		return cache.Entry{}, refuse("%v", err)
	}
	return e, err
}
