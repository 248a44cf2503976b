package hclspec

import (
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

func failureSchema() *eval.Schema {
	return &eval.Schema{
		Kind: "failure", Label: true, Free: []string{"match", "stage", "class", "remedy", "wrapper", "description"},
		Blocks: []*eval.Schema{{Kind: "retry", Free: []string{"attempts", "backoff"}}},
	}
}

func decodeFailure(r reader, b Block) {
	r.Need("match", "the regular expression that a line of the log matches")
	r.Need("class", "transient, permanent, fixable, invalid or infra")
	f := FailureRule{Block: b, Rule: failure.Rule{
		Name: b.Address.Name, Match: r.Pattern("match", 0), Stages: r.Strs("stage"), Remedy: r.Str("remedy"),
		Wrapper: r.Bool("wrapper"),
		Class:   failure.Class(r.Choice("class", "", "transient", "permanent", "fixable", "invalid", "infra")),
	}}
	for i, stage := range f.Stages {
		r.OneOf("stage", r.AtItem("stage", i), stage, []string{"fetch", "build", "start", "run", "stop", "parse",
			"verify"})
	}
	r.Str("description")
	if retry := r.Block.Block("retry"); retry != nil {
		r := r.nested(retry)
		f.Attempts, f.Backoff = int(r.Whole("attempts", 1, 0)), r.Duration("backoff", 0)
	}
	r.l.spec.Failures = append(r.l.spec.Failures, f)
}
