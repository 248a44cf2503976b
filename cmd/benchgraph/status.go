package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache/shared"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/applylock"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/gate"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/tasks"
)

type statusFlags struct {
	json  bool
	watch bool
	allow cli.List
}

func (a *app) status() cli.Command {
	o := &statusFlags{}
	return cli.Command{
		Name: "status", Summary: "show running, waiting and failed nodes, and one outcome for each candidate",
		Flags: func(fs *flag.FlagSet) {
			a.jsonFlag(fs, &o.json)
			fs.BoolVar(&o.watch, "watch", false, "repeat while an apply runs")
			allowFlag(fs, &o.allow)
		},
		Run: func(ctx context.Context, _ []string) error { return a.runStatus(ctx, o) },
	}
}

const watchEvery = 2 * time.Second

func (a *app) runStatus(ctx context.Context, o *statusFlags) error {
	look := &shared.Look{}
	for {
		p, err := a.place()
		if err != nil {
			return err
		}
		// The lock is read before the state, so that the last output shows how the apply ended.
		_, busy := applylock.Holder(p.applyLock())
		if err := a.showStatus(ctx, o, look); err != nil || !o.watch || !busy {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(watchEvery):
		}
		if _, tty := terminal(a.stdout); tty && !o.json {
			fmt.Fprint(a.stdout, "\x1b[H\x1b[2J")
		}
	}
}

// statusDoc is the status as JSON.
type statusDoc struct {
	Format   string                `json:"format"`
	Universe int                   `json:"universe"`
	Counts   map[stats.Outcome]int `json:"counts"`
	Commits  []commitStatus        `json:"commits"`
	Nodes    []nodeStatus          `json:"nodes"`
	Applying *applylock.Owner      `json:"applying,omitempty"`
	Run      string                `json:"run,omitempty"`   // name of the last run, which may still go on
	Waits    string                `json:"waits,omitempty"` // the last reason why nodes that are ready did not start
	About    []view.Diagnostic     `json:"diagnostics"`     // warnings about the file
}

type commitStatus struct {
	Compare   string         `json:"compare"`
	Commit    string         `json:"commit"`
	Benchmark string         `json:"benchmark"`
	Candidate string         `json:"candidate"`
	Outcome   stats.Outcome  `json:"outcome"`
	Reason    string         `json:"reason"`
	Caveats   []stats.Caveat `json:"caveats"`
}

type nodeStatus struct {
	Address string `json:"address"`
	State   string `json:"state"`           // one of nodeStates
	Class   string `json:"class,omitempty"` // of the failure, or of the one that blocks the node
	Reason  string `json:"reason"`

	Rule     string `json:"rule,omitempty"` // the last four are set for a failed node; log, for a running one, too
	Evidence string `json:"evidence,omitempty"`
	Remedy   string `json:"remedy,omitempty"`
	Log      string `json:"log,omitempty"`
}

// nodeStates returns the states of nodes, in the order of the sum.
func nodeStates() []string {
	return []string{"done", "running", "waiting", "failed", "blocked", "skipped"}
}

func (a *app) showStatus(ctx context.Context, o *statusFlags, look *shared.Look) error {
	s, err := a.open(ctx, access{offline: true, look: look, allow: o.allow, recall: recallNodes})
	if err != nil {
		return err
	}
	defer s.close()
	p, err := s.standing(ctx)
	if err != nil {
		return err
	}
	found, err := s.project.Stored(p).Findings(ctx)
	if err != nil {
		return err
	}
	now := s.underWay()
	doc := statusDoc{
		Format: view.Format, Counts: map[stats.Outcome]int{}, Commits: []commitStatus{}, Nodes: s.states(p, now),
		Run: s.lastRun(), Waits: now.Waits[""], About: view.Diagnostics(s.warnings),
	}
	ledger := stats.Ledger{Rows: rowsOf(found, s.project.Spec)}
	for _, f := range found {
		ledger.Universe += f.Universe
	}
	if err := ledger.Check(); err != nil {
		return err
	}
	doc.Universe, doc.Counts = ledger.Universe, ledger.Total().Counts
	for _, row := range ledger.Rows {
		if row.Primary {
			doc.Commits = append(doc.Commits, commitStatus{row.Compare, row.Commit, row.Benchmark, row.Candidate,
				row.Outcome, row.Reason, document.Present(row.Caveats)})
		}
	}
	if owner, held := applylock.Holder(s.applyLock()); held {
		doc.Applying = &owner
	}
	if o.json {
		err = view.JSON(a.stdout, doc)
	} else {
		s.statusText(doc, ledger.Rows)
	}
	if err != nil {
		return err
	}
	return gate.Refusal(ledger.Rows)
}

