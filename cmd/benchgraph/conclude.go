package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/gate"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/watch"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/remote/detach"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
)

// conclusion is the report at the end of an apply, beside the result.
type conclusion struct {
	stream *watch.Stream // nil: text
	agent  bool          // terse text
	failOn gate.Gate
	show   func(context.Context, *session, *campaign.Applied, error) error
	took   time.Duration
	cause  error      // why the context ended
	waits  []*waiting // nodes that wait for another machine
	moved  int        // blocked nodes that are in waits
}

// waiting returns how many nodes wait for another machine.
func (c *conclusion) waiting() (n int) {
	for _, w := range c.waits {
		n += len(w.nodes)
	}
	return n
}

// conclude shows the outcome of an apply: verdicts, failures, reports, the sum.
func (s *session) conclude(ctx context.Context, applied *campaign.Applied, err error, c conclusion) error {
	switch {
	case ctx.Err() != nil:
		what := "benchgraph apply"
		if c.show != nil {
			what = "the same command"
		}
		s.note("What is finished is kept; %s goes on from there.", what)
		err = context.Cause(ctx)
	case err != nil && c.cause != nil:
		err = c.cause
	}
	if ended := ctx.Err() != nil || is[*budgetError](err); c.show != nil && (err == nil || ended) {
		return c.show(context.WithoutCancel(ctx), s, applied, err)
	}
	if detached, ok := errors.AsType[*detach.Detached](err); ok {
		s.note("%s.", detached)
		err = endOf(&c.failOn, nil, nil, applied)
		s.sum(ctx, applied, nil, c, err)
		return err
	}
	if err != nil {
		if c.show == nil {
			s.sum(ctx, applied, nil, c, err)
		}
		return err
	}
	published, err := s.project.Publish(ctx, applied.Plan)
	if err != nil {
		return err
	}
	files := published.Written
	if left := published.Left; len(left) > 0 {
		s.note("Note: %s stays as it is: the store has no results of machines of this class, but some of another "+
			"class. benchgraph report writes it from those.", view.Clean(strings.Join(left, ", ")))
	}
	if removed := published.Removed; len(removed) > 0 {
		s.note("Note: the file asks for no such format any more, so apply removed %s.",
			view.Clean(strings.Join(removed, ", ")))
	}
	rows, _, err := s.verdicts(ctx, applied.Plan)
	if err != nil {
		return err
	}
	waits, blocked := s.waitingDeclared(applied.Plan)
	c.waits = append(c.waits, waits...)
	c.moved = len(hindered(applied.Plan)) - len(blocked)
	blocked = slices.DeleteFunc(blocked, func(st *engine.Step) bool { // these are shown as failed
		itself := func(f engine.Failed) bool { return f.Address == st.Node.Address }
		return slices.ContainsFunc(applied.Result.Failures, itself)
	})
	if c.stream == nil {
		s.showResults(applied, rows, files, blocked, c)
	}
	err = endOf(&c.failOn, rows, blocked, applied)
	s.sum(ctx, applied, files, c, err)
	return err
}

// endOf returns the error with which an apply ends: for an outcome that -fail-on names, else for failed nodes, else for
// rows that must not be compared or for blocked nodes.
func endOf(failOn *gate.Gate, rows []stats.Comparison, blocked []*engine.Step, applied *campaign.Applied) error {
	err := failOn.Check(rows, nil)
	if err == nil {
		err = hindrance(blocked)
	}
	if _, gated := err.(*gate.Error); !gated && applied.Result.Failed > 0 {
		err = &failedError{applied.Result.Failed}
	}
	return err
}

// verdicts returns the rows of the plan's compares, and their findings.
func (s *session) verdicts(ctx context.Context, p *engine.Plan) (rows []stats.Comparison, planned []findings.Findings,
	err error) {
	found, err := s.project.Stored(p).Findings(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range found {
		if _, ok := p.Step("compare." + f.Compare); ok {
			planned = append(planned, f)
		}
	}
	return rowsOf(planned, s.project.Spec), planned, nil
}

func (s *session) showResults(applied *campaign.Applied, rows []stats.Comparison, files []string,
	blocked []*engine.Step, c conclusion) {
	style := s.style(s.stdout)
	if c.agent {
		view.TerseVerdicts(s.stdout, rows)
	} else if len(rows) > 0 {
		view.Verdicts(s.stdout, style, rows)
	}
	if n := len(applied.Result.Failures); n > 0 && !c.agent {
		fmt.Fprintf(s.stdout, "%s\n", style.Bold(fmt.Sprintf("Failed (%d), in full with benchgraph logs ADDR:", n)))
		columns := 0
		for _, f := range applied.Result.Failures[:min(n, 20)] {
			columns = max(columns, min(view.Cells(view.Clean(f.Address)), view.WidestPadding))
		}
		for _, f := range applied.Result.Failures[:min(n, 20)] {
			style.Noted(s.stdout, "  "+view.Pad(view.Clean(f.Address), columns), f.Failure.Message)
		}
		if n > 20 {
			fmt.Fprintf(s.stdout, "  and %d more: benchgraph status\n", n-20)
		}
	}
	s.showHindered(blocked)
	for _, w := range c.waits {
		fmt.Fprintf(s.stdout, "%s\n", view.Clean(w.String()))
	}
	for _, r := range s.project.Spec.Reports {
		if st, ok := applied.Plan.Step(r.Address.String()); ok && st.Action == engine.Cached {
			fmt.Fprintf(s.stdout, "%s: %s (%s written)\n", view.Clean(r.Address.String()), view.Clean(r.Dir),
				view.Count(count(files, s.reportDir(r.Dir)), "file"))
		}
	}
}

func count(files []string, dir string) int {
	n := 0
	for _, f := range files {
		if strings.HasPrefix(f, dir+"/") {
			n++
		}
	}
	return n
}

// hindered returns the blocked steps, without those that failed themselves.
func hindered(p *engine.Plan) (steps []*engine.Step) {
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Action == engine.Blocked && s.Failure == nil {
			steps = append(steps, s)
		}
	}
	return steps
}

