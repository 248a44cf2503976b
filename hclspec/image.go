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
		Block: b, From: r.Str("from"), Install: r.refs("install", "wheel", "fetch", "task"), Fixes: r.refs("fixes", "fix"),
		Verify: r.command("verify"), Push: r.Str("push"),
	}
	build := r.Block.Block("build")
	if build != nil {
		r := r.nested(build)
		i.Context, i.Dockerfile, i.Args = r.Inside("context", "."), r.Inside("dockerfile", "Dockerfile"), r.textMap("args")
	}
	if r.Has("from") == (build != nil) && !r.Block.Meant("from") && !r.Block.Meant("build") {
		r.Fail(b.Range, "Where does the image come from?", "%s needs either from = \"IMAGE\" or a build block.", r.Title())
	}
	r.l.spec.Images = append(r.l.spec.Images, i)
}
