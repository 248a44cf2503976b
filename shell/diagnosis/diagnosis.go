package diagnosis

import (
	"context"
	"errors"
	"fmt"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/registry"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/failure"
)

// EngineFailure turns an error of an engine or a registry into a failure with a class. It returns other errors
// unchanged.
func EngineFailure(stage string, err error) error {
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*engine.Failure](err); known || errors.Is(err, context.Canceled) {
		return err
	}
	var unserved *registry.Error
	var refused *container.Error
	var gone *container.Unavailable
	f := &engine.Failure{Err: err, Failure: failure.Failure{Class: container.Class(err), Stage: stage, Message: stage +
		": " + err.Error()}}
	switch {
	case errors.As(err, &unserved):
		said := *unserved
		said.Remedy = ""
		f.Rule, f.Message, f.Remedy = "registry_"+string(unserved.Reason), said.Error(), unserved.Remedy
		// a login or a push may change that: the next apply asks again
		if unserved.Reason == registry.Denied || unserved.Reason == registry.Missing {
			f.Class, f.Retry = failure.Infra, &engine.Retry{Attempts: 1}
		}
	case container.IsNoImage(err):
		f.Class, f.Rule, f.Remedy, f.Retry = failure.Infra, engine.InputGone, "the next plan makes it anew",
			&engine.Retry{Attempts: 1}
	case errors.As(err, &refused):
		f.Rule, f.Message, f.Remedy = "engine", stage+": "+refused.Doing+": "+refused.Reason, refused.Remedy
		if container.IsFull(err) {
			f.Rule, f.Retry = engine.DiskFull, &engine.Retry{Attempts: 1}
		}
	case errors.As(err, &gone):
		f.Rule, f.Message, f.Remedy = "engine_gone", stage+": no container engine at "+gone.Host+": "+gone.Reason,
			gone.Remedy
	default:
		return err
	}
	return f
}

// NotRun returns the failure of a command that did not start, or whose output could not be written. lacking is the
// class for a missing program: a machine may have the program the next time, an image may not.
func NotRun(err error, stage string, lacking failure.Class) error {
	f := &engine.Failure{Err: err, Retry: &engine.Retry{Attempts: 1},
		Failure: failure.Failure{Class: lacking, Rule: "not_started", Stage: stage}}
	if unsupported, ok := errors.AsType[*executor.Unsupported](err); ok {
		f.Class, f.Message, f.Remedy = failure.Infra, unsupported.What, unsupported.Remedy
		return f
	}
	start, ok := errors.AsType[*executor.StartError](err)
	if !ok {
		return EngineFailure(stage, err)
	}
	f.Message, f.Remedy = start.Program+": "+start.Reason, start.Remedy
	if start.Passing {
		f.Retry = nil
	}
	return f
}

// Ended describes the end of a command that failed.
func Ended(s executor.Status) string {
	if s.Signal != "" {
		return "ended by " + s.Signal
	}
	return fmt.Sprintf("exit status %d", s.Code)
}
