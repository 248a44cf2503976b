package memo

import (
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cache"
)

// Known has the results of a memo that does not hold as a whole. The zero Known has none.
type Known struct {
	// Result returns the result under a key; nil if the memo lists none or the store has lost it. Its first call checks
	// all results. A nil Result knows none.
	Result func(cache.Key) *cache.Meta
	Used   time.Time // when the store was last told that the results are in use
}

// known returns the results of a memo that does not hold as a whole: a result depends only on its key, and comparing
// the names and sizes of its files costs a fraction of reading its entry. The comparison is as close as it would be if
// the memo held.
//
// Only results of tasks are found: a plan needs more than a memo keeps of others.
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
