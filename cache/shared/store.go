// Package shared is a store that several machines share. It stands behind the store of each machine: a key that the
// machine's store lacks is looked up in the shared store, and a new result is put into both.
package shared

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/cache/shared/index"
	"github.com/benchgraph/benchgraph/internal/sshkey"
)

// Options configure a shared store.
type Options struct {
	Bucket      bucket.Bucket
	Name        string // for people
	Dir         string // directory of this machine for copies of the index
	ReadOnly    bool
	Lent        bool                      // lent credentials: this machine can write objects of Send, and no index
	Names       map[cache.Key]string      // objects that have the entries of these keys, whatever the index says
	Digests     map[cache.Key]string      // entries of these keys are refused if they have another digest
	sshkey.Keys                           // sign and check entries
	Wanted      func(address string) bool // reports whether a node's result is of use to other machines
	Tell        func(warning string)      // must not be nil; called by several goroutines
	*Look                                 // of an earlier Store at the same place; nil: there was none
}

// Look keeps the index of a shared store between sessions, so that a session that follows within a minute does not read
// it again. The zero Look has read nothing.
type Look struct {
	mu     sync.Mutex
	table  *index.Table    // nil: not read, or the store is out of reach
	failed error           // why the store is out of reach
	looked time.Time       // when the index was last asked for
	broken error           // why an entry could not be brought although the index was read
	told   map[string]bool // warnings that were given
}

// Away returns why the store was out of reach at the last request, for the index or for an entry; nil if it answered or
// was not asked.
func (l *Look) Away() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return reach(cmp.Or(l.failed, l.broken))
}

// Store is the store of a machine with the shared store behind it. Without Share, it is only the machine's store.
type Store struct {
	*disk.Disk
	belief *belief // nil: everything in the machine's store counts
	remote *remote // nil: nothing is shared
}

// New returns a store that shares nothing yet.
func New(d *disk.Disk) *Store { return &Store{Disk: d} }

// Share puts a shared store behind that of the machine, and calls Believe. It sends no request.
func (s *Store) Share(o Options) {
	if o.Look == nil {
		o.Look = &Look{}
	}
	s.Believe(o)
	ctx, cancel := context.WithCancelCause(context.Background())
	s.remote = &remote{belief: s.belief, local: s, copies: index.Copies{Dir: o.Dir}, ctx: ctx, cancel: cancel,
		refused: map[cache.Key]bool{}, found: map[cache.Key]index.Record{}, fetching: map[cache.Key]*sync.Mutex{}}
	s.remote.idle = sync.NewCond(&s.remote.mu)
}

// Shares reports whether there is a shared store.
func (s *Store) Shares() bool { return s.remote != nil }

// Close ends the sending, and closes the machine's store.
func (s *Store) Close() error {
	if s.remote != nil {
		s.remote.end(errors.New("the store was closed"))
	}
	return s.Disk.Close()
}

// remote is a shared store as this process knows it.
type remote struct {
	*belief
	local  *Store
	copies index.Copies
	ctx    context.Context // ends the sending in the background
	cancel context.CancelCauseFunc

	// guarded by mu of the Look
	refused map[cache.Key]bool // entries that are damaged, untrusted or gone
	// records from the entries themselves, for keys with several records in the index
	found    map[cache.Key]index.Record
	fetching map[cache.Key]*sync.Mutex

	sending             // guarded by mu
	idle     *sync.Cond // on mu: signals that nothing is being sent
	indexing sync.Mutex // held while the index is read or written
}

// fresh is how long the index is not read again. Within an apply, others may have put something since the last look.
const fresh = time.Minute

// lookWithin bounds how long a plan waits for the index.
const lookWithin = 20 * time.Second

// tell gives a warning once.
func (r *remote) tell(format string, args ...any) {
	warning := fmt.Sprintf(format, args...)
	r.mu.Lock()
	before := r.told[warning]
	if r.told == nil {
		r.told = map[string]bool{}
	}
	r.told[warning] = true
	r.mu.Unlock()
	if !before {
		r.Tell("shared store " + r.Name + ": " + warning)
	}
}

