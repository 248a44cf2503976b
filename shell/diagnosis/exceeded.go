package diagnosis

import (
	"fmt"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// WroteTooMuch returns the failure of a command whose attempt wrote more than the node's disk, in bytes.
func WroteTooMuch(stage string, disk int64, evidence string) *engine.Failure {
	return exceeded(stage, evidence, fmt.Sprintf("the node wrote more than its %s of disk", size(disk)),
		"raise disk in the block")
}

// PrintedTooMuch returns the failure of a command that printed more than so many bytes. declared reports whether they
// are the node's disk.
func PrintedTooMuch(stage string, most int64, declared bool, evidence string) *engine.Failure {
	remedy := "let it print less, or declare a larger disk in the block"
	if declared {
		remedy = "let it print less, or raise disk in the block"
	}
	return exceeded(stage, evidence, fmt.Sprintf("it printed more than %s", size(most)), remedy)
}

func exceeded(stage, evidence, why, remedy string) *engine.Failure {
	return &engine.Failure{Failure: failure.Failure{Class: failure.Permanent, Rule: engine.DiskExceeded, Stage: stage,
		Evidence: evidence, Message: stage + ": ended, because " + why,
		Remedy: remedy + ", and apply with -retry-failed"}}
}

func size(bytes int64) string { return units.BytesSize(float64(bytes)) }
