package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/stats"
)

const findingsFile = "findings.json"

// compareTask judges candidates once their blocks have ended, in whatever way. How they ended is in its key.
type compareTask struct {
	p    *drawing
	spec *hclspec.Compare
}

func (t *compareTask) Describe(d *cache.Description) {
	float := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	d.Add("reader", sample.ReaderVersion)
	d.Add("compare", t.spec.Address.Instance())
	d.Add("account", accountVersion)
	d.Add("rule", float(t.spec.Tie), float(t.spec.Confidence))
	d.Add("metrics", t.spec.Metrics...)
	d.Add("allow", t.p.Allow...)
	groups := t.p.groupsOf(t.spec)
	for _, g := range groups {
		d.Add("group", append([]string{g.name, g.design.Pairing}, numbers(findings.LooksOf(g.design))...)...)
		if g.design.BurnIn > 0 {
			d.Add("burn_in", strconv.Itoa(g.design.BurnIn))
		}
		for _, m := range g.members {
			d.Add("member", m.name, m.candidate, strconv.FormatBool(m.baseline),
				strconv.FormatBool(t.p.of[t.spec.Address][m.bench.Address]), string(g.absent[m.name].Outcome),
				g.absent[m.name].Why)
			(&benchmarkTask{m}).Describe(d)
			d.Add("token_tolerance", float(m.bench.Metrics.TokenTolerance))
			describeTries(d, t.p.triesAt(g, m))
			if patterns := t.p.copies[m.candidate]; len(patterns) > 0 {
				d.Add("copies", patterns...)
			}
			for _, f := range m.allFixes() {
				d.Add("fix", f.Fix.Address.Name, f.Fix.Effect, f.Fix.Caveat)
			}
		}
	}
	for _, m := range t.p.machinesOfFile() {
		d.Add("machine", m.Name, m.String())
	}
	for _, row := range t.p.uncovered(t.spec, groups) {
		d.Add("uncovered", row.Candidate, string(row.Outcome), row.Reason)
	}
}

func (t *compareTask) Run(_ context.Context, env *engine.Env) error {
	ends := make(map[string]engine.End, len(env.Ends))
	for _, e := range env.Ends {
		ends[e.Address] = waitingEnd(e, t.p.machineOf[e.Address])
	}
	found, err := t.p.caseOf(t.spec).Judge(ends)
	if err != nil {
		return err
	}
	if err := t.p.account(t.spec, ends, &found); err != nil {
		return err
	}
	for _, c := range found.Comparisons {
		if !c.Primary {
			continue
		}
		env.Emit(engine.Event{Type: engine.VerdictMade, Reason: c.Reason, Data: verdictData(&c)})
		fmt.Fprintf(env.Log, "%s: %s: %s\n", c.Candidate, c.Outcome, c.Reason)
	}
	return writeJSON(filepath.Join(env.Out, findingsFile), found)
}

// verdictData is what an event tells of a row: null where there is no figure, since 0 is one.
func verdictData(c *stats.Comparison) map[string]any {
	data := map[string]any{
		"compare": c.Compare, "benchmark": c.Benchmark, "commit": c.Commit, "candidate": c.Candidate,
		"against": c.Against,
		"metric":  c.Metric, "outcome": c.Outcome, "effect": nil, "low": nil, "high": nil, "blocks": c.Blocks,
		"caveats": append([]stats.Caveat{}, c.Caveats...),
	}
	if c.Blocks > 0 && !c.NoRatio {
		data["effect"] = c.Effect
	}
	if c.Blocks > 1 && !c.NoRatio {
		data["low"], data["high"] = c.Low, c.High
	}
	return data
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func numbers(list []int) []string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strconv.Itoa(n)
	}
	return texts
}

func (b *builder) addCompare(c *hclspec.Compare) {
	n := b.add(c.Block, &compareTask{p: b.drawing, spec: c}, nil)
	n.Reads = true
	for _, g := range b.groupsOf(c) {
		for _, t := range g.trials {
			b.link(n, &n.After, t.At)
		}
		for _, m := range g.members {
			for _, probe := range b.probes[m.candidate] {
				b.link(n, &n.After, probe) // it decides an outcome also when it is declared after measuring
			}
			b.link(n, &n.After, m.bench.Address)
		}
	}
}

