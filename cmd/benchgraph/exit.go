package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/term"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/applylock"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/gate"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/stats"
)

// diagError has mistakes of the user's files, with their places.
type diagError struct {
	diags hcl.Diagnostics
	files map[string]*hcl.File
}

func (e *diagError) Error() string { return e.diags.Error() }

// pendingError reports that a plan has changes, for -detailed-exitcode.
type pendingError struct{}

func (pendingError) Error() string { return "changes are pending" }

// failedError reports that nodes failed. Each failure has been printed before.
type failedError struct{ count int }

func (e *failedError) Error() string { return fmt.Sprintf("%d nodes failed", e.count) }

// blockedError reports that selected nodes could not run, though none of them failed. The reasons have been shown.
type blockedError struct {
	count int
	never bool // no device of this machine can ever serve any of them
}

func (e *blockedError) Error() string { return fmt.Sprintf("%d nodes are blocked", e.count) }

// infeasibleError reports that no device of this machine can ever serve a requested node.
type infeasibleError struct {
	target string
	reason string
}

func (e *infeasibleError) Error() string {
	return fmt.Sprintf("-target %s: no device of this machine can ever serve it: %s", e.target, e.reason)
}

// budgetError reports that the GPU hours or the time that the user allowed do not suffice.
type budgetError struct{ message string }

func (e *budgetError) Error() string { return e.message }

// interruptedError reports that somebody ended this process.
type interruptedError struct{}

func (interruptedError) Error() string {
	return "interrupted: what ran was ended; what is finished is kept"
}

// Unwrap makes the error match that of a cancelled context.
func (interruptedError) Unwrap() error { return context.Canceled }

func hint(remedy, format string, args ...any) error { return cli.Hint(remedy, format, args...) }

// is reports whether an error, or one that it wraps, has type E.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// exitCode maps an error to the exit code; no other code does. An outcome that -fail-on names wins, since the user
// asked for it. A failure wins over a refusal: comparisons with failed nodes are incomplete anyway. A blocked node
// counts as a failure of the whole.
func exitCode(ctx context.Context, err error) int {
	blocked, isBlocked := errors.AsType[*blockedError](err)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		return 130
	case errors.Is(err, pendingError{}):
		return 2
	case is[*gate.Error](err):
		return 8
	case is[*failedError](err):
		return 3
	case is[*stats.RefusedError](err):
		return 4
	case is[*applylock.HeldError](err), errors.Is(err, cache.ErrBusy):
		return 5
	case is[*budgetError](err):
		return 6
	case is[*infeasibleError](err), isBlocked && blocked.never:
		return 7
	case isBlocked:
		return 3
	}
	return 1
}

// explain writes an error with its remedy to stderr.
func (a *app) explain(ctx context.Context, err error) {
	var diags *diagError
	switch {
	case err == nil, errors.Is(err, pendingError{}), shown(err):
		return
	case errors.As(err, &diags):
		a.printDiags(diags.diags, diags.files)
		return
	case ctx.Err() != nil:
		a.note("Interrupted.")
		return
	}
	fmt.Fprintf(a.stderr, "%s %s\n", a.style(a.stderr).Error("Error:"),
		strings.ReplaceAll(printable.Lines(err.Error()), "\n", "\n  "))
	if remedy := remedyOf(err); remedy != "" {
		fmt.Fprintf(a.stderr, "  %s\n", view.Clean(remedy))
	}
}

// shown reports whether the nodes that an error is about were printed before.
func shown(err error) bool { return is[*failedError](err) || is[*blockedError](err) }

func remedyOf(err error) string {
	hinted, isHinted := errors.AsType[*cli.HintError](err)
	usage, isUsage := errors.AsType[*cli.UsageError](err)
	held, isHeld := errors.AsType[*applylock.HeldError](err)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT): // in any write
		return "Free some space (benchgraph cache gc -unreachable), then run the command again: results are kept."
	case isHinted:
		return hinted.Remedy
	case isUsage:
		return usage.Remedy
	case isHeld:
		return held.Remedy()
	case is[*stalePlanError](err):
		return "Make a new one: benchgraph plan -out=FILE."
	case is[*stats.RefusedError](err):
		return "Measure both under the same conditions, or let a field differ knowingly with -allow-mismatch=FIELD: " +
			"every figure is then labelled."
	case errors.Is(err, syscall.EROFS):
		return "Nothing can be written there. Copy the project; BENCHGRAPH_STATE_DIR=DIR moves .benchgraph alone, " +
			"and BENCHGRAPH_HOST_LOCK=FILE the locks of the machine, which are in /tmp."
	case errors.Is(err, cache.ErrBusy):
		return "Wait until no other benchgraph uses the store."
	}
	return ""
}

// printDiags writes diagnostics with the lines of the files that they are about.
func (a *app) printDiags(diags hcl.Diagnostics, files map[string]*hcl.File) {
	width := 0
	if f, tty := terminal(a.stderr); tty {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			width = columns
		}
	}
	for _, d := range diags {
		var file *hcl.File
		if d.Subject != nil {
			file = files[d.Subject.Filename]
		}
		fmt.Fprint(a.stderr, a.style(a.stderr).Diagnostic(d, file, width))
	}
}
