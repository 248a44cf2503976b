package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
)

// A program that reaches the store changes what others are measured with: its own result does not count, nobody uses the changed bytes,
// and the next apply makes them anew.
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
	if f.Class != cache.Infra || f.Rule != engine.InputChanged || !strings.Contains(f.Message, "input a.wheel was changed while b.cheat ran") {
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
