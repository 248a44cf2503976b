package hclspec

import (
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

func failureSchema() *eval.Schema {
	return &eval.Schema{
		Kind: "failure", Label: true, Free: []string{"match", "stage", "class", "remedy", "description"},
		Blocks: []*eval.Schema{{Kind: "retry", Free: []string{"attempts", "backoff"}}},
	}
}

func decodeFailure(r reader, b Block) {
	r.need("match", "the regular expression that a line of the log matches")
	r.need("class", "transient, permanent, fixable, invalid or infra")
	f := Failure{
		Block: b, Match: r.pattern("match", 0), Stages: r.strs("stage"), Remedy: r.str("remedy"),
		Class: r.choice("class", "", "transient", "permanent", "fixable", "invalid", "infra"),
	}
	for i, stage := range f.Stages {
		r.oneOf("stage", r.atItem("stage", i), stage, []string{"fetch", "build", "start", "run", "stop", "parse", "verify"})
	}
	r.str("description")
	if retry := r.block.Block("retry"); retry != nil {
		r := r.nested(retry)
		f.Attempts, f.Backoff = int(r.whole("attempts", 1, 0)), r.duration("backoff", 0)
	}
	r.l.spec.Failures = append(r.l.spec.Failures, f)
}
