package shared

import (
	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared/index"
)

// signed is what a signature is over.
func signed(m *cache.Meta) []byte { return []byte(magic + "\n" + index.Statement(m)) }

// accepts reports whether a record may be believed.
func (r *remote) accepts(rec *index.Record) bool { return r.Believes(signed(&rec.Meta), rec.Signature) }
