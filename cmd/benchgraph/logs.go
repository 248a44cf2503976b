package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/pick"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
)

type logsFlags struct {
	follow  bool
	list    bool
	attempt int
}

func (a *app) logs() cli.Command {
	o := &logsFlags{}
	return cli.Command{
		Name: "logs", Args: "ADDR", Min: 1, Max: 1, Summary: "print the complete output of any attempt of a node",
		Long: "Without -attempt, the one that is running, made the result or the failure that stands, or else was " +
			"the last.\nTo read another file than benchmarks.hcl, write -f FILE before the command.",
		Flags: func(fs *flag.FlagSet) {
			fs.BoolVar(&o.follow, "f", false, "follow the output until the attempt ends")
			fs.BoolVar(&o.list, "list", false, "list the attempts")
			fs.IntVar(&o.attempt, "attempt", 0, "show `ATTEMPT` of the list")
		},
		Run: func(ctx context.Context, args []string) error { return a.runLogs(ctx, o, args[0]) },
	}
}

func (a *app) runLogs(ctx context.Context, o *logsFlags, text string) error {
	how := access{about: []string{text}, offline: true, deviceless: true}
	s, err := a.open(ctx, how)
	if err != nil {
		return err
	}
	defer s.close()
	address := pick.Quoted(text)
	attempts := runlog.Tries(s.journal, address, s.underWay().Running, s.logOf)
	var st *engine.Step
	if len(attempts) == 0 || strings.HasPrefix(address, "benchmark.") ||
		!o.list && o.attempt == 0 && !runlog.Alike(attempts) { // a plan is needed, and depends on devices
		how.deviceless = false
		if s, err = a.open(ctx, how); err != nil {
			return err
		}
		defer s.close()
		_, st, err = s.one(ctx, text)
		switch {
		case err == nil:
			address = st.Node.Address
			attempts = s.attempts(st, s.underWay().Running)
		case len(attempts) == 0:
			return err
		default:
			s.note("Note: this is the last attempt: %v", err)
		}
	}
	switch {
	case len(attempts) == 0:
		return hint("Its state: benchgraph explain "+text, "%s has not been run here", address)
	case o.list:
		var rows [][]string
		for i, t := range attempts {
			rows = append(rows, []string{fmt.Sprint(i + 1), t.Start.Local().Format(time.DateTime), view.Clean(t.How),
				t.Log})
		}
		view.Table(a.stdout, "", rows)
		return nil
	case o.attempt < 0 || o.attempt > len(attempts):
		return hint("benchgraph logs -list "+text+" lists them.", "%s has attempts 1 to %d", address,
			len(attempts))
	}
	chosen := attempts[len(attempts)-1]
	if o.attempt > 0 {
		chosen = attempts[o.attempt-1]
	} else if st != nil {
		if t, ok := runlog.Standing(attempts, st, s.logOf); ok && t != chosen {
			chosen = t
			s.note("Note: later attempts were made with other inputs: benchgraph logs -list '%s'", address)
		}
	}
	if err := s.copyLog(ctx, address, chosen, o.follow); err != nil {
		return err
	}
	if st != nil {
		s.pointToTrials(st)
	}
	return nil
}

// attempts lists the attempts at a node. For a benchmark without any, it lists the attempts at blocks that failed
// because of its candidate.
func (s *session) attempts(st *engine.Step, running []runlog.Node) []runlog.Tried {
	list := runlog.OfStep(s.journal, st, running, s.logOf)
	for _, b := range s.project.Spec.Benchmarks {
		if len(list) == 0 && st.Node.Kind == "benchmark" && b.Address.String() == st.Node.Address {
			return runlog.Voided(s.journal, st, b.Candidate, s.logOf)
		}
	}
	return list
}

// copyLog writes a log to stdout unchanged, and follows it as long as its attempt runs.
func (s *session) copyLog(ctx context.Context, address string, t runlog.Tried, follow bool) (err error) {
	f, err := os.Open(t.Log)
	if errors.Is(err, fs.ErrNotExist) {
		return hint("It was made on another machine, or the log was removed.", "the log of %s is not here: %s", address,
			t.Log)
	}
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer f.Close()
	out := s.unchanged()
	defer func() { err = errors.Join(err, out.Close()) }()
	for {
		// The state is read before the log, so that output written before the end is not missed.
		alive := follow && slices.ContainsFunc(s.underWay().Running, func(n runlog.Node) bool { return n.Log == t.Log })
		if _, err := io.Copy(out, f); err != nil {
			return err
		}
		if !alive {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// pointToTrials shows how to read the output of a benchmark's runs, which is in the logs of its blocks. If the
// benchmark failed in one block, only that block is shown.
func (s *session) pointToTrials(st *engine.Step) {
	for i, dep := range st.Node.Needs {
		all := st.Failure == nil || !strings.HasPrefix(st.Failure.Failure.Message, "block ")
		own := all || strings.HasPrefix(st.Failure.Failure.Message, fmt.Sprintf("block %d: ", i+1))
		if st.Node.Kind == "benchmark" && own {
			s.note("The output of the runs: benchgraph logs '%s'", dep.Address)
		}
	}
}