// index returns the index, read anew if it is old; nil if the store is out of reach.
func (r *remote) index(ctx context.Context) *index.Table {
	r.indexing.Lock()
	defer r.indexing.Unlock()
	r.mu.Lock()
	t, looked := r.table, r.looked
	r.mu.Unlock()
	if time.Since(looked) < fresh {
		return t
	}
	t, err := r.look(ctx)
	if err != nil && ctx.Err() == nil {
		r.tell("%v. Until it answers, only results that are here count; benchgraph cache push puts there what is made "+
			"meanwhile", reach(err))
	}
	return t
}

// emptied returns an error if the store has lost its index: nothing may be put there then.
func (r *remote) emptied() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(r.failed, index.ErrEmptied) {
		return r.failed
	}
	return nil
}

// Away returns why the shared store is out of reach; nil if it is not. It reads the index, unless that was just done.
func (s *Store) Away(ctx context.Context) error {
	s.remote.index(ctx)
	s.remote.mu.Lock()
	defer s.remote.mu.Unlock()
	return reach(s.remote.failed)
}

// look reads the index. The caller holds indexing.
func (r *remote) look(ctx context.Context) (*index.Table, error) {
	within, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	t, err := r.copies.Load(within, r.Bucket, func(s string) { r.tell("%s", s) })
	if err != nil {
		t = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() == nil {
		r.table, r.failed, r.looked = t, err, time.Now()
	}
	return t, err
}

// reach adds a remedy for the user to the error of a request.
func reach(err error) error {
	switch {
	case errors.Is(err, bucket.ErrDenied):
		return fmt.Errorf("%w; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("it did not answer within %s", lookWithin)
	}
	return err
}

// known returns the record of a key in the index; false if none is accepted.
func (r *remote) known(ctx context.Context, key cache.Key) (index.Record, bool) {
	t := r.index(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if t == nil || r.refused[key] || r.Names[key] != "" {
		return index.Record{}, false
	}
	rec, ok := t.Record(key, r.accepts)
	lines := len(t.Lines[key])
	if ok && lines > 1 { // somebody has replaced the entry
		rec, ok = r.ask(ctx, key, rec)
	}
	if !ok && lines > 0 && len(r.Trust) > 0 {
		r.doubt(key)
	}
	return rec, ok
}

// ask returns the record in the entry of a key itself, and whether it may be believed; rec if the entry cannot be read
// now. It reads each entry once. The caller holds mu.
func (r *remote) ask(ctx context.Context, key cache.Key, rec index.Record) (index.Record, bool) {
	if found, ok := r.found[key]; ok {
		return found, r.accepts(&found)
	}
	r.mu.Unlock()
	found, err := r.head(ctx, ObjectOf(key), key)
	r.mu.Lock()
	if err != nil {
		return rec, true
	}
	r.found[key] = found
	return found, r.accepts(&found)
}

// object returns the name of the object of a key.
func (r *remote) object(key cache.Key) string { return cmp.Or(r.Names[key], ObjectOf(key)) }

// named returns the key of the entry that has a content key.
func (r *remote) named(ctx context.Context, content cache.Key) (cache.Key, bool) {
	t := r.index(ctx)
	if t == nil {
		return cache.Key{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key, ok := t.Contents[content]
	return key, ok
}

// Peek returns the entry of a key, or the meta of an entry that only the shared store has, which has no Dir, no Files
// and no Created. Get brings such an entry here.
func (s *Store) Peek(ctx context.Context, key cache.Key) (cache.Entry, error) {
	e, err := s.here(ctx, key, false)
	if s.remote == nil || !errors.Is(err, cache.ErrMiss) {
		return e, err
	}
	r, ok := s.remote.known(ctx, key)
	if !ok {
		return e, err
	}
	if errors.Is(err, cache.ErrDamaged) {
		s.remote.Tell(err.Error())
	}
	r.Created = time.Time{}
	return cache.Entry{Meta: r.Meta}, nil
}

// PeekContent is Peek by content key.
func (s *Store) PeekContent(ctx context.Context, content cache.Key) (cache.Entry, error) {
	e, err := s.Disk.Find(ctx, content)
	err = s.doubted(&e.Meta, err)
	if s.remote == nil || !errors.Is(err, cache.ErrMiss) || content.IsZero() {
		return e, err
	}
	if key, ok := s.remote.named(ctx, content); ok {
		if there, missing := s.Peek(ctx, key); missing == nil && there.Content == content {
			return there, nil
		}
	}
	return e, err
}

// Get returns the entry of a key, and brings it here if only the shared store has it. See cache.Store.
func (s *Store) Get(ctx context.Context, key cache.Key, verify bool) (cache.Entry, error) {
	e, err := s.here(ctx, key, verify)
	if s.remote == nil || !errors.Is(err, cache.ErrMiss) {
		return e, err
	}
	return s.remote.get(ctx, key, err)
}

// GetSealed is Get with verify, and also returns the state of the files at the time of the check.
func (s *Store) GetSealed(ctx context.Context, key cache.Key) (cache.Entry, disk.Seal, error) {
	e, seal, err := s.Disk.GetSealed(ctx, key)
	err = s.doubted(&e.Meta, err)
	if s.remote == nil || !errors.Is(err, cache.ErrMiss) {
		return e, seal, err
	}
	if _, err := s.remote.get(ctx, key, err); err != nil {
		return cache.Entry{}, disk.Seal{}, err
	}
	return s.Disk.GetSealed(ctx, key)
}

// Find is Get by content key.
func (s *Store) Find(ctx context.Context, content cache.Key) (cache.Entry, error) {
	e, err := s.PeekContent(ctx, content)
	if err == nil && e.Dir == "" {
		return s.Get(ctx, e.Key, false)
	}
	return e, err
}

// Put stores a draft here, and has it sent to the shared store. See cache.Store.
func (s *Store) Put(ctx context.Context, draft cache.Draft) (cache.Entry, error) {
	if err := s.makeRoom(ctx, draft.Key); err != nil {
		return cache.Entry{}, err
	}
	e, err := s.Disk.Put(ctx, draft)
	if err == nil && s.remote != nil && s.remote.puts() && !s.remote.Lent && s.remote.Wanted(e.Address) {
		s.remote.queue(e)
	}
	return e, err
}

// BringOf brings the entries of wanted addresses here that only the shared store has.
func (s *Store) BringOf(ctx context.Context, wanted func(address string) bool) {
	if s.remote == nil {
		return
	}
	var keys []cache.Key
	for _, r := range s.remote.records(ctx) {
		if wanted(r.Address) {
			keys = append(keys, r.Key)
		}
	}
	s.Bring(ctx, keys)
}

// List calls f for the entries of the machine's store that count. See disk.Disk.
func (s *Store) List(ctx context.Context, wanted func(address string) bool, f func(cache.Meta) error) error {
	return s.Disk.List(ctx, wanted, func(m cache.Meta) error {
		if !s.belief.believes(&m) {
			return nil
		}
		return f(m)
	})
}

// Outline returns the outline of an entry that is here; zero for an entry that only the shared store has.
func (s *Store) Outline(m *cache.Meta) cache.Outline {
	if s.remote == nil || len(m.Files) > 0 {
		return s.Disk.Outline(m)
	}
	e, err := s.here(context.Background(), m.Key, false)
	if err != nil {
		return cache.Outline{}
	}
	return s.Disk.Outline(&e.Meta)
}

// Intact reports whether an entry counts and matches its outline. See disk.Disk.
func (s *Store) Intact(o *cache.Outline, used bool) bool {
	if !s.Disk.Intact(o, used) {
		return false
	}
	if s.belief == nil || len(s.belief.Trust) == 0 {
		return true
	}
	_, err := s.here(context.Background(), o.Key, false) // an outline does not tell who signed the entry
	return err == nil
}

// Absent reports whether there is certainly no entry under any of the keys. With a shared store, that is uncertain
// without asking it.
func (s *Store) Absent(keys, contents []cache.Key) bool {
	return (s.remote == nil || len(keys)+len(contents) == 0) && s.Disk.Absent(keys, contents)
}

// records returns the accepted records of the index; none if the store is out of reach.
func (r *remote) records(ctx context.Context) []index.Record {
	t := r.index(ctx)
	if t == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return t.All(r.accepts)
}
