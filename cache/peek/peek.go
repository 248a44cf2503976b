// Package peek looks results up, and leaves those of a shared store where they are.
package peek

import (
	"context"

	"github.com/benchgraph/benchgraph/cache"
)

// peeker is a store that knows of results which it would have to bring here first. Such an entry has no Dir, and its
// Meta neither Text nor Files. A plan asks no more; the Get of the store brings the result
// when a task needs it.
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
