package memo

import (
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cache"
)

// Known is what a memo that does not hold as a whole knows of the store. The zero Known is nothing.
type Known struct {
	// Result returns the result under a key; nil where the store has none that the memo knows. It looks at all results
	// when it is called first. A nil Result knows none.
	Result func(cache.Key) *cache.Meta
	Used   time.Time // when the store was last told that the results are in use
}

// known returns the results of a memo that does not hold as a whole: a result hangs on nothing but its key, and a look
// at the names and sizes of its files costs a fraction of what it costs to read what is stored. It looks as closely as
// it would if the memo held.
//
// Only tasks have results of which a plan needs no more than a memo keeps.
func (m *memo) known(store results) Known {
	now := time.Now()
	use := m.unused(now)
	if use {
		m.Used = now
	}
	find := sync.OnceValue(func() map[cache.Key]*cache.Meta {
		whole := make([]bool, len(m.Nodes))
		each(len(m.Nodes), func(i int) {
			n := &m.Nodes[i]
			whole[i] = n.Kind == "task" && n.Digest != "" && n.Outside == "" && store.Intact(&n.Entry, use)
		})
		metas, found := make([]cache.Meta, len(m.Nodes)), make(map[cache.Key]*cache.Meta, len(m.Nodes))
		for i := range m.Nodes {
			if n := &m.Nodes[i]; whole[i] {
				metas[i] = n.Entry.Result(n.Digest)
				for k := range n.Entry.Files {
					metas[i].Bytes += n.Entry.Files[k].Size
				}
				found[n.Entry.Key] = &metas[i]
			}
		}
		return found
	})
	return Known{Result: func(key cache.Key) *cache.Meta { return find()[key] }, Used: m.Used}
}
