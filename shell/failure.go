package shell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
	"github.com/benchgraph/benchgraph/shell/output"
)

// outOfMemory returns the failure of a command that was killed because it used too much memory.
func (s *Shell) outOfMemory(stage string, o *output.Kept) error {
	f := &engine.Failure{Failure: failure.Failure{Class: failure.Permanent, Rule: "oom_killed", Stage: stage,
		Evidence: o.LastLine()}}
	switch {
	case s.limits.Memory == 0:
		f.Class = failure.Infra
		f.Message, f.Remedy = stage+": killed, because this machine ran out of memory",
			"declare memory, so that fewer nodes run at a time"
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

// notRun returns the failure of a command that did not start. A program that is missing in an image or in an input
// stays missing; one that is missing on this machine may be there the next time.
func (s *Shell) notRun(err error, stage string) error {
	if start, ok := errors.AsType[*executor.StartError](err); s.box == nil && !(ok && s.cameWithInputs(start)) {
		return diagnosis.NotRun(err, stage, failure.Infra)
	}
	return diagnosis.NotRun(err, stage, failure.Permanent)
}

// cameWithInputs reports whether a program that could not start on the host came with the node's inputs: it is missing
// or not executable in the working directory or in an input. The interpreter of a script is the machine's.
func (s *Shell) cameWithInputs(e *executor.StartError) bool {
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
