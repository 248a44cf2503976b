package shared

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared/index"
)

// sending is the state of the results that a process puts into the shared store in the background.
type sending struct {
	waiting []cache.Entry
	workers int
	unsent  []cache.Entry // entries that could not be put
	away    time.Time     // when the store was last out of reach
	lines   []string      // records of entries that were put and are not in the index yet
	indexed time.Time     // when a segment was last written
	sent    Sent
	taken   int   // of these: in place of entries that no key of trust had signed
	err     error // the last error
	over    bool  // sending has ended
}

// Sent counts the results that were to be put into the shared store.
type Sent struct {
	Entries int   // put
	Bytes   int64 // size of these
	There   int   // already in the store
	Other   int   // of these: with other bytes than the result here
	Unsent  int   // could not be put
	Err     error // why; nil: all were put
}

// senders is how many entries are sent at a time. A large one is sent in several parts at a time by itself.
const senders = 4

// indexEvery bounds how long other machines do not know of a result while more results are being made.
const indexEvery = 3 * time.Minute

// pause is how long a store that was out of reach is left alone.
const pause = time.Minute

// errAway is the error of an entry that was not sent because the store had just been out of reach.
var errAway = errors.New("it could not be reached")

// Puts reports whether results of this machine are put into the shared store.
func (s *Store) Puts() bool { return s.remote != nil && s.remote.puts() }

// puts reports whether results of this machine are put into the store.
func (r *remote) puts() bool { return !r.ReadOnly && r.Convinces() }

// queue makes an entry be sent in the background.
func (r *remote) queue(e cache.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		r.unsent = append(r.unsent, e)
		return
	}
	if r.indexed.IsZero() {
		r.indexed = time.Now()
	}
	r.waiting = append(r.waiting, e)
	if r.workers < senders {
		r.workers++
		go r.work()
	}
}

// work sends waiting entries until there are none.
func (r *remote) work() {
	for {
		r.mu.Lock()
		if len(r.waiting) == 0 || r.over {
			r.workers--
			r.idle.Broadcast()
			r.mu.Unlock()
			return
		}
		e := r.waiting[0]
		r.waiting = r.waiting[1:]
		away := time.Since(r.away) < pause
		r.mu.Unlock()
		err := errAway
		if !away {
			err = r.send(r.ctx, e)
		}
		r.note(e, err)
		r.indexSometimes()
	}
}

// note records the error of sending an entry.
func (r *remote) note(e cache.Entry, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		return
	}
	r.unsent = append(r.unsent, e)
	if err != errAway {
		r.err = err
		r.away = time.Now()
	}
}

// send puts an entry into the store, unless it is there.
func (r *remote) send(ctx context.Context, e cache.Entry) error {
	if rec, ok := r.known(ctx, e.Key); ok {
		r.there(e, rec)
		return nil
	}
	if err := r.emptied(); err != nil {
		return err
	}
	return r.upload(ctx, e)
}

// upload puts an entry into the store, whatever the index says.
func (r *remote) upload(ctx context.Context, e cache.Entry) error {
	p, err := pack(e, r.signature(&e.Meta))
	if err != nil {
		return err
	}
	r.mu.Lock()
	refused := r.refused[e.Key]
	r.mu.Unlock()
	create := r.Bucket.Create
	if refused { // nobody can use the entry that is there
		create = r.Bucket.Replace
	}
	err = create(ctx, r.object(e.Key), p, p.size)
	if errors.Is(err, iofs.ErrExist) {
		var rec index.Record
		rec, err = r.head(ctx, r.object(e.Key), e.Key)
		if err == nil && r.accepts(&rec) {
			r.there(e, rec)
			r.mu.Lock()
			r.add(rec)
			r.mu.Unlock()
			return nil
		}
		if err != nil && !errors.Is(err, errRefused) {
			return err
		}
		untrusted := err == nil
		if err = r.Bucket.Replace(ctx, r.object(e.Key), p, p.size); err == nil && untrusted {
			r.mu.Lock()
			r.taken++
			r.mu.Unlock()
		}
	}
	if err == nil {
		r.put(e)
	}
	return err
}

// Send puts an entry of this machine into the shared store, unless it is there, and returns the name of its object. If
// the store has another result of the key, that one stays, and the entry becomes the object beside; if beside is empty,
// the entry is not sent. An entry with a name of Options replaces whatever has that name.
func (s *Store) Send(ctx context.Context, e cache.Entry, beside string) (object string, err error) {
	r := s.remote
	object, beside = r.object(e.Key), cmp.Or(beside, r.Names[e.Key])
	rec, err := r.head(ctx, object, e.Key)
	switch {
	case err != nil || !r.accepts(&rec):
		return object, r.upload(ctx, e)
	case beside == "" || rec.Digest == e.Digest:
		return object, nil
	}
	rec, err = r.head(ctx, beside, e.Key)
	if err == nil && r.accepts(&rec) && rec.Digest == e.Digest {
		return beside, nil
	}
	p, err := pack(e, r.signature(&e.Meta))
	if err == nil {
		err = r.Bucket.Replace(ctx, beside, p, p.size)
	}
	return beside, err
}

