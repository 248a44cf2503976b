package eval

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
	"github.com/benchgraph/benchgraph/internal/cores"
)

// Instances returns the readers of n instances, with the key and the value of each that of returns. It evaluates
// attributes on all cores, if they depend on values only.
func (r Reader) Instances(n int, of func(i int) (key string, each cty.Value)) []Reader {
	var pure []*hcl.Attribute
	for _, attr := range r.Block.Attrs {
		if !r.Bad[attr.Expr] && attr.Name != "for_each" && funcs.Pure(attr.Expr) {
			pure = append(pure, attr)
		}
	}
	readers := make([]Reader, n)
	cores.Share(n, 16, func(from, to int) {
		var ctx *hcl.EvalContext
		for i := from; i < to; i++ {
			key, each := of(i)
			readers[i] = r.With(key, each)
			ctx = r.within(ctx, each)
			readers[i].ahead(pure, ctx)
		}
	})
	r.Scope.checkpoint() // a stopped evaluation leaves readers out
	return readers
}

// ahead evaluates attributes before they are read. An attribute with a mistake is evaluated again when it is read: one
// goroutine reports mistakes, in the order of the instances.
func (r Reader) ahead(attrs []*hcl.Attribute, ctx *hcl.EvalContext) {
	*r.values = make([]evaluated, 0, len(r.Block.Attrs))
	for _, attr := range attrs {
		r.Scope.evaluating(attr.Expr, r.Instance)
		if v, diags := attr.Expr.Value(ctx); len(diags) == 0 {
			r.Scope.weigh(v)
			r.keep(attr, v)
		}
	}
}
