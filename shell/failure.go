package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// outOfMemory is the failure of a command that was killed because it used too much memory.
func (s *Shell) outOfMemory(stage string, o *Output) error {
	f := &engine.Failure{Failure: failure.Failure{Class: failure.Permanent, Rule: "oom_killed", Stage: stage,
		Evidence: o.LastLine()}}
	switch {
	case s.limits.Memory == 0:
		f.Class = failure.Infra
		f.Message, f.Remedy = stage+": killed, because this machine ran out of memory",
			"declare memory, so that no more is run at a time than fits"
	default:
		f.Message = fmt.Sprintf("%s: killed, because it used more than its %s of memory", stage,
			units.BytesSize(float64(s.limits.Memory)))
		f.Remedy = "raise memory in the block"
		if !s.keyed {
			f.Remedy += ", and apply with -retry-failed"
		}
	}
	return f
}

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

// notRun is the failure of a command that did not start. What lacks in an image, or in what was made for the command,
// lacks for good; what lacks on this machine may be there the next time.
func (s *Shell) notRun(err error, stage string) error {
	if start, ok := errors.AsType[*executor.StartError](err); s.box == nil && !(ok && s.brought(start)) {
		return NotRun(err, stage, failure.Infra)
	}
	return NotRun(err, stage, failure.Permanent)
}

// brought says whether what keeps a program from being started on the host came with the node's inputs: it is not
// there, or cannot be executed, in the directory of the command or in an input. The interpreter of a script is the
// machine's.
func (s *Shell) brought(e *executor.StartError) bool {
	if e.Passing || !strings.ContainsRune(e.Program, filepath.Separator) {
		return false
	}
	program := e.Program
	if !filepath.IsAbs(program) {
		program = filepath.Join(s.dir, program)
	}
	within := func(dir string) bool { return fs.Below(program, dir) }
	if !within(s.dir) && !slices.ContainsFunc(s.env.Inputs, func(in engine.Input) bool { return within(in.Dir) }) {
		return false
	}
	info, err := os.Stat(program)
	return err != nil || info.IsDir() || info.Mode()&0o111 == 0 || errors.Is(e, syscall.ENOEXEC)
}