// add adds a record to those that the index gets next. The caller holds mu.
func (r *remote) add(rec index.Record) {
	if r.Names[rec.Key] == "" {
		r.lines = append(r.lines, rec.Line())
	}
}

// put notes that an entry was put.
func (r *remote) put(e cache.Entry) {
	rec := index.Record{Meta: e.Meta}
	rec.Signature = r.signature(&e.Meta)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent.Entries++
	r.sent.Bytes += e.Bytes
	r.add(rec)
	delete(r.refused, e.Key)
	r.found[e.Key] = rec
}

// there notes that the store has an entry of the key already. That one stays, since entries do not change.
func (r *remote) there(e cache.Entry, rec index.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent.There++
	if rec.Digest != e.Digest {
		r.sent.Other++
	}
}

// head reads the record of an entry from the beginning of its object.
func (r *remote) head(ctx context.Context, object string, key cache.Key) (index.Record, error) {
	body, err := r.Bucket.Open(ctx, object)
	if err != nil {
		return index.Record{}, err
	}
	defer body.Close()
	return readHead(bufio.NewReader(body), key)
}

// indexSometimes adds the entries that were put so far to the index, if that was not done for a while.
func (r *remote) indexSometimes() {
	r.mu.Lock()
	overdue := len(r.lines) > 0 && time.Since(r.indexed) > indexEvery
	r.mu.Unlock()
	if overdue && r.indexing.TryLock() {
		defer r.indexing.Unlock()
		_ = r.writeIndex(r.ctx) // records that cannot be written now are written at the end
	}
}

// writeIndex adds the records of put entries to the index. The caller holds indexing.
func (r *remote) writeIndex(ctx context.Context) error {
	r.mu.Lock()
	lines, t := r.lines, r.table
	r.lines = nil
	r.mu.Unlock()
	if len(lines) == 0 {
		return nil
	}
	var err error
	if t == nil {
		t, err = r.look(ctx)
	}
	if err == nil {
		slices.Sort(lines)
		lines = slices.Compact(lines)
		// Only the holder of indexing changes the table; others read it under mu.
		next := t.Clone()
		if err = r.copies.Write(ctx, r.Bucket, next, lines); err == nil {
			r.mu.Lock()
			r.table, r.indexed = next, time.Now()
			r.mu.Unlock()
			return nil
		}
	}
	r.mu.Lock()
	r.lines = append(r.lines, lines...)
	r.mu.Unlock()
	return err
}

// Flush waits until all results that were made here are in the shared store, and writes the index. Results that could
// not be put are tried once more; then they are left to Push.
func (s *Store) Flush(ctx context.Context) Sent {
	r := s.remote
	if r == nil || r.Lent {
		return Sent{}
	}
	stop := context.AfterFunc(ctx, func() { r.end(context.Cause(ctx)) })
	defer stop()
	r.wait()
	r.mu.Lock()
	again := r.unsent
	r.unsent, r.away = nil, time.Time{}
	r.mu.Unlock()
	for _, e := range again {
		r.queue(e)
	}
	r.wait()
	err := r.tellOthers(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	done := r.sent
	done.Unsent = len(r.unsent) + len(r.waiting)
	if done.Unsent > 0 {
		done.Err = errors.Join(r.err, ctx.Err())
	} else if err != nil {
		done.Unsent, done.Err = len(r.lines), err
	}
	if r.taken > 0 {
		r.Tell(fmt.Sprintf("shared store %s: %d entries that no key of trust had signed were replaced", r.Name,
			r.taken))
	}
	r.sent, r.unsent, r.taken = Sent{}, nil, 0
	return done
}

// tellOthers adds the records of put entries to the index, even if ctx has ended.
func (r *remote) tellOthers(ctx context.Context) error {
	r.indexing.Lock()
	defer r.indexing.Unlock()
	r.mu.Lock()
	n := len(r.lines)
	r.mu.Unlock()
	if n == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookWithin)
	defer cancel()
	if err := r.writeIndex(ctx); err != nil {
		return err
	}
	next := r.table.Clone()
	// A user without the right to remove objects leaves the merge to others.
	if r.copies.Merge(ctx, r.Bucket, next) == nil {
		r.mu.Lock()
		r.table = next
		r.mu.Unlock()
	}
	return nil
}

// Waiting returns how many results have not been sent yet.
func (s *Store) Waiting() int {
	if s.remote == nil {
		return 0
	}
	s.remote.mu.Lock()
	defer s.remote.mu.Unlock()
	return len(s.remote.waiting) + s.remote.workers
}

// wait returns when nothing is being sent.
func (r *remote) wait() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.workers > 0 {
		r.idle.Wait()
	}
}

// end stops the sending.
func (r *remote) end(cause error) {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.cancel(cause)
	r.wait()
}
