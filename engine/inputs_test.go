package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// A program changes an input in the store. The program's own result does not count, no later node uses the changed
// bytes, and the next apply makes the input again.
func TestInputsThatAreChangedInTheStoreAreNotUsed(t *testing.T) {
	w := newWorld(t)
	other := []byte("Wheel")
	change := func(_ context.Context, env *engine.Env) error {
		path := filepath.Join(env.Inputs[0].Dir, "out")
		if err := os.Chmod(path, 0o644); err != nil {
			return err
		}
		return os.WriteFile(path, other, 0o644)
	}
	story := func(do func(context.Context, *engine.Env) error) []node {
		return []node{
			{at: "a.wheel", says: "wheel"},
			{at: "b.cheat", says: "cheat", needs: []string{"a.wheel"}, do: do},
			{at: "c.later", says: "later", needs: []string{"a.wheel", "b.cheat"}},
			{at: "d.other", says: "other", needs: []string{"a.wheel"}, then: []string{"b.cheat"}},
		}
	}
	r := w.apply(story(change)...)
	if r.Done != 1 || r.Failed != 2 {
		t.Errorf("%+v", r)
	}
	f := w.event(engine.NodeFailed, "b.cheat").Failure
	if f.Class != failure.Infra || f.Rule != engine.InputChanged ||
		!strings.Contains(f.Message, "input a.wheel was changed while b.cheat ran") {
		t.Errorf("%+v", *f)
	}
	if f := w.event(engine.NodeFailed, "d.other").Failure; f.Rule != engine.InputGone {
		t.Errorf("%+v", *f)
	}
	kept, err := filepath.Glob(filepath.Join(w.dir, "store", "quarantine", "*", "entry", "out", "out"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	if text, err := os.ReadFile(kept[0]); err != nil || string(text) != string(other) {
		t.Errorf("%q, %v", text, err)
	}
	if r := w.apply(story(nil)...); r.Done != 4 {
		t.Errorf("%+v", r)
	}
}

// A file that is added to an input is detected, and so is an entry that was made again under the same key with other
// bytes.
func TestInputsThatAreAddedToOrReplacedAreNotUsed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world, *engine.Env) error{
		"added": func(_ *world, env *engine.Env) error {
			if err := os.Chmod(env.Inputs[0].Dir, 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(env.Inputs[0].Dir, "sitecustomize.py"), nil, 0o644)
		},
		"replaced": func(w *world, env *engine.Env) error {
			dir, err := w.disk.Scratch()
			if err != nil {
				return err
			}
			old := env.Inputs[0].Entry
			out := filepath.Join(dir, cache.FilesDir)
			if err := errors.Join(os.Mkdir(out, 0o755), os.WriteFile(filepath.Join(out, "out"), []byte("other"), 0o644),
				w.disk.Remove(old.Key)); err != nil {
				return err
			}
			log, err := os.Create(filepath.Join(w.dir, "log"))
			if err != nil {
				return err
			}
			defer log.Close()
			_, err = w.disk.Put(t.Context(), cache.Draft{Meta: cache.Meta{Key: old.Key, Text: old.Text,
				Address: old.Address, Created: old.Created, Log: "log"}, Dir: dir, Log: log})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.apply(node{at: "a.wheel", says: "wheel"})
			time.Sleep(2100 * time.Millisecond) // its stamps have settled
			r := w.apply(node{at: "a.wheel", says: "wheel"}, node{at: "b.cheat", says: "cheat",
				needs: []string{"a.wheel"},
				do:    func(_ context.Context, env *engine.Env) error { return change(w, env) }})
			if r.Failed != 1 {
				t.Fatalf("%+v", r)
			}
			if f := w.event(engine.NodeFailed, "b.cheat").Failure; f.Rule != engine.InputChanged {
				t.Errorf("%+v", *f)
			}
		})
	}
}

// unreadable is a store whose files can no longer be opened once a flag is set.
type unreadable struct {
	*disk.Disk
	is bool
}

func (u *unreadable) GetSealed(ctx context.Context, key cache.Key) (cache.Entry, disk.Seal, error) {
	if u.is {
		return cache.Entry{}, disk.Seal{}, &os.PathError{Op: "open", Path: "out", Err: syscall.EMFILE}
	}
	return u.Disk.GetSealed(ctx, key)
}

func (u *unreadable) Untouched(*cache.Meta, disk.Seal) bool { return false }

// An input that the machine cannot read counts as unchanged, and no writer is blamed.
func TestAnInputThatCannotBeReadWasNotChanged(t *testing.T) {
	w := newWorld(t)
	store := &unreadable{Disk: w.disk}
	w.store = store
	r := w.apply(node{at: "a.wheel", says: "wheel"}, node{at: "b.user", says: "user", needs: []string{"a.wheel"},
		do: func(context.Context, *engine.Env) error { store.is = true; return nil }})
	f := w.event(engine.NodeFailed, "b.user").Failure
	if r.Failed != 1 || f.Class != failure.Infra || f.Rule != "input_unread" || f.Remedy != "" ||
		f.Message != "input a.wheel could not be read: open out: too many open files" {
		t.Errorf("%+v: %+v", r, *f)
	}
	store.is = false
	if r := w.apply(node{at: "a.wheel", says: "wheel"}, node{at: "b.user", says: "user",
		needs: []string{"a.wheel"}}); r.Done != 1 {
		t.Errorf("at the next apply: %+v", r)
	}
}
