package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/image"
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

// showPlanFile tells what a plan file holds. Nothing but that file is read.
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

// nodeView is all that show tells.
type nodeView struct {
	Format    string               `json:"format"`
	Address   string               `json:"address"`
	Kind      string               `json:"kind"`
	Action    engine.Action        `json:"action"`
	Word      engine.Action        `json:"-"` // for it
	Reason    string               `json:"reason"`
	Key       string               `json:"key"`
	Place     string               `json:"place"`
	Needs     []string             `json:"needs"`
	Users     []string             `json:"users"`
	Resources view.Resources       `json:"resources"`
	Estimate  float64              `json:"estimate_s"`
	Result    *resultView          `json:"result"`
	Record    json.RawMessage      `json:"record,omitempty"` // what a trial or an image says of itself
	Attempts  []attemptView        `json:"attempts"`
	Runs      []results.Run        `json:"runs,omitempty"` // that measured the candidate of a benchmark
	Samples   []sample.Measurement `json:"samples"`
	Alone     bool                 `json:"alone,omitempty"` // the samples have blocks of their own, never compared
	Origin    *engine.Origin       `json:"origin,omitempty"`
	About     []view.Diagnostic    `json:"diagnostics"` // warnings about the file
}

// resultView is what is stored of a node.
type resultView struct {
	Digest   string       `json:"digest"`
	MadeBy   string       `json:"made_by"` // the node that made it first
	Created  time.Time    `json:"created"`
	Duration float64      `json:"duration_s"`
	Bytes    int64        `json:"bytes"`
	Dir      string       `json:"dir"`
	Files    []cache.File `json:"files"`
}

type attemptView struct {
	journal.Attempt
	Duration float64 `json:"duration_s"`
	Log      string  `json:"log"`
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
	s.showNode(v)
	return nil
}

// measuredAlone returns the step of a benchmark that has a result from blocks of its own, and none from blocks of all
// variants; otherwise the step itself.
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
	p, st, err = s.one(ctx, address) // the project is again as that plan has it
	return p, st, false, err
}

func (s *session) view(ctx context.Context, p *engine.Plan, st *engine.Step) (*nodeView, error) {
	v := &nodeView{
		Format: view.Format, Address: st.Node.Address, Kind: st.Node.Kind, Action: st.Action, Reason: st.Reason,
		Word: view.Word(st), Key: st.Key.String(),
		Place: st.Node.Place, Needs: view.Needs(st.Node), Users: []string{}, Resources: view.ResourcesOf(st.Node),
		Estimate: st.Estimate.Seconds(), Attempts: []attemptView{}, Samples: []sample.Measurement{},
		Origin: st.Node.Origin, About: view.Diagnostics(s.warnings)}
	for _, u := range p.Graph.Users(st.Node) {
		v.Users = append(v.Users, u.Address)
	}
	for _, t := range s.journal.Attempts(st.Node.Address) {
		v.Attempts = append(v.Attempts, attemptView{t, t.Duration.Seconds(), s.logOf(t.ID)})
	}
	if meta, ok := st.Stored(); ok {
		e, err := s.store.Get(ctx, meta.Key, false)
		if err != nil {
			return nil, err
		}
		v.Result = &resultView{e.Digest, e.Address, e.Created, e.Duration.Seconds(), e.Bytes, e.Dir, present(e.Files)}
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

// concerns says whether a sample was taken in a trial, or is of a benchmark's candidate.
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

func (s *session) showNode(v *nodeView) {
	w := s.stdout
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-10s %s\n", name, view.Clean(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintf(w, "%s\n", s.style(w).Bold(view.Clean(v.Address)))
	line("declared", "%s", v.Place)
	line("state", "%s: %s", v.Word, v.Reason)
	if v.Alone {
		line("measured", "alone: in blocks without the other variants, which are never compared")
	}
	line("key", "%s", v.Key)
	if v.Origin != nil {
		line("origin", "%s", view.Origin(v.Origin, true))
	}
	for _, n := range v.Needs {
		line("needs", "%s", n)
	}
	for _, n := range v.Users[:min(len(v.Users), 10)] {
		line("used by", "%s", n)
	}
	if rest := len(v.Users) - 10; rest > 0 {
		line("used by", "%d more", rest)
	}
	if r := v.Result; r != nil {
		line("result", "%s, %s, %s, made by %s in %s", r.Created.Local().Format(time.DateTime),
			view.Count(len(r.Files), "file"), view.Bytes(r.Bytes),
			r.MadeBy, view.Duration(time.Duration(r.Duration*float64(time.Second))))
		line("digest", "%s", r.Digest)
		line("files", "%s", r.Dir)
	}
	for i, text := range image.Summary(v.Record) {
		name := "image"
		if i > 0 {
			name = ""
		}
		line(name, "%s", text)
	}
	for _, told := range sample.Summary(v.Record) {
		line(told[0], "%s", told[1])
	}
	for i, t := range v.Attempts {
		how := "succeeded"
		if t.Failure != nil {
			how = "failed: " + t.Failure.Message
		}
		if len(t.Devices) > 0 {
			how += " on " + strings.Join(t.Devices, ", ")
		}
		line(fmt.Sprintf("attempt %d", i+1), "%s in run %s, %s, %s", t.Start.Local().Format(time.DateTime), t.Run,
			view.Duration(t.Attempt.Duration), how)
		if f := t.Failure; f != nil {
			for _, more := range []struct {
				name, text string
			}{{"class", view.Class(f)}, {"evidence", f.Evidence}, {"remedy", f.Remedy}, {"log", t.Log}} {
				if more.text != "" {
					line("  "+more.name, "%s", more.text)
				}
			}
		}
	}
	for _, r := range v.Runs {
		for _, blocks := range r.Blocks {
			line(fmt.Sprintf("run %d", r.Number), "%s measured it in %s", r.Name, view.Count(blocks, "block"))
		}
	}
	for _, m := range v.Samples {
		block := fmt.Sprintf("block %d", m.Block)
		if m.Candidate != "" {
			block += ", " + m.Candidate
		}
		if m.Phase != "" {
			block += ", " + m.Phase
		}
		line("sample", "%s: %s = %g %s (%s)", block, m.Metric, m.Value, m.Unit, m.Hardware)
	}
}
