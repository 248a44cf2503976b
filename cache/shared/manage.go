package shared

import (
	"bufio"
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/cache/shared/index"
)

// Records calls f with the meta of each entry in the index of the shared store, without text and files.
func (s *Store) Records(ctx context.Context, f func(cache.Meta)) error {
	t, err := s.remote.read(ctx)
	if err != nil {
		return err
	}
	for _, r := range t.All(s.remote.accepts) {
		f(r.Meta)
	}
	return nil
}

// read reads the index. The error says why the store is out of reach.
func (r *remote) read(ctx context.Context) (*index.Table, error) {
	r.indexing.Lock()
	defer r.indexing.Unlock()
	t, err := r.look(ctx)
	return t, reach(err)
}

// Push puts the entries of the machine's store that other machines can use into the shared store. It checks every byte
// first. If the store has another result of an entry's key, Push calls other; if that returns true, own replaces there.
func (s *Store) Push(ctx context.Context, other func(own, there cache.Meta) (replace bool)) (Sent, error) {
	r := s.remote
	t, err := r.read(ctx)
	if err != nil {
		return Sent{}, err
	}
	already := 0
	err = s.Disk.List(ctx, r.Wanted, func(m cache.Meta) error {
		if cache.IsSuperseded(m.Text) || !r.believes(&m) {
			return nil
		}
		if _, known := t.Record(m.Key, r.accepts); known {
			rec, known := r.known(ctx, m.Key)
			if same := rec.Digest == m.Digest; !known || same || !other(m, rec.Meta) {
				already++
				return nil
			}
			r.mu.Lock()
			r.refused[m.Key] = true // so that the entry is replaced
			r.mu.Unlock()
		}
		e, err := s.here(ctx, m.Key, true)
		if errors.Is(err, cache.ErrMiss) {
			r.Tell(err.Error())
			return nil
		}
		if err == nil {
			r.queue(e)
		}
		return err
	})
	if err != nil {
		return Sent{}, err
	}
	done := s.Flush(ctx)
	done.There += already
	return done, nil
}

// objects lists the objects of entries, the oldest first.
func (r *remote) objects(ctx context.Context) ([]bucket.Object, error) {
	var all []bucket.Object
	for o, err := range r.Bucket.List(ctx, entries) {
		if err != nil {
			return nil, reach(err)
		}
		if _, ok := keyOf(o.Name); ok {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b bucket.Object) int { return a.Stored.Compare(b.Stored) })
	return all, nil
}

// Collect removes entries of the shared store, the oldest first: it is not known there when an entry was last used.
func (s *Store) Collect(ctx context.Context, o cache.GCOptions) (cache.GCResult, error) {
	r := s.remote
	var result cache.GCResult
	t, err := r.read(ctx)
	if err != nil {
		return result, err
	}
	all, err := r.objects(ctx)
	if err != nil {
		return result, err
	}
	for _, object := range all {
		result.KeptBytes += object.Size
	}
	result.Kept = len(all)
	var names []string
	gone := map[cache.Key]bool{}
	for _, object := range all {
		key, _ := keyOf(object.Name)
		if !o.Takes(key, object.Stored, result.KeptBytes) {
			continue
		}
		gone[key] = true
		names = append(names, object.Name)
		rec, _ := t.Record(key, func(*index.Record) bool { return true })
		rec.Key, rec.Bytes, rec.Created = key, object.Size, object.Stored
		result.Removed = append(result.Removed, rec.Meta)
		result.RemovedBytes += object.Size
		result.Kept--
		result.KeptBytes -= object.Size
	}
	if o.DryRun || len(names) == 0 {
		return result, nil
	}
	if err := r.reindex(ctx, t, func(key cache.Key, _ string) bool { return !gone[key] }, nil); err != nil {
		return cache.GCResult{}, err
	}
	return result, r.Bucket.Remove(ctx, names)
}

// reindex replaces the segments of t by one, with the lines that keep selects and the lines of more.
func (r *remote) reindex(ctx context.Context, t *index.Table, keep func(cache.Key, string) bool, more []string) error {
	r.indexing.Lock()
	defer r.indexing.Unlock()
	var old []string
	for name := range t.Segments {
		old = append(old, name)
	}
	lines := more
	for key, list := range t.Lines {
		for _, line := range list {
			if keep(key, line) {
				lines = append(lines, line)
			}
		}
	}
	slices.Sort(lines)
	if err := r.copies.Write(ctx, r.Bucket, index.New(), slices.Compact(lines)); err != nil {
		return err
	}
	err := r.Bucket.Remove(ctx, old)
	_, looking := r.look(ctx)
	return errors.Join(err, looking)
}

// Check reads every byte of every entry of the shared store, and calls report for each: with nil if it is whole, and
// with ErrUntrusted if it is whole and no key of trust signed it. Unless the store is read-only, Check then removes
// damaged entries, and writes the index anew if it does not match the entries.
func (s *Store) Check(ctx context.Context, report func(cache.Key, error)) error {
	r := s.remote
	t, err := r.read(ctx)
	if err != nil {
		return err
	}
	all, err := r.objects(ctx)
	if err != nil {
		return err
	}
	var damaged, missing []string
	whole := map[cache.Key]string{} // line of the entry's record, by key
	for _, object := range all {
		key, _ := keyOf(object.Name)
		rec, err := r.check(ctx, key)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, iofs.ErrNotExist): // removed meanwhile
			continue
		case err != nil && !errors.Is(err, errRefused):
			return reach(err)
		case err != nil:
			damaged = append(damaged, object.Name)
		default:
			whole[key] = rec.Line()
			if !r.accepts(&rec) {
				err = ErrUntrusted
			}
			if !slices.Contains(t.Lines[key], rec.Line()) {
				missing = append(missing, rec.Line())
			}
		}
		report(key, err)
	}
	dangling := false
	for key, lines := range t.Lines {
		dangling = dangling || len(lines) > 1 || whole[key] == ""
	}
	if r.ReadOnly || len(damaged)+len(missing) == 0 && !dangling {
		return nil
	}
	keep := func(key cache.Key, line string) bool { return whole[key] == line }
	if err := r.reindex(ctx, t, keep, missing); err != nil {
		return err
	}
	return r.Bucket.Remove(ctx, damaged)
}

// check reads all of an entry, and stores nothing.
func (r *remote) check(ctx context.Context, key cache.Key) (index.Record, error) {
	body, err := r.Bucket.Open(ctx, ObjectOf(key))
	if err != nil {
		return index.Record{}, err
	}
	defer body.Close()
	stream := bufio.NewReaderSize(body, buffered)
	rec, err := readHead(stream, key)
	if err == nil {
		err = readFiles(ctx, stream, &rec.Meta, func(*cache.File) (io.WriteCloser, error) { return nowhere{}, nil })
	}
	return rec, err
}

// nowhere discards all bytes.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Close() error                { return nil }