// states returns the state of each node of a plan, with those that another process runs now.
func (s *session) states(p *engine.Plan, now runlog.Run) []nodeStatus {
	running := map[string]runlog.Node{}
	for _, n := range now.Running {
		running[n.Address] = n
	}
	nodes := make([]nodeStatus, len(p.Steps))
	classes := map[*engine.Node]string{} // of failures, for the nodes that they block: nodes come after their needs
	for i := range p.Steps {
		st := &p.Steps[i]
		n := nodeStatus{Address: st.Node.Address, Reason: st.Reason}
		switch {
		case st.Action == engine.Run:
			n.State = "waiting"
			if what := now.Waits[n.Address]; what != "" {
				n.Reason = engine.Waiting + what
			}
		case st.Action == engine.Cached:
			n.State = "done"
		case st.Action == engine.Skip:
			n.State = "skipped"
		case st.Failure != nil && tasks.KnownIssue(st.Failure.Failure):
			n.State, n.Reason = "skipped", st.Failure.Failure.Message
		case st.Failure != nil:
			f := st.Failure
			n.State, n.Class, n.Reason = "failed", string(f.Failure.Class), f.Failure.Message
			n.Rule, n.Evidence, n.Remedy, n.Log = f.Failure.Rule, f.Failure.Evidence, f.Failure.Remedy, s.logOf(f.ID)
		default:
			n.State = "blocked"
			for _, needed := range st.Node.Needs {
				n.Class = cmp.Or(n.Class, classes[needed])
			}
		}
		classes[st.Node] = n.Class
		if r, ok := running[st.Node.Address]; ok {
			n.State, n.Reason, n.Log = "running", r.Phase, r.Log
			if what := now.Waits[n.Address]; what != "" { // its job is queued
				n.State, n.Reason = "waiting", engine.Waiting+what
			}
		}
		nodes[i] = n
	}
	for _, n := range now.Running { // of a try: no file declares these nodes
		if _, ok := p.Step(n.Address); !ok {
			nodes = append(nodes, nodeStatus{Address: n.Address, State: "running", Reason: n.Phase, Log: n.Log})
		}
	}
	return nodes
}

func (s *session) statusText(doc statusDoc, rows []stats.Comparison) {
	w := s.stdout
	if o := doc.Applying; o != nil {
		fmt.Fprintf(w, "Process %d of %s on %s applies since %s.\n", o.PID, view.Clean(o.User), view.Clean(o.Host),
			o.Since.Local().Format(time.DateTime))
	}
	if doc.Waits != "" {
		fmt.Fprintf(w, "Waits: %s.\n", view.Clean(doc.Waits))
	}
	counts := map[string]int{}
	for _, n := range doc.Nodes {
		counts[n.State]++
		if n.State == "waiting" && strings.HasPrefix(n.Reason, engine.Waiting) {
			s.style(w).Noted(w, view.Clean(n.Address), n.Reason)
		}
	}
	for _, state := range []string{"running", "failed"} {
		shown := 0
		for _, n := range doc.Nodes {
			if n.State != state {
				continue
			}
			if shown++; shown > 20 {
				fmt.Fprintf(w, "%-8s and %d more\n", state, counts[state]-20)
				break
			}
			note := n.Reason
			if n.Evidence != "" {
				note += ": " + n.Evidence
			}
			s.style(w).Noted(w, fmt.Sprintf("%-8s %s", state, view.Clean(n.Address)), note)
		}
	}
	if len(rows) > 0 {
		view.Verdicts(w, s.style(w), rows)
	}
	if doc.Run != "" {
		fmt.Fprintf(w, "Last run: %s\n", doc.Run)
	}
	fmt.Fprint(w, "Nodes: ", view.Number(len(doc.Nodes)))
	sign := " = "
	for _, state := range nodeStates() {
		if counts[state] > 0 {
			fmt.Fprintf(w, "%s%s %s", sign, view.Number(counts[state]), state)
			sign = " + "
		}
	}
	fmt.Fprintln(w)
}
