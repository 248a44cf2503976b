// Package peek looks results up, and leaves those of a shared store where they are.
package peek

import (
	"context"

	"github.com/benchgraph/benchgraph/cache"
)

// peeker is a store with another store behind it. Peek returns the Meta of a result that only the other store has,
// without Text and Files, in an entry without a Dir. That is enough for a plan. Get of the store brings the result when
// a task needs it.
type peeker interface {
	Peek(ctx context.Context, key cache.Key) (cache.Entry, error)
	PeekContent(ctx context.Context, content cache.Key) (cache.Entry, error)
}

// Get looks a key up in a store, and brings nothing here.
func Get(ctx context.Context, store cache.Store, key cache.Key) (cache.Entry, error) {
	if p, ok := store.(peeker); ok {
		return p.Peek(ctx, key)
	}
	return store.Get(ctx, key, false)
}

// Find is Get by content key.
func Find(ctx context.Context, store cache.Store, content cache.Key) (cache.Entry, error) {
	if p, ok := store.(peeker); ok {
		return p.PeekContent(ctx, content)
	}
	return store.Find(ctx, content)
}
