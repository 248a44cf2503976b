package memo

import (
	"sync"

	"github.com/benchgraph/benchgraph/cache"
)

// stored returns the results of a memo that does not hold as a whole: a result hangs on nothing but its key, and a look
// at the names and sizes of its files costs a fraction of what it costs to read what is stored. The returned function
// is nil where the store has no such result under a key. It looks at all of them when it is called first.
//
// Only tasks have results of which a plan needs no more than a memo keeps.
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
