// Package peek looks results up without bringing those of a shared store here.
package peek

import (
	"context"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/cores"
)

// peeker is a store with another store behind it. Peek returns the Meta of a result that only the other store has,
// without Text and Files, in an entry without a Dir. That is enough for a plan. Get of the store brings the result when
// a task needs it.
type peeker interface {
	Peek(ctx context.Context, key cache.Key) (cache.Entry, error)
	PeekContent(ctx context.Context, content cache.Key) (cache.Entry, error)
}

// Get looks a key up in a store, and brings no result here.
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

// Answers are a store's answers about keys that were looked up before they are needed. The zero value has none.
type Answers map[cache.Key]*answer

type answer struct {
	entry cache.Entry
	err   error
}

// Ahead looks keys up on all cores. A key that is given twice is looked up once.
func Ahead(ctx context.Context, store cache.Store, keys []cache.Key) Answers {
	answers := make(Answers, len(keys))
	distinct := make([]cache.Key, 0, len(keys))
	for _, key := range keys {
		if answers[key] == nil {
			answers[key] = &answer{}
			distinct = append(distinct, key)
		}
	}
	cores.Share(len(distinct), 16, func(from, to int) {
		for _, key := range distinct[from:to] {
			a := answers[key]
			a.entry, a.err = Get(ctx, store, key)
		}
	})
	return answers
}

// Get returns the answer about a key once. For a key without an answer, or whose answer was returned before, it asks
// the store.
func (a Answers) Get(ctx context.Context, store cache.Store, key cache.Key) (cache.Entry, error) {
	known := a[key]
	if known == nil {
		return Get(ctx, store, key)
	}
	delete(a, key)
	return known.entry, known.err
}
