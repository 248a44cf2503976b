package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
)

// memory is a cache.Store in memory that can forget entries. It serves tests with many entries, and measures the engine
// without a disk. Results have one file, "out".
type memory struct {
	dir string

	mu       sync.Mutex
	entries  map[cache.Key]cache.Entry
	contents map[cache.Key]cache.Key
}

func newMemory(w *world) *memory {
	return &memory{dir: w.dir, entries: map[cache.Key]cache.Entry{}, contents: map[cache.Key]cache.Key{}}
}

func (m *memory) Get(_ context.Context, key cache.Key, _ bool) (cache.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entry, ok := m.entries[key]
	if !ok {
		return entry, cache.ErrMiss
	}
	return entry, nil
}

func (m *memory) Find(ctx context.Context, content cache.Key) (cache.Entry, error) {
	m.mu.Lock()
	key, ok := m.contents[content]
	m.mu.Unlock()
	if !ok {
		return cache.Entry{}, cache.ErrMiss
	}
	return m.Get(ctx, key, false)
}

func (m *memory) Put(_ context.Context, draft cache.Draft) (cache.Entry, error) {
	dir, meta := filepath.Join(draft.Dir, cache.FilesDir), draft.Meta
	m.mu.Lock()
	defer m.mu.Unlock()
	if entry, ok := m.entries[meta.Key]; ok {
		return entry, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil {
		return cache.Entry{}, err
	}
	sum := sha256.Sum256(text)
	meta.Digest = hex.EncodeToString(sum[:])
	place := filepath.Join(m.dir, fmt.Sprint("entry-", len(m.entries), "-", meta.Key.Short()))
	if err := os.Rename(dir, place); err != nil {
		return cache.Entry{}, err
	}
	m.entries[meta.Key] = cache.Entry{Meta: meta, Dir: place}
	m.contents[meta.Content] = meta.Key
	return m.entries[meta.Key], nil
}

// fill stores a made-up result for every node of a plan.
func (m *memory) fill(p *engine.Plan) {
	for i := range p.Steps {
		s := &p.Steps[i]
		meta := cache.Meta{Key: s.Key, Text: s.Text, Address: s.Node.Address, Digest: s.Key.String()}
		m.entries[s.Key] = cache.Entry{Meta: meta, Dir: m.dir}
	}
}
