package findings

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// contest returns a compare of a baseline and another variant over four blocks without results.
func contest() *Case {
	g := group.Group{Commit: "c", Design: hclspec.Design{Samples: 4, Max: 4}}
	of := map[hclspec.Address]bool{}
	for _, name := range []string{"base", "one"} {
		b := &hclspec.Benchmark{Metrics: hclspec.Metrics{Primary: "items", Custom: []hclspec.Metric{
			{Name: "items", Match: "([0-9.]+) items/s", Unit: "items/s", Better: "higher"},
			{Name: "total_output_tokens", Match: "([0-9]+) tokens"},
		}}}
		b.Address = hclspec.Address{Kind: "benchmark", Name: "speed", Key: "c/" + name, Keyed: true}
		b.Candidate = "c/" + name
		of[b.Address] = true
		g.Members = append(g.Members, group.Member{Name: name, Baseline: name == "base", Bench: b,
			Methodology: methodology.Description{Fields: []methodology.Field{{Name: "command", Value: "./prog"}}}})
	}
	for i := range 4 {
		g.Blocks = append(g.Blocks, group.Block{At: hclspec.TrialAddress("speed", "c", i+1),
			Members: []string{"base", "one"}})
	}
	compare := &hclspec.Compare{}
	compare.Address = hclspec.Address{Kind: "compare", Name: "all"}
	return &Case{Compare: compare, Of: of, Groups: []group.Group{g}, Rank: map[string]int{}}
}

func number(member string, block int, value float64) sample.Measurement {
	return sample.Measurement{Benchmark: "speed", Commit: "c", Candidate: "c/" + member, Block: block, Position: 1,
		Metric: "items", Value: value, Unit: "items/s"}
}

// measured returns the ends of blocks in which each member printed the given text.
func measured(t *testing.T, c *Case, says map[string]string) map[string]engine.End {
	t.Helper()
	ends := map[string]engine.End{}
	for i, b := range c.Groups[0].Blocks {
		rec := sample.Record{Block: i + 1, Order: b.Members, Members: map[string]sample.Member{}}
		dir := t.TempDir()
		for _, name := range b.Members {
			rec.Members[name] = sample.Member{}
			must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
			must(t, os.WriteFile(filepath.Join(dir, name, sample.StdoutFile),
				fmt.Appendf(nil, says[name], 0.1*float64(i)), 0o644))
		}
		record(t, dir, rec)
		ends[b.At.String()] = engine.End{Entry: cache.Entry{Dir: dir}}
	}
	return ends
}

func record(t *testing.T, dir string, rec sample.Record) {
	t.Helper()
	text, err := json.Marshal(rec)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, sample.RecordFile), text, 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// only returns the row of the case on the primary metric, which must be the only one.
func only(t *testing.T, c *Case, ends map[string]engine.End) stats.Comparison {
	t.Helper()
	found, err := c.Judge(ends)
	must(t, err)
	primary := slices.DeleteFunc(found.Comparisons, func(r stats.Comparison) bool { return !r.Primary })
	if len(primary) != 1 || primary[0].Candidate != "c/one" {
		t.Fatalf("%+v", primary)
	}
	return primary[0]
}

const first = `trial.speed["c#1"]`

