package hclspec

import (
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

func wheelSchema() *eval.Schema {
	return &eval.Schema{
		Kind: "wheel", Label: true, Key: []string{"source", "prebuilt", "overlay", "outputs", "fixes"},
		Free: []string{"for_each", "nearest"},
		Blocks: []*eval.Schema{{
			Kind: "build", Key: []string{"inputs", "image", "command", "env", "fixes", "mounts", "network", "sandbox"},
			Free: []string{"secrets", "cpus", "memory", "disk", "timeout", "estimate"},
		}},
	}
}

func decodeWheel(r reader, b Block) {
	w := Wheel{
		Block: b, Source: r.ref("source", "source"), Prebuilt: r.Strs("prebuilt"), Overlay: r.Globs("overlay"),
		Outputs: r.Globs("outputs", "**"), Fixes: r.refs("fixes", "fix"),
	}
	for i, location := range w.Prebuilt {
		r.download(r.AtItem("prebuilt", i), location)
	}
	r.nearest(&w)
	if build := r.Block.Block("build"); build != nil {
		r := r.nested(build)
		r.Need("command", "the command that builds it and leaves the result in $OUT")
		w.Build = &Build{Work: r.work(r.command("command")), Inputs: r.inputs()}
		r.smuggled(w.Build.Command, w.Build.Env)
	} else if !r.Has("prebuilt") && !r.Block.Meant("build") && !r.Block.Meant("prebuilt") {
		r.Fail(b.Range, "No way to get the wheel",
			"%s needs a build block, or prebuilt = [URLs], or both: they are tried in order.", r.Title())
	}
	if len(w.Outputs) == 0 {
		r.Fail(r.At("outputs"), "No outputs",
			"outputs must have a pattern; without outputs, all files of $OUT are kept.")
	}
	r.l.spec.Wheels = append(r.l.spec.Wheels, w)
}
