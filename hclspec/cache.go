package hclspec

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

// Cache is a directory in which a measured program keeps what it compiles while it runs, as torch.compile and Triton
// do. A run that is not measured fills the cache, and each start gets its own copy.
type Cache struct {
	Block
	Path string // absolute path in containers, or ~/PATH below the home of the commands
}

func cacheSchema() *eval.Schema {
	return &eval.Schema{Kind: "cache", Label: true, Key: []string{"path"}, Free: []string{"per"}}
}

func decodeCache(r reader, b Block) {
	r.Need("path", "the directory that the program fills, as \"~/.cache/vllm\"")
	r.Choice("per", "image", "image")
	c := Cache{Block: b, Path: r.Str("path")}
	rest, home := strings.CutPrefix(c.Path, "~/")
	switch {
	case c.Path == "":
	case home && rest != "" && path.Clean("/"+rest) == "/"+rest:
	case !home && freeInContainers(c.Path):
	default:
		r.Fail(r.At("path"), "Invalid path",
			"%q must begin with ~/ and stay below the home, as \"~/.cache/vllm\", or be "+
				"an absolute path of a directory in containers. Write it in its shortest form. /benchgraph, /proc, "+
				"/sys and /dev belong to others.", c.Path)
	}
	r.l.spec.Caches = append(r.l.spec.Caches, c)
}

// caches reads the caches that a benchmark names. Each must have a place of its own, which the commands of the
// benchmark can use.
func (r reader) caches(b *Benchmark) {
	b.Caches, b.Fill = r.refs("caches", "cache"), b.Command
	if r.Has("fill") {
		b.Fill = r.filledIn("fill")
		r.arguments(b.Fill, b.Secrets)
		if !r.Has("caches") {
			r.Fail(r.At("fill"), "Nothing to fill", "fill is a command for caches, and %s names none.", r.Title())
		}
	}
	for i, a := range b.Caches {
		c := r.l.cacheAt(a)
		if c == nil || c.Path == "" {
			continue
		}
		home := strings.HasPrefix(c.Path, "~/")
		switch _, set := b.Env["HOME"]; {
		case !home && b.Image == (Address{}):
			r.Fail(r.At("caches"), "Cache outside the home", "%s is at %s, and %s runs on the host, where a start has "+
				"nothing of its own there. Let the program keep it below its home, and write a path that begins "+
				"with ~/.", a, c.Path, r.Title())
		case home && (set || b.Server != nil && b.Server.Env["HOME"] != nil):
			r.Fail(r.At("caches"), "Another home", "%s is below the home that benchgraph gives to the commands, and "+
				"env sets HOME. Leave HOME out.", a)
		}
		for _, other := range b.Caches[:i] {
			if o := r.l.cacheAt(other); o != nil && overlap(o.Path, c.Path) {
				r.Fail(r.At("caches"), "Two caches in one place", "%s is at %s, and %s at %s.",
					other, o.Path, a, c.Path)
			}
		}
		for _, mount := range b.Mounts {
			if m := r.l.mountAt(mount); m != nil && m.Target != "" && overlap(m.Target, c.Path) {
				r.Fail(r.At("caches"), "A cache in a mount", "%s is at %s, and %s at %s.", mount, m.Target, a, c.Path)
			}
		}
	}
}

// FillsOtherwise reports whether another command than the measured one fills the caches.
func (b *Benchmark) FillsOtherwise() bool {
	return !slices.Equal(b.Fill.Shell, b.Command.Shell) ||
		!slices.EqualFunc(b.Fill.Argv, b.Command.Argv, slices.Equal[Text])
}

// overlap reports whether two paths are the same directory, or one lies in the other.
func overlap(a, b string) bool { return under(a, b) || under(b, a) }

// cacheAt returns the cache of an address; nil: there is none, or it has a mistake.
func (l *loader) cacheAt(a Address) *Cache {
	if i := slices.IndexFunc(l.spec.Caches, func(c Cache) bool { return c.Address == a }); i >= 0 {
		return &l.spec.Caches[i]
	}
	return nil
}

// checkCaches warns of caches that no benchmark names: without them every start compiles anew.
func (l *loader) checkCaches() {
	for _, d := range l.of("cache") {
		names := func(b *declaration) bool {
			return b.Attrs["caches"] != nil && mayName(b.Attrs["caches"].Expr.Variables(), d.Name)
		}
		if !l.scope.Partial && !l.scope.Diags.HasErrors() && !slices.ContainsFunc(l.of("benchmark"), names) {
			l.scope.Diags.Warn("", d.Range, "Cache not used", fmt.Sprintf(
				"No benchmark names %s, so that each start compiles anew. Name it: caches = [%[1]s].", d.address))
		}
	}
}

// mayName reports whether an expression with these variables may lead to a cache. Variables of the project hold no
// references.
func mayName(variables []hcl.Traversal, cache string) bool {
	return slices.ContainsFunc(variables, func(v hcl.Traversal) bool {
		if v.RootName() != "cache" || len(v) < 2 {
			return v.RootName() != "var"
		}
		name, ok := v[1].(hcl.TraverseAttr)
		return !ok || name.Name == cache
	})
}