// Each story starts with four blocks in which the candidate is a tenth faster, and spoils one thing.
func TestTheFirstRuleThatHoldsDecides(t *testing.T) {
	lost := func(f failure.Failure) engine.End { return engine.End{Failure: &f} }
	for name, story := range map[string]struct {
		spoil  func(c *Case, ends map[string]engine.End)
		want   stats.Outcome
		reason string
	}{
		"nothing": {func(*Case, map[string]engine.End) {}, stats.Win, ""},
		"it is left out, and the baseline failed": {func(c *Case, ends map[string]engine.End) {
			c.Groups[0].Members[1].Absent, c.Groups[0].Members[1].Why = stats.Skipped, "not today"
			ends[first] = lost(failure.Failure{Class: failure.Permanent, Subject: "c/base", Message: "crashed"})
		}, stats.Skipped, "not today"},
		"no device serves it": {func(_ *Case, ends map[string]engine.End) {
			ends[first] = engine.End{Never: true, Reason: "needs 9 GPUs"}
		}, stats.Infeasible, "needs 9 GPUs"},
		"there is no baseline, and it was not built": {func(c *Case, _ map[string]engine.End) {
			c.Groups[0].Members[0].Baseline = false
			c.Of = map[hclspec.Address]bool{c.Groups[0].Members[1].Bench.Address: true}
			c.Groups[0].Members[1].Absent = stats.BuildFailed
		}, stats.NoBaseline, "no baseline"},
		"the baseline failed": {func(_ *Case, ends map[string]engine.End) {
			ends[first] = lost(failure.Failure{Class: failure.Permanent, Subject: "c/base", Message: "crashed"})
		}, stats.NoBaseline, "the baseline failed: crashed"},
		"the machine failed the baseline": {func(_ *Case, ends map[string]engine.End) {
			ends[first] = lost(failure.Failure{Class: failure.Infra, Subject: "c/base", Message: "no disk"})
		}, stats.NoBaseline, "could not be measured: no disk"},
		"it was not built": {func(c *Case, _ map[string]engine.End) {
			c.Groups[0].Members[1].Absent, c.Groups[0].Members[1].Why = stats.BuildFailed, "cc says no"
		}, stats.BuildFailed, "cc says no"},
		"it failed": {func(_ *Case, ends map[string]engine.End) {
			ends[first] = lost(failure.Failure{Class: failure.Permanent, Subject: "c/one", Message: "crashed",
				Rule: "oom", Evidence: "out of memory"})
		}, stats.Failed, "crashed [oom]: out of memory"},
		"it failed, as was read from a block that was lost since": {func(c *Case, ends map[string]engine.End) {
			ends[c.Groups[0].Members[1].Bench.Address.String()] = lost(failure.Failure{Class: failure.Permanent,
				Subject: "c/one", Message: "block 1: crashed"})
			ends[first] = engine.End{Never: true, Reason: "needs 9 GPUs"}
		}, stats.Failed, "block 1: crashed"},
		"the machine failed the block": {func(_ *Case, ends map[string]engine.End) {
			ends[first] = lost(failure.Failure{Class: failure.Transient, Message: "no network"})
		}, stats.Infra, "no network [undiagnosed]"},
		"another voided the block": {func(_ *Case, ends map[string]engine.End) {
			ends[first] = lost(failure.Failure{Class: failure.Transient, Subject: "c/two"})
		}, stats.NotRun, "was voided by c/two"},
		"it was measured otherwise": {func(c *Case, _ map[string]engine.End) {
			c.Groups[0].Members[1].Methodology.Fields[0].Value = "./prog --fast"
		}, stats.NotComparable, `command: "./prog --fast" against "./prog"`},
		"a block is missing": {func(_ *Case, ends map[string]engine.End) {
			delete(ends, first)
		}, stats.NotRun, first + " has not been run"},
	} {
		t.Run(name, func(t *testing.T) {
			c := contest()
			ends := measured(t, c, map[string]string{"base": "100%.1f items/s\n", "one": "110%.1f items/s\n"})
			story.spoil(c, ends)
			if row := only(t, c, ends); row.Outcome != story.want || !strings.Contains(row.Reason, story.reason) {
				t.Errorf("%s: %s", row.Outcome, row.Reason)
			}
		})
	}
}

// The output of a member is read again for each judgment: a missing number is a failure of the member, and a block that
// left the member out tells nothing about it.
func TestWhatABlockSaysOfItsMembers(t *testing.T) {
	c := contest()
	ends := measured(t, c, map[string]string{"base": "100%.1f items/s\n", "one": "no number%.0f\n"})
	if row := only(t, c, ends); row.Outcome != stats.Failed || !strings.Contains(row.Reason, "metric_missing") {
		t.Errorf("%s: %s", row.Outcome, row.Reason)
	}
	for i, b := range c.Groups[0].Blocks {
		own := sample.Member{Skipped: "it failed in block 1"}
		if i == 0 {
			own = sample.Member{Failure: &failure.Failure{Class: failure.Permanent, Message: "crashed"}}
		}
		record(t, ends[b.At.String()].Entry.Dir, sample.Record{Block: i + 1, Order: b.Members,
			Members: map[string]sample.Member{"base": {}, "one": own}})
	}
	if row := only(t, c, ends); row.Outcome != stats.Failed || !strings.Contains(row.Reason, "crashed") {
		t.Errorf("%s: %s", row.Outcome, row.Reason)
	}
}

func TestAFailureIsExplainedOnce(t *testing.T) {
	f := failure.Failure{Message: "no sample: printed twice", Rule: "metric_repeated", Evidence: "printed twice"}
	if got := Explain(&f); got != "no sample: printed twice [metric_repeated]" {
		t.Error(got)
	}
}

