package shared

import "github.com/benchgraph/benchgraph/cache"

// signed is what a signature is over.
func signed(m *cache.Meta) []byte { return []byte(magic + "\n" + statement(m)) }

// accepts reports whether a record may be believed.
func (r *remote) accepts(rec *record) bool { return r.Believes(signed(&rec.Meta), rec.signature) }
