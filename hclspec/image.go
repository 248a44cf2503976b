package hclspec

import (
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

func imageSchema() *eval.Schema {
	return &eval.Schema{
		Kind: "image", Label: true, Key: []string{"from", "install", "fixes", "verify", "push"}, Free: []string{"for_each"},
		Blocks: []*eval.Schema{{Kind: "build", Key: []string{"context", "dockerfile", "args"}}},
	}
}

func decodeImage(r reader, b Block) {
	i := Image{
		Block: b, From: r.str("from"), Install: r.refs("install", "wheel", "fetch", "task"), Fixes: r.refs("fixes", "fix"),
		Verify: r.command("verify"), Push: r.str("push"),
	}
	build := r.block.Block("build")
	if build != nil {
		r := r.nested(build)
		i.Context, i.Dockerfile, i.Args = r.inside("context", "."), r.inside("dockerfile", "Dockerfile"), r.textMap("args")
	}
	if r.has("from") == (build != nil) {
		r.fail(b.Range, "Where does the image come from?", "%s needs either from = \"IMAGE\" or a build block.", r.title())
	}
	r.l.spec.Images = append(r.l.spec.Images, i)
}