func TestWhatMayDifferIsLabelled(t *testing.T) {
	c := contest()
	ends := measured(t, c, map[string]string{"base": "100%.1f items/s\n1000 tokens\n",
		"one": "110%.1f items/s\n900 tokens\n"})
	c.Groups[0].Members[1].Methodology.Fields[0].Value = "./prog --fast"
	c.Allow = []string{"command"}
	if row := only(t, c, ends); row.Outcome != stats.NotComparable ||
		!strings.HasPrefix(row.Reason, "total_output_tokens") {
		t.Errorf("%s: %s", row.Outcome, row.Reason)
	}
	c.Allow = append(c.Allow, "total_output_tokens")
	row := only(t, c, ends)
	labelled := func(what string) bool {
		return slices.ContainsFunc(row.Caveats, func(c stats.Caveat) bool {
			return strings.Contains(c.Text, "in spite of a different "+what)
		})
	}
	if row.Outcome != stats.Win || !labelled("command") || !labelled("total_output_tokens") {
		t.Errorf("%s: %q", row.Outcome, row.Caveats)
	}
}

// Either side of a pair may be the baseline; the effect is that of the first.
func TestAPairIsJudgedBothWays(t *testing.T) {
	c := contest()
	all, err := c.Groups[0].Stand(measured(t, c, map[string]string{"base": "100%.1f items/s\n",
		"one": "110%.1f items/s\n"}))
	must(t, err)
	ahead, behind := c.Pair(&c.Groups[0], all, "one", "base"), c.Pair(&c.Groups[0], all, "base", "one")
	if len(ahead) != 1 || ahead[0].Outcome != stats.Win || ahead[0].Against != "c/base" || len(behind) != 1 ||
		behind[0].Outcome != stats.Loss || behind[0].Effect >= 0 {
		t.Errorf("%+v\n%+v", ahead, behind)
	}
}

