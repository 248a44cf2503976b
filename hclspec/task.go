package hclspec

import (
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/internal/project"
)

func taskSchema() *eval.Schema {
	return &eval.Schema{
		Kind: "task", Label: true,
		Key:  []string{"inputs", "command", "env", "data", "image", "source", "needs", "outputs", "fixes", "network"},
		Free: []string{"for_each", "secrets", "cpus", "memory", "disk", "timeout", "estimate", "quiet", "description"},
	}
}

func decodeTask(r reader, b Block) {
	r.Need("command", "what is run, for instance command = \"make\"")
	r.Str("description")
	t := Task{
		Block: b, Inputs: r.inputs(), Command: r.command("command"), Env: r.env(), Data: r.data(), Secrets: r.secrets(),
		Image: r.ref("image", "image"), Source: r.ref("source", "source"),
		Needs:   r.refs("needs", "wheel", "image", "fetch", "task", "source", "benchmark", "compare", "report"),
		Outputs: r.Globs("outputs"), Fixes: r.refs("fixes", "fix"), Quiet: r.Bool("quiet"), Network: r.Bool("network"), Limits: r.limits(),
	}
	r.arguments(t.Command, t.Secrets)
	r.l.spec.Tasks = append(r.l.spec.Tasks, t)
}

// inputs are the files that the globs name.
func (r reader) inputs() []string {
	patterns := r.Globs("inputs")
	if len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return project.CheckPattern(strings.TrimPrefix(p, "!")) != nil }) {
		return nil
	}
	found, err := r.l.dir.Select(patterns)
	if err != nil {
		r.Fail(r.At("inputs"), "Invalid inputs", "%s.", err)
	}
	for _, i := range found.Unmatched {
		r.Fail(r.AtItem("inputs", i), "No such input", "%q matches no file below the project's directory.", patterns[i])
	}
	return found.Files
}
