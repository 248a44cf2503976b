package shared

import (
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/cachetest"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/internal/sshkey"
)

// A result from the shared store counts as long as its signer is believed. A machine passes it on with the original
// signature, since it has not made the result itself.
func TestResultsRememberWhereTheyCameFrom(t *testing.T) {
	ctx, place := context.Background(), bucket.NewDirectory(t.TempDir())
	alicePublic, alicePrivate, _ := ed25519.GenerateKey(nil)
	bobPublic, bobPrivate, _ := ed25519.GenerateKey(nil)
	keys := func(own ed25519.PrivateKey, trust ...ed25519.PublicKey) sshkey.Keys {
		return sshkey.Keys{Own: own, Trust: trust}
	}
	with := func(k sshkey.Keys) func(*Options) { return func(o *Options) { o.Keys = k } }
	// believing opens a machine after its file has changed.
	believing := func(m *machine, b bucket.Bucket, k sshkey.Keys) *machine {
		o := m.belief.Options
		o.Bucket, o.Keys, o.Dir, o.Look = b, k, t.TempDir(), nil
		changed := &machine{Store: New(m.Disk)}
		o.Tell = func(s string) { changed.warnings = append(changed.warnings, s) }
		changed.Share(o)
		return changed
	}
	unsigned, alice := open(t, place), open(t, place, with(keys(alicePrivate)))
	cachetest.Put(t, unsigned, "unsigned", files)
	unsigned.flush(t, Sent{Entries: 1})
	cachetest.Put(t, alice, "alice", files)
	alice.flush(t, Sent{Entries: 1})
	bob := open(t, place, with(keys(bobPrivate)))
	names := []string{"unsigned", "alice", "bob"}
	for _, name := range names[:2] {
		if _, err := bob.Get(ctx, cachetest.Meta(name).Key, true); err != nil {
			t.Fatal(err)
		}
	}
	cachetest.Put(t, bob, "bob", files)
	bob.flush(t, Sent{Entries: 1})

	for _, c := range []struct {
		about string
		trust []ed25519.PublicKey
		count []string // of the names, those that count here and for whoever trusts the same keys
	}{
		{"nothing", nil, names},
		{"two keys", []ed25519.PublicKey{alicePublic, bobPublic}, []string{"alice", "bob"}},
		{"alice's key has left", []ed25519.PublicKey{bobPublic}, []string{"bob"}},
	} {
		t.Run(c.about, func(t *testing.T) {
			elsewhere := bucket.NewDirectory(t.TempDir())
			now := believing(bob, elsewhere, keys(bobPrivate, c.trust...))
			offline := &machine{Store: New(bob.Disk)}
			offline.Believe(now.belief.Options)
			for _, name := range names {
				key, want := cachetest.Meta(name).Key, slices.Contains(c.count, name)
				e, err := now.Get(ctx, key, true)
				_, peeked := now.Peek(ctx, key)
				_, sealed := func() (cache.Entry, error) { e, _, err := now.GetSealed(ctx, key); return e, err }()
				_, alone := offline.Get(ctx, key, true)
				for _, err := range []error{err, peeked, sealed, alone} {
					if (err == nil) != want || err != nil && !errors.Is(err, cache.ErrMiss) {
						t.Errorf("%s: %v, want counted: %v", name, err, want)
					}
				}
				if here, err := bob.Disk.Get(ctx, key, true); err != nil {
					t.Errorf("%s was removed: %v", name, err)
				} else if o := bob.Disk.Outline(&here.Meta); now.Intact(&o, true) != want {
					t.Errorf("%s: intact is not %v", name, want)
				}
				if want && len(c.trust) > 0 && name == "alice" && e.Transcript != "" {
					t.Error("a transcript over which no signature is was taken")
				}
			}
			listed := 0
			if err := offline.List(ctx, nil, func(cache.Meta) error { listed++; return nil }); listed != len(c.count) {
				t.Errorf("%d are listed, %v; want %v", listed, err, c.count)
			}
			sent, err := now.Push(ctx, nil)
			if err != nil || sent.Entries != len(c.count) {
				t.Errorf("pushed %+v, %v; want %v", sent, err, c.count)
			}
			reader := open(t, elsewhere, with(keys(nil, c.trust...)))
			for _, name := range c.count {
				if e, err := reader.Get(ctx, cachetest.Meta(name).Key, true); err != nil || e.Signature == "" {
					t.Errorf("%s does not count for who takes it: %q, %v", name, e.Signature, err)
				}
			}
			strict := open(t, elsewhere, with(keys(nil, bobPublic)))
			for _, name := range names[:2] {
				if _, err := strict.Get(ctx, cachetest.Meta(name).Key, true); err == nil {
					t.Errorf("bob has signed the result %q", name)
				}
			}
			now.Warn()
			now.Warn()
			if n := len(names) - len(c.count); (n > 0) != (len(now.warnings) == 1) {
				t.Errorf("told %q", now.warnings)
			}
			now.end(nil)
		})
	}

	// A result that is made anew takes the place, and is the machine's own.
	now := believing(bob, bucket.NewDirectory(t.TempDir()), keys(bobPrivate, bobPublic))
	anew := cachetest.Put(t, now, "alice", map[string]string{"f": "anew"})
	if e, err := now.Get(ctx, anew.Key, true); err != nil || e.Signature != "" || len(e.Files) != 1 {
		t.Errorf("made anew: %+v, %v", e.Meta, err)
	}
	now.end(nil)
	// A result of a believed signer also takes the place.
	team := bucket.NewDirectory(t.TempDir())
	other := open(t, team, with(keys(bobPrivate, bobPublic)))
	hers := open(t, team, with(keys(alicePrivate, alicePublic)))
	cachetest.Put(t, hers, "unsigned", map[string]string{"f": "hers"})
	hers.flush(t, Sent{Entries: 1})
	now = believing(bob, team, keys(nil, alicePublic))
	if e, err := now.Get(ctx, cachetest.Meta("unsigned").Key, true); err != nil || len(e.Files) != 1 {
		t.Errorf("taken anew: %+v, %v", e.Meta, err)
	}
	if _, err := other.Get(ctx, cachetest.Meta("unsigned").Key, true); err == nil {
		t.Error("who believes bob alone takes it")
	}
	now.end(nil)
}

func (m *machine) end(err error) { m.remote.end(err) }

// No entry can claim that it has no origin.
func TestSignaturesAreOneWord(t *testing.T) {
	ctx, place := context.Background(), bucket.NewDirectory(t.TempDir())
	m := open(t, place)
	key := cachetest.Put(t, m, "x", files).Key
	m.flush(t, Sent{Entries: 1})
	object := string(read(t, place, ObjectOf(key)))
	for _, signature := range []string{"", " ", "\t", "a b"} {
		forged := strings.Replace(object, " -\n", " "+signature+"\n", 1)
		if err := place.Replace(ctx, ObjectOf(key), strings.NewReader(forged), int64(len(forged))); err != nil {
			t.Fatal(err)
		}
		if _, err := open(t, place).Get(ctx, key, true); err == nil {
			t.Errorf("%q is taken", signature)
		}
	}
}