// reportTask renders what compares found.
type reportTask struct {
	p    *drawing
	spec *hclspec.Report
}

// rendererVersion is part of a report's key: another rendering is another report.
const rendererVersion = "3"

func (t *reportTask) Describe(d *cache.Description) {
	d.Add("renderer", rendererVersion)
	d.Add("name", t.spec.Address.Name)
	d.Add("formats", t.spec.Formats...)
	for _, text := range t.spec.Recorded {
		d.Add("recorded", fmt.Sprintf("%x", sha256.Sum256([]byte(text))))
	}
	commits := slices.Clone(t.p.Spec.Commits)
	slices.SortFunc(commits, func(a, b hclspec.Commit) int { return strings.Compare(a.Name, b.Name) })
	for i := range commits {
		d.Add("commit", commits[i].Name, commits[i].Title)
	}
	for _, device := range sortedKeys(t.p.Spec.GPUHour) {
		d.Add("gpu_hour", device, strconv.FormatFloat(t.p.Spec.GPUHour[device], 'g', -1, 64))
	}
}

func (t *reportTask) Run(_ context.Context, env *engine.Env) error {
	var all []findings.Findings
	for _, in := range env.Inputs {
		text, err := os.ReadFile(filepath.Join(in.Dir, findingsFile))
		if err != nil {
			return err
		}
		var f findings.Findings
		if err := json.Unmarshal(text, &f); err != nil {
			return fmt.Errorf("%s: %w", in.Address, err)
		}
		all = append(all, f)
	}
	files, err := t.p.Render(all, t.p.Spec, t.spec)
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(files) {
		if err := os.WriteFile(filepath.Join(env.Out, name), files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) addReport(r *hclspec.Report) {
	b.add(r.Block, &reportTask{p: b.drawing, spec: r}, shell.Refs(r.Of)).Reads = true
}

// Publish copies the reports from the store to their directories, where they differ. It returns the files written, and
// those that were left as they are because they know more: nothing of what is measured is stored for this machine's
// class, and something is for another one.
func (p *Project) Publish(ctx context.Context, plan *engine.Plan) (written, left []string, err error) {
	knowsLess := sync.OnceValues(func() (bool, error) { return p.knowsLess(ctx, plan) })
	for i := range p.Spec.Reports {
		r := &p.Spec.Reports[i]
		step, ok := plan.Step(r.Address.String())
		if !ok {
			continue
		}
		end, err := plan.End(ctx, p.Store, step)
		if err != nil {
			return written, left, err
		}
		if end.Entry.Dir == "" {
			continue // the others are there nevertheless
		}
		for _, f := range end.Entry.Files {
			dst := filepath.Join(p.Spec.Dir, filepath.FromSlash(r.Dir), filepath.FromSlash(f.Path))
			what, err := publish(dst, filepath.Join(end.Entry.Dir, filepath.FromSlash(f.Path)), knowsLess)
			switch {
			case err != nil:
				return written, left, fmt.Errorf("%s: %w", r.Address, err)
			case what == wrote:
				written = append(written, dst)
			case what == spared:
				left = append(left, dst)
			}
		}
	}
	return written, left, nil
}

// published is what became of a file.
type published int

const (
	same   published = iota // it was there already
	wrote                   //
	spared                  // another one was there, and knows more
)

// publish writes one file beside its place and renames it, unless it is there already.
func publish(dst, src string, knowsLess func() (bool, error)) (published, error) {
	want, err := os.ReadFile(src)
	if err != nil {
		return same, err
	}
	if have, err := os.ReadFile(dst); err == nil {
		if slices.Equal(have, want) {
			return same, nil
		}
		if less, err := knowsLess(); less || err != nil {
			return spared, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return same, err
	}
	beside := dst + ".new"
	if err := os.WriteFile(beside, want, 0o644); err != nil {
		return same, errors.Join(err, os.Remove(beside))
	}
	return wrote, os.Rename(beside, dst)
}
