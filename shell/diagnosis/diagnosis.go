package diagnosis

import (
	"context"
	"errors"
	"fmt"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/failure"
)

// EngineFailure gives what an engine or a registry says its class. Other errors stay as they are.
func EngineFailure(stage string, err error) error {
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*engine.Failure](err); known || errors.Is(err, context.Canceled) {
		return err
	}
	var registry *container.RegistryError
	var refused *container.Error
	var gone *container.Unavailable
	f := &engine.Failure{Err: err, Failure: failure.Failure{Class: container.Class(err), Stage: stage, Message: stage +
		": " + err.Error()}}
	switch {
	case errors.As(err, &registry):
		said := *registry
		said.Remedy = ""
		f.Rule, f.Message, f.Remedy = "registry_"+string(registry.Reason), said.Error(), registry.Remedy
		// until a login or a push: the next apply asks again
		if registry.Reason == container.Denied || registry.Reason == container.Missing {
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

// NotRun is the failure of a command that could not be started, or whose output could not be written. The class is that
// of a program that is not there: what a machine lacks may be there the next time, what an image lacks may not.
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

// Ended says how a command that did not succeed ended.
func Ended(s executor.Status) string {
	if s.Signal != "" {
		return "ended by " + s.Signal
	}
	return fmt.Sprintf("exit status %d", s.Code)
}
