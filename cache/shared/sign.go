package shared

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared/index"
)

// signed returns the bytes that the signature of an entry covers.
func signed(m *cache.Meta) []byte { return []byte(magic + "\n" + index.Statement(m)) }

// belief decides whose results a machine believes.
type belief struct {
	Options

	lock      sync.Mutex         // guards the fields below
	untrusted map[cache.Key]bool // entries that were asked for, and that no key of trust signed
	warned    int                // how many of them the last warning was about
}

// Believe makes entries from the shared store count only if a key of trust signed them, even if Share does not follow.
// It must be called before the first look at the store.
func (s *Store) Believe(o Options) {
	s.belief = &belief{Options: o, untrusted: map[cache.Key]bool{}}
}

// accepts reports whether a record may be believed.
func (b *belief) accepts(rec *index.Record) bool { return b.Believes(signed(&rec.Meta), rec.Signature) }

// believes reports whether an entry of the machine's store counts: it was made here, or a key of trust signed it.
func (b *belief) believes(m *cache.Meta) bool {
	if m.Signature == "" || b == nil || len(b.Trust) == 0 {
		return true
	}
	if !b.Believes(signed(m), m.Signature) {
		b.doubt(m.Key)
		return false
	}
	m.Transcript = "" // the signature does not cover it
	return true
}

// doubt notes that somebody asked for an entry that no key of trust signed.
func (b *belief) doubt(key cache.Key) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.untrusted[key] = true
}

// Warn warns of entries that were asked for and that no key of trust signed, if there are more since the last warning.
func (s *Store) Warn() {
	b := s.belief
	if b == nil {
		return
	}
	b.lock.Lock()
	n := len(b.untrusted)
	again := n == b.warned
	b.warned = n
	b.lock.Unlock()
	if !again {
		b.Tell(fmt.Sprintf("shared store %s: entries that no key of trust signed: %d. They are not used, here or "+
			"there, and what apply makes takes their places: add the key of who signed them to trust, or give "+
			"this project a url of its own", b.Name, n))
	}
}

// signature returns the signature of an entry: that from the shared store, or this machine's for its own entry.
func (b *belief) signature(m *cache.Meta) string { return cmp.Or(m.Signature, b.Sign(signed(m))) }

// here returns the entry of a key in the machine's store, or a miss if the entry's signer is not believed.
func (s *Store) here(ctx context.Context, key cache.Key, verify bool) (cache.Entry, error) {
	e, err := s.Disk.Get(ctx, key, verify)
	if err = s.doubted(&e.Meta, err); err != nil {
		return cache.Entry{}, err
	}
	return e, nil
}

// doubted returns err, or a miss in place of nil if the entry's signer is not believed.
func (s *Store) doubted(m *cache.Meta, err error) error {
	if err == nil && !s.belief.believes(m) {
		return fmt.Errorf("entry %s: %w: no key of trust signed it", m.Key.Short(), cache.ErrMiss)
	}
	return err
}

// makeRoom moves an entry that is not believed out of the way of another result of its key.
func (s *Store) makeRoom(ctx context.Context, key cache.Key) error {
	if s.belief == nil || len(s.belief.Trust) == 0 {
		return nil
	}
	if e, err := s.Disk.Get(ctx, key, false); err != nil || s.belief.believes(&e.Meta) {
		return nil
	}
	return s.SetAside(key, "no key of trust signed it")
}
