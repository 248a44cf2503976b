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
	"github.com/benchgraph/benchgraph/report"
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
		Long: "Without -attempt, the last one, which may still be running. To read another file than " +
			"benchmarks.hcl, write -f FILE\nbefore the command.",
		Flags: func(fs *flag.FlagSet) {
			fs.BoolVar(&o.follow, "f", false, "follow the output until the attempt ends")
			fs.BoolVar(&o.list, "list", false, "list the attempts")
			fs.IntVar(&o.attempt, "attempt", 0, "show `ATTEMPT` of the list")
		},
		Run: func(ctx context.Context, args []string) error { return a.runLogs(ctx, o, args[0]) },
	}
}

// loggedAttempt is one attempt of which there may be a log.
type loggedAttempt struct {
	start   time.Time
	log     string
	how     string
	running bool
}

func (a *app) runLogs(ctx context.Context, o *logsFlags, text string) error {
	how := access{about: []string{text}, offline: true, deviceless: true}
	s, err := a.open(ctx, how)
	if err != nil {
		return err
	}
	defer s.close()
	address := pick.Quoted(text)
	attempts := s.attempts(address, s.underWay().Running)
	var st *engine.Step
	if len(attempts) == 0 || strings.HasPrefix(address, "benchmark.") { // nodes and results depend on devices
		how.deviceless = false
		if s, err = a.open(ctx, how); err != nil {
			return err
		}
		defer s.close()
		if _, st, err = s.one(ctx, text); err != nil {
			return err
		}
		address = st.Node.Address
		attempts = s.attemptsOf(st, s.underWay().Running)
	}
	switch {
	case len(attempts) == 0:
		return hint("Its state: benchgraph explain "+text, "%s has not been run here", address)
	case o.list:
		var rows [][]string
		for i, t := range attempts {
			rows = append(rows, []string{fmt.Sprint(i + 1), t.start.Local().Format(time.DateTime), view.Clean(t.how),
				t.log})
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
	}
	if err := s.copyLog(ctx, address, chosen, o.follow); err != nil {
		return err
	}
	if st != nil {
		s.pointToTrials(st)
	}
	return nil
}

// attempts lists the attempts of a node that this machine's journal has, and those that are running.
func (s *session) attempts(address string, running []runlog.Node) []loggedAttempt {
	var list []loggedAttempt
	for _, t := range s.journal.Attempts(address) {
		how := "succeeded in " + view.Duration(t.Duration)
		if t.Failure != nil {
			how = "failed: " + t.Failure.Message
		}
		list = append(list, loggedAttempt{t.Start, s.logOf(t.ID), how, false})
	}
	for _, n := range running {
		if n.Address == address {
			list = append(list, loggedAttempt{n.Since, n.Log, "running", true})
		}
	}
	return list
}

// attemptsOf is attempts, or else the attempt that made the node's result.
func (s *session) attemptsOf(st *engine.Step, running []runlog.Node) []loggedAttempt {
	list := s.attempts(st.Node.Address, running)
	if meta, ok := st.Stored(); ok && len(list) == 0 && meta.Log != "" {
		list = append(list, loggedAttempt{meta.Created, s.logOf(meta.Log), "made by " + meta.Address, false})
	}
	return list
}

// copyLog writes a log to stdout as it is, and follows it as long as its attempt runs.
func (s *session) copyLog(ctx context.Context, address string, t loggedAttempt, follow bool) (err error) {
	f, err := os.Open(t.log)
	if errors.Is(err, fs.ErrNotExist) {
		return hint("It was made on another machine, or the log was removed.", "the log of %s is not here: %s", address,
			t.log)
	}
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer f.Close()
	out := s.unchanged()
	defer func() { err = errors.Join(err, out.Close()) }()
	for {
		// The state is read before the log, so that output written before the end is not missed.
		alive := follow && slices.ContainsFunc(s.underWay().Running, func(n runlog.Node) bool { return n.Log == t.log })
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

// pointToTrials says where the output of a benchmark's runs is: the node itself only gathers from them.
func (s *session) pointToTrials(st *engine.Step) {
	if st.Node.Kind != "benchmark" {
		return
	}
	for _, dep := range st.Node.Needs {
		s.note("The output of the runs: benchgraph logs '%s'", dep.Address)
	}
}

// name is what a log's file is named after.
func (t *loggedAttempt) name() string { return report.AttemptOf(t.log) }
