package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/nodeview"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/tasks"
)

func (a *app) show() cli.Command {
	asJSON, verbose := false, false
	return cli.Command{
		Name: "show", Args: "ADDR|PLANFILE", Min: 1, Max: 1,
		Summary: "show the inputs, attempts, samples and devices of a node, or a plan file",
		Flags: func(fs *flag.FlagSet) {
			a.jsonFlag(fs, &asJSON)
			fs.BoolVar(&verbose, "verbose", false, "show a line for every node of a plan file")
		},
		Run: func(ctx context.Context, args []string) error {
			if info, err := os.Stat(args[0]); err == nil && info.Mode().IsRegular() {
				return a.showPlanFile(args[0], asJSON, verbose)
			}
			return a.runShow(ctx, args[0], asJSON)
		},
	}
}

// showPlanFile shows the content of a plan file. It reads only that file.
func (a *app) showPlanFile(path string, asJSON, verbose bool) error {
	f, err := readPlanFile(path)
	if err != nil {
		return err
	}
	if asJSON {
		return view.JSON(a.stdout, f)
	}
	fmt.Fprintf(a.stdout, "Plan of %s, made by benchgraph %s\n\n", view.Clean(f.Project),
		view.Clean(f.Version+f.flags()))
	if err := view.Plan(a.stdout, a.style(a.stdout), f.Outline, verbose); err != nil {
		return err
	}
	a.note("benchgraph apply %s does exactly that, or nothing when something has changed since.", path)
	return nil
}

func (a *app) runShow(ctx context.Context, text string, asJSON bool) error {
	s, err := a.open(ctx, access{about: []string{text}})
	if err != nil {
		return err
	}
	defer s.close()
	p, st, err := s.one(ctx, text)
	if err != nil {
		return err
	}
	p, st, alone, err := s.measuredAlone(ctx, p, st)
	if err != nil {
		return err
	}
	v, err := s.view(ctx, p, st)
	if err != nil {
		return err
	}
	v.Alone = alone
	if asJSON {
		return view.JSON(a.stdout, v)
	}
	v.Text(s.stdout, s.style(s.stdout))
	return nil
}

// measuredAlone returns the step of a benchmark with a result from blocks of its own, if there is none from blocks of
// all variants; otherwise it returns st itself.
func (s *session) measuredAlone(ctx context.Context, p *engine.Plan, st *engine.Step) (*engine.Plan, *engine.Step, bool,
	error) {
	address := st.Node.Address
	at, err := hclspec.ParseAddress(address)
	if _, stored := st.Stored(); stored || err != nil || at.Kind != "benchmark" ||
		len(s.journal.Attempts(hclspec.TrialAddress(at.Name, at.Key, 1).String())) == 0 {
		return p, st, false, nil
	}
	other, err := s.project.Plan(ctx, campaign.PlanOptions{AsIs: true, Target: func(a string) bool {
		return a == address
	}})
	if err != nil {
		return nil, nil, false, err
	}
	if s.project.Alone != nil && s.project.Stored(other).Has(at) {
		step, _ := other.Step(address)
		return other, step, true, nil
	}
	p, st, err = s.one(ctx, address) // plans again, so that the project has the graph of the first plan
	return p, st, false, err
}

func (s *session) view(ctx context.Context, p *engine.Plan, st *engine.Step) (*nodeview.Node, error) {
	v := &nodeview.Node{
		Format: view.Format, Address: st.Node.Address, Kind: st.Node.Kind, Action: st.Action, Reason: st.Reason,
		Word: view.Word(st), Key: st.Key.String(),
		Place: st.Node.Place, Needs: view.Needs(st.Node), Users: []string{}, Resources: view.ResourcesOf(st.Node),
		Estimate: st.Estimate.Seconds(), Attempts: []nodeview.Attempt{}, Samples: []sample.Measurement{},
		Origin: st.Node.Origin, About: view.Diagnostics(s.warnings)}
	for _, u := range p.Graph.Users(st.Node) {
		v.Users = append(v.Users, u.Address)
	}
	meta, stored := st.Stored()
	for _, t := range s.journal.Attempts(st.Node.Address) {
		v.Attempts = append(v.Attempts, nodeview.Attempt{Attempt: t, Duration: t.Duration.Seconds(),
			Log: s.logOf(t.ID), Current: t.Key == st.Key || stored && t.ID == meta.Log})
	}
	if stored {
		e, err := s.store.Get(ctx, meta.Key, false)
		if err != nil {
			return nil, err
		}
		v.Result = &nodeview.Result{Digest: e.Digest, MadeBy: e.Address, Created: e.Created,
			Duration: e.Duration.Seconds(), Bytes: e.Bytes, Dir: e.Dir, Files: document.Present(e.Files)}
		if v.Kind == "trial" || v.Kind == "image" {
			if v.Record, err = tasks.Record(e); err != nil {
				return nil, err
			}
		}
	}
	if at, err := hclspec.ParseAddress(v.Address); err == nil && v.Kind == "benchmark" {
		for _, r := range results.Runs(ctx, s.project.Drawing, at.Key) {
			if n := r.Blocks[at.Name]; n > 0 {
				r.Blocks = map[string]int{at.Name: n}
				v.Runs = append(v.Runs, r)
			}
		}
	}
	samples, err := s.project.Stored(p).Samples(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range samples {
		if concerns(m, st.Node) {
			v.Samples = append(v.Samples, m)
		}
	}
	return v, nil
}

// concerns reports whether a sample was taken in a trial, or is of a benchmark's candidate.
func concerns(m sample.Measurement, n *engine.Node) bool {
	at, err := hclspec.ParseAddress(n.Address)
	if err != nil || at.Name != m.Benchmark {
		return false
	}
	switch at.Kind {
	case "benchmark":
		return at == m.Of
	case "trial":
		group, block := at.Trial()
		return block == m.Block && (group == m.Of.Key || m.Candidate != "" &&
			(group == m.Commit || group == m.Candidate))
	}
	return false
}
