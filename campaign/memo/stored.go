package memo

import (
	"sync"

	"github.com/benchgraph/benchgraph/cache"
)

// stored returns a function that finds results of a memo which does not hold as a whole: a result depends only on its
// key, and comparing the names and sizes of its files costs a fraction of reading its entry. The function returns nil
// for a key without such a result. Its first call checks all results.
//
// Only results of tasks are found: a plan needs more than a memo keeps of others.
func (m *memo) stored(store results) func(cache.Key) *cache.Meta {
	find := sync.OnceValue(func() map[cache.Key]*cache.Meta {
		whole := make([]bool, len(m.Nodes))
		each(len(m.Nodes), func(i int) {
			n := &m.Nodes[i]
			whole[i] = n.Kind == "task" && n.Digest != "" && n.Outside == "" && store.Intact(&n.Entry, true)
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
	return func(key cache.Key) *cache.Meta { return find()[key] }
}