// hindrance returns the error for blocked steps; nil if there are none.
func hindrance(steps []*engine.Step) error {
	if len(steps) == 0 {
		return nil
	}
	return &blockedError{len(steps), !slices.ContainsFunc(steps, func(s *engine.Step) bool { return !s.Never })}
}

// showHindered lists why nodes could not run, each reason once.
func (s *session) showHindered(blocked []*engine.Step) {
	counts := map[string]int{}
	first := map[string]string{}
	var order []string
	for _, st := range blocked {
		if counts[st.Reason] == 0 {
			order = append(order, st.Reason)
			first[st.Reason] = st.Node.Address
		}
		counts[st.Reason]++
	}
	for i, reason := range order {
		if i == 10 {
			fmt.Fprintf(s.stdout, "blocked: for %s: benchgraph plan lists them\n",
				view.Count(len(order)-i, "other reason"))
			return
		}
		name := first[reason]
		if n := counts[reason]; n > 1 {
			name += fmt.Sprintf(" and %d more", n-1)
		}
		fmt.Fprintf(s.stdout, "blocked: %s: %s\n", view.Clean(name), view.Clean(reason))
	}
}

// sum writes the last line of an apply.
func (s *session) sum(ctx context.Context, applied *campaign.Applied, files []string, c conclusion, err error) {
	if c.stream != nil {
		s.sumJSON(ctx, applied, files, c, err)
		return
	}
	r := applied.Result
	for _, q := range applied.Left {
		fmt.Fprintln(s.stdout, view.Clean(q.String()))
	}
	var parts []string
	for _, p := range []struct {
		n    int
		word string
	}{{r.Done, "done"}, {r.Cached, "cached"}, {r.Failed, "failed"}, {r.Blocked - c.moved, "blocked"},
		{c.waiting(), "waiting"}, {r.Skipped, "skipped"}, {r.NotRun, "not run"}} {
		if p.n > 0 || p.word == "done" {
			parts = append(parts, view.Number(p.n)+" "+p.word)
		}
	}
	line := fmt.Sprintf("Apply: %s; %s.", strings.Join(parts, ", "), printable.Duration(c.took))
	fmt.Fprintln(s.stdout, s.style(s.stdout).Bold(line))
}

// sumJSON writes the error as diagnostics, and the last line of apply -json.
func (a *app) sumJSON(ctx context.Context, applied *campaign.Applied, files []string, c conclusion, err error) {
	stream := c.stream
	if err != nil && ctx.Err() == nil {
		writeDiagnostics(stream, viewError(err))
	}
	r := applied.Result
	stream.Write(struct {
		Type     string           `json:"type"`
		Time     string           `json:"time"`
		Done     int              `json:"done"`
		Cached   int              `json:"cached"`
		Failed   int              `json:"failed"`
		Blocked  int              `json:"blocked"`
		Skipped  int              `json:"skipped"`
		Waiting  int              `json:"waiting"` // for another machine
		NotRun   int              `json:"not_run"`
		Waves    int              `json:"waves"`
		Duration float64          `json:"duration_s"`
		Reports  []string         `json:"reports"`  // files that were written
		Left     []gpu.Quarantine `json:"left_out"` // devices
		Exit     int              `json:"exit_code"`
	}{"summary", time.Now().Format(time.RFC3339Nano), r.Done, r.Cached, r.Failed, r.Blocked - c.moved, r.Skipped,
		c.waiting(), r.NotRun, applied.Waves,
		c.took.Seconds(), document.Present(files), document.Present(applied.Left), exitCode(ctx, err)})
	a.summed = true
}

// viewError returns an error as diagnostics. There are none for failed nodes, since each failure has been shown.
func viewError(err error) []view.Diagnostic {
	var diags *diagError
	switch {
	case err == nil, shown(err), errors.Is(err, pendingError{}):
		return nil
	case errors.As(err, &diags):
		return view.Diagnostics(diags.diags)
	}
	return []view.Diagnostic{{Severity: "error", Message: printable.Lines(err.Error()), Detail: remedyOf(err)}}
}

// writeDiagnostics writes diagnostics as events: warnings, or the error that ends the events.
func writeDiagnostics(stream *watch.Stream, views []view.Diagnostic) {
	for _, v := range views {
		stream.Write(struct {
			Type string `json:"type"`
			Time string `json:"time"`
			view.Diagnostic
		}{string(engine.Note), time.Now().Format(time.RFC3339Nano), v})
	}
}

// explainJSON writes an error as the JSON document, or the events, of a command that could not write its own.
func (a *app) explainJSON(ctx context.Context, err error) {
	if a.events && err != nil {
		stream := watch.NewStream(a.stdout, version)
		a.sumJSON(ctx, &campaign.Applied{}, nil, conclusion{stream: stream}, err)
	} else if views := viewError(err); views != nil {
		// the exit code tells that a node failed
		_ = view.JSON(a.stdout, map[string]any{"format": view.Format, "diagnostics": views})
	}
}