// Rows are in the order of the file, whatever their outcomes, and each candidate's primary metric comes first.
func TestRowsAreInTheOrderOfTheFile(t *testing.T) {
	c := contest()
	g := &c.Groups[0]
	for _, name := range []string{"two", "three"} {
		m := g.Members[1]
		b := *m.Bench
		b.Address.Key, b.Candidate = "c/"+name, "c/"+name
		m.Name, m.Bench = name, &b
		g.Members = append(g.Members, m)
		c.Of[b.Address] = true
		for i := range g.Blocks {
			g.Blocks[i].Members = append(g.Blocks[i].Members, name)
		}
	}
	g.Members[3].Absent = stats.BuildFailed
	missing := func(commit string) stats.Comparison {
		return stats.Comparison{Compare: "all", Commit: commit, Candidate: commit + "/one", Primary: true,
			Verdict: stats.Verdict{Outcome: stats.NotRun}}
	}
	c.Uncovered = []stats.Comparison{missing("d"), missing("a"),
		{Compare: "all", Commit: "c", Candidate: "c/four", Primary: true,
			Verdict: stats.Verdict{Outcome: stats.NotRun}}}
	for i, name := range []string{"d/one", "c/base", "c/four", "c/three", "c/two", "c/one", "a/one"} {
		c.Rank[name] = i
	}
	c.Compare.Metrics = []string{"alone"}
	for i := range g.Members {
		g.Members[i].Bench.Metrics.Custom = append(g.Members[i].Bench.Metrics.Custom,
			hclspec.Metric{Name: "alone", Match: "alone ([0-9]+)", Better: "lower"})
	}
	says := map[string]string{}
	for _, m := range g.Members {
		says[m.Name] = "100%.1f items/s\nalone 7\n"
	}
	found, err := c.Judge(measured(t, c, says))
	must(t, err)
	var got []string
	for _, row := range found.Comparisons {
		got = append(got, strings.TrimSpace(row.Candidate+" "+row.Metric))
	}
	want := []string{"d/one", "c/three items", "c/two items", "c/two alone", "c/one items", "c/one alone", "c/four",
		"a/one"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Two runs of a member are compared by the records of their blocks, whatever the file says now.
func TestTwoRunsOfOneMember(t *testing.T) {
	type side struct{ says, class, command string }
	slow, fast := "100%.1f items/s\n", "110%.1f items/s\n"
	for name, story := range map[string]struct {
		one, other side
		allow      string
		want       stats.Outcome
		says       string
	}{
		"alike": {side{fast, "x", "./prog"}, side{slow, "x", "./prog"}, "", stats.Inconclusive,
			"no verdict: other changes of the machine"},
		"another command": {side{fast, "x", "./prog 2"}, side{slow, "x", "./prog"}, "",
			stats.NotComparable, `c/one@r2 and c/one@r1 are not comparable: command: "./prog 2" against "./prog"`},
		"other hardware": {side{fast, "y", "./prog"}, side{slow, "x", "./prog"}, "", stats.NotComparable,
			"hardware: "},
		"other hardware, as was meant": {side{fast, "y", "./prog"}, side{slow, "x", "./prog"}, "hardware",
			stats.Inconclusive, "in spite of a different hardware"},
		"nothing recorded": {side{fast, "x", "./prog"}, side{slow, "x", ""}, "command", stats.NotComparable,
			"an earlier version"},
		"it fails now": {side{"none%.0f", "x", "./prog"}, side{slow, "x", "./prog"}, "", stats.Failed,
			"metric_missing"},
		"it failed then": {side{fast, "x", "./prog"}, side{"none%.0f", "x", "./prog"}, "",
			stats.NoBaseline, "it failed in run r1"},
		"it was left out": {side{fast, "x", "./prog"}, side{}, "", stats.NotRun, "no sample"},
	} {
		t.Run(name, func(t *testing.T) {
			c := contest()
			c.Allow = strings.Fields(story.allow)
			run := func(name string, s side) Run {
				r := Run{Name: name}
				ends := measured(t, c, map[string]string{"base": "%.1f", "one": s.says})
				for i, b := range c.Groups[0].Blocks {
					e := ends[b.At.String()].Entry
					own := sample.Member{}
					switch {
					case s.says == "":
						own.Skipped = "it failed in block 1"
					case s.command != "":
						own.Procedure = []methodology.Field{{Name: "command", Value: s.command}}
					}
					rec := sample.Record{Block: i + 1, Order: []string{"one"},
						Members: map[string]sample.Member{"one": own}}
					rec.Class.CPU = s.class
					record(t, e.Dir, rec)
					r.Blocks = append(r.Blocks, e)
				}
				return r
			}
			rows, err := c.Runs(&c.Groups[0], &c.Groups[0].Members[1], run("r2", story.one), run("r1", story.other))
			must(t, err)
			if len(rows) != 1 || rows[0].Outcome != story.want ||
				!strings.Contains(rows[0].Reason+fmt.Sprint(rows[0].Caveats), story.says) {
				t.Fatalf("%+v", rows)
			}
			row := rows[0]
			if row.Candidate != "c/one@r2" || row.Against != "c/one@r1" || row.Outcome == stats.Inconclusive &&
				(row.Blocks != 4 || row.Effect < 0.09) {
				t.Errorf("%+v", row)
			}
		})
	}
}

// The first member of a block is the first one with numbers, wherever the others were in the order.
func TestWhoRanFirst(t *testing.T) {
	c := contest()
	g := &c.Groups[0]
	for i := 4; i < 8; i++ {
		g.Blocks = append(g.Blocks, group.Block{At: hclspec.TrialAddress("speed", "c", i+1),
			Members: []string{"base", "one"}})
	}
	g.Design.Samples, g.Design.Max = 8, 8
	ends := measured(t, c, map[string]string{"base": "%g items/s", "one": "%g items/s"})
	for i, b := range g.Blocks {
		dir := ends[b.At.String()].Entry.Dir
		order := []string{"gone", "base", "one"}
		if i%2 == 1 {
			order = []string{"one", "gone", "base"}
		}
		rec := sample.Record{Block: i + 1, Order: order, Members: map[string]sample.Member{"base": {}, "one": {},
			"gone": {Skipped: "gone failed in block 1"}}}
		for _, name := range b.Members {
			value := 100 + 0.1*float64(i*i%3)
			if name == "one" {
				value = 104
			}
			if name != order[0] && (name != "base" || order[0] != "gone") {
				value *= 1.05 // it found the machine warm
			}
			must(t, os.WriteFile(filepath.Join(dir, name, sample.StdoutFile), fmt.Appendf(nil, "%g items/s", value),
				0o644))
		}
		record(t, dir, rec)
	}
	row := only(t, c, ends)
	if row.Outcome != stats.Win || math.Abs(row.Effect-0.04) > 0.002 || math.Abs(row.First+0.05/1.05) > 0.002 ||
		row.High-row.Low > 0.01 {
		t.Errorf("%s, effect %v [%v, %v], first %v: %s", row.Outcome, row.Effect, row.Low, row.High, row.First,
			row.Reason)
	}
}
