package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// FindingsFile is the file name of findings in the result of a compare node, as JSON.
const FindingsFile = "findings.json"

// compareTask judges candidates once their blocks have ended, in whatever way. The ends are in its key.
type compareTask struct {
	p    *Drawing
	spec *hclspec.Compare
}

func (t *compareTask) Describe(d *cache.Description) {
	d.Add("reader", sample.ReaderVersion)
	d.Add("compare", t.spec.Address.Instance())
	d.Add("account", accountVersion)
	d.Add("rule", float(t.spec.Tie), float(t.spec.Confidence))
	d.Add("metrics", t.spec.Metrics...)
	d.Add("allow", t.p.Allow...)
	groups := t.p.groupsOf(t.spec)
	for _, g := range groups {
		d.Add("group", append([]string{g.Name, g.Design.Pairing}, numbers(findings.LooksOf(g.Design))...)...)
		if g.Design.BurnIn > 0 {
			d.Add("burn_in", strconv.Itoa(g.Design.BurnIn))
		}
		for _, m := range g.Members {
			d.Add("member", m.Name, m.Candidate, strconv.FormatBool(m.Baseline),
				strconv.FormatBool(t.p.Of[t.spec.Address][m.Bench.Address]), string(g.Absent[m.Name].Outcome),
				g.Absent[m.Name].Why)
			(&benchmarkTask{m}).Describe(d)
			d.Add("token_tolerance", float(m.Bench.Metrics.TokenTolerance))
			sample.DescribeTries(d, t.p.triesAt(g, m))
			if patterns := t.p.copies[m.Candidate]; len(patterns) > 0 {
				d.Add("copies", patterns...)
			}
			if brings := t.p.brings(m); len(brings) > 0 {
				d.Add("brings", brings...)
			}
			for _, f := range m.allFixes() {
				d.Add("fix", f.Fix.Address.Name, f.Fix.Effect, f.Fix.Caveat, f.Recipe(hclspec.Address.String))
			}
		}
	}
	for _, m := range t.p.MachinesOfFile() {
		d.Add("machine", m.Name, m.String())
	}
	for _, row := range t.p.uncovered(t.spec, groups) {
		d.Add("uncovered", row.Candidate, string(row.Outcome), row.Reason)
	}
}

func (t *compareTask) Run(_ context.Context, env *engine.Env) error {
	ends := make(map[string]engine.End, len(env.Ends))
	for _, e := range env.Ends {
		ends[e.Address] = WaitingEnd(e, t.p.machineOf[e.Address])
	}
	found, err := t.p.CaseOf(t.spec).Judge(ends)
	if err != nil {
		return err
	}
	if err := t.p.Account(t.spec, ends, &found); err != nil {
		return err
	}
	open := map[findings.BlocksOf]bool{} // will be judged again, with more blocks
	for _, c := range found.Comparisons {
		open[of(c)] = open[of(c)] || c.Primary && c.Outcome == stats.Inconclusive && c.More > 0
	}
	for _, c := range found.Comparisons {
		if !c.Primary {
			continue
		}
		data, err := c.Fields()
		if err != nil {
			return err
		}
		data["outcome"], data["final"] = c.Outcome, !open[of(c)]
		env.Emit(engine.Event{Type: engine.VerdictMade, Reason: c.Reason, Data: data})
		fmt.Fprintf(env.Log, "%s: %s: %s\n", c.Candidate, c.Outcome, c.Reason)
	}
	return writeJSON(filepath.Join(env.Out, FindingsFile), found)
}

func of(c stats.Comparison) findings.BlocksOf {
	return findings.BlocksOf{Benchmark: c.Benchmark, Commit: c.Commit}
}

func float(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

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
	n := b.add(c.Block, &compareTask{p: b.Drawing, spec: c}, nil)
	n.Reads = true
	for _, g := range b.groupsOf(c) {
		for _, t := range g.Trials {
			b.link(n, &n.After, t.At)
		}
		for _, m := range g.Members {
			for _, probe := range b.Probes[m.Candidate] {
				b.link(n, &n.After, probe) // a probe that was declared after the measurement also decides
			}
			b.link(n, &n.After, m.Bench.Address)
		}
	}
}

// reportTask renders the findings of compares.
type reportTask struct {
	p    *Drawing
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
		d.Add("gpu_hour", device, float(t.p.Spec.GPUHour[device]))
	}
}

func (t *reportTask) Run(_ context.Context, env *engine.Env) error {
	var all []findings.Findings
	for _, in := range env.Inputs {
		text, err := os.ReadFile(filepath.Join(in.Dir, FindingsFile))
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
