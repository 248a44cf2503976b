package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/failure"
)

// supply adds the verified results of the dependencies to env.
func (r *run) supply(env *Env, n *Node, a *attempt) error {
	for i, dep := range n.Needs {
		entry, err := r.checks.inputs.get(r.ctx, a.inputs[i])
		if err != nil {
			return missingInput(dep.Address, err)
		}
		if n.Remote != nil { // the other machine has only the key of the plan, not that of an equal result
			s := &r.steps[dep.id]
			entry.Key, entry.Text, entry.Address = s.Key, s.Text, dep.Address
		}
		env.Inputs = append(env.Inputs, Input{Address: dep.Address, Entry: entry})
	}
	env.Ends = a.ends
	for i := range env.Ends {
		e := &env.Ends[i]
		if !e.Entry.Key.IsZero() {
			entry, err := r.checks.inputs.get(r.ctx, &e.Entry.Meta)
			if err != nil {
				return missingInput(e.Address, err)
			}
			e.Entry = entry
		}
	}
	return nil
}

// InputGone is the rule of a failure for an input that was damaged or removed since the plan. The next plan makes the
// input again.
const InputGone = "input_gone"

// InputChanged is the rule of a failure for an input that was changed in the store while the node ran. The store has
// put the input into quarantine.
const InputChanged = "input_changed"

// recheck verifies that the inputs have not changed since they were checked. A program that can write to the store may
// have changed its own inputs or those of later nodes.
func (r *run) recheck(n *Node, a *attempt) error {
	used := make([]End, len(n.Needs), len(n.Needs)+len(a.ends))
	for i, dep := range n.Needs {
		used[i].Address, used[i].Entry.Meta = dep.Address, *a.inputs[i]
	}
	for _, e := range append(used, a.ends...) {
		if e.Entry.Key.IsZero() {
			continue
		}
		if _, err := r.checks.inputs.get(r.ctx, &e.Entry.Meta); err != nil && r.ctx.Err() == nil {
			return unusable(e.Address, err, failure.Failure{Rule: InputChanged, Stage: "verify",
				Message: fmt.Sprintf("input %s was changed while %s ran: %v", e.Address, n.Address, err),
				Remedy: "the result does not count. Find the program that writes to the store; " +
					`sandbox = "required" keeps programs from it`})
		}
	}
	return nil
}

// missingInput returns the failure of a node whose input cannot be used.
func missingInput(address string, err error) error {
	return unusable(address, err, failure.Failure{Rule: InputGone, Stage: "start",
		Message: "input " + address + ": " + err.Error(), Remedy: "the next plan makes the input anew"})
}

// unusable returns f as the failure for a bad input, unless the machine could not read it: then the input may be whole.
func unusable(address string, err error, f failure.Failure) error {
	if f.Class = failure.Infra; !errors.Is(err, cache.ErrMiss) {
		f.Rule, f.Message, f.Remedy = "input_unread", "input "+address+" could not be read: "+err.Error(), ""
	}
	return &Failure{Err: err, Retry: &Retry{Attempts: 1}, Failure: f}
}

// verifiedInputs checks every byte of the entries that tasks use: once, and again if the files may have changed.
type verifiedInputs struct {
	store cache.Store
	mu    sync.Mutex
	seen  map[cache.Key]func() (verified, error)
}

// verified is an entry whose bytes were checked.
type verified struct {
	cache.Entry
	seal disk.Seal
}

// sealer is a store that reports whether the files of an entry may have changed since they were checked.
type sealer interface {
	GetSealed(context.Context, cache.Key) (cache.Entry, disk.Seal, error)
	Untouched(*cache.Meta, disk.Seal) bool
}

// get returns an entry, or an error if its bytes do not have the digest of m.
func (v *verifiedInputs) get(ctx context.Context, m *cache.Meta) (cache.Entry, error) {
	key := m.Key
	check := sync.OnceValues(func() (verified, error) { return v.check(ctx, key) })
	read := v.firstCheck(key, check)
	found, err := read()
	if store, ok := v.store.(sealer); ok && err == nil && !store.Untouched(&found.Meta, found.seal) {
		v.mu.Lock()
		v.seen[key] = check
		v.mu.Unlock()
		found, err = check() // returns at once if read has just called it
	}
	if err == nil && found.Digest != m.Digest {
		err = fmt.Errorf("entry %s: %w: it was made anew, with other bytes", key.Short(), cache.ErrMiss)
	}
	return found.Entry, err
}

// firstCheck returns the first check of an entry; check, if there was none.
func (v *verifiedInputs) firstCheck(key cache.Key, check func() (verified, error)) func() (verified, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.seen[key] == nil {
		v.seen[key] = check
	}
	return v.seen[key]
}

func (v *verifiedInputs) check(ctx context.Context, key cache.Key) (found verified, err error) {
	if store, ok := v.store.(sealer); ok {
		found.Entry, found.seal, err = store.GetSealed(ctx, key)
	} else {
		found.Entry, err = v.store.Get(ctx, key, true)
	}
	return found, err
}
