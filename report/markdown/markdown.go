// Package markdown writes documents in Markdown: report.md, and the comment on a pull request.
package markdown

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
)

// Render writes report.md. Its first screen shows who won, by how much and how certainly, and which rows are missing.
func Render(p *document.Counted) (map[string][]byte, error) {
	out := &strings.Builder{}
	fmt.Fprintf(out, "# %s\n\n", cmp.Or(prose(p.Title), "Benchmark report"))
	fmt.Fprintf(out, "%s\n\n", identity(p.Snapshot))
	answer(out, p)
	for _, t := range p.Compares {
		compareSection(out, p, t)
	}
	availabilitySection(out, p)
	failureSection(out, p.Failures)
	recoverySection(out, p)
	skipSection(out, p.Skips)
	recordedSection(out, p)
	Method(out, p)
	Cost(out, p)
	commitSections(out, p)
	return map[string][]byte{"report.md": []byte(strings.TrimRight(out.String(), "\n") + "\n")}, nil
}

func identity(s document.Snapshot) string {
	parts := []string{"Snapshot " + cmp.Or(code(s.ID), "without a name")}
	if !s.Time.IsZero() {
		parts = append(parts, s.Time.Format("2006-01-02 15:04:05 UTC"))
	}
	if s.Version != "" {
		parts = append(parts, "benchgraph "+prose(s.Version))
	}
	if s.Revision != "" {
		parts = append(parts, "revision "+code(s.Revision))
	}
	return strings.Join(parts, " · ")
}

// answer writes the sum of all compares.
func answer(out *strings.Builder, p *document.Counted) {
	if p.Universe == 0 {
		out.WriteString("**Nothing was declared to be compared.**\n\n")
		return
	}
	fmt.Fprintf(out, "**%s.** %s have figures; %s.\n\n", document.Verdicts(p.Total),
		document.Share(p.Total.Measured(), p.Universe, "declared"), document.Missing(p.Total))
	if len(p.Compares) < 2 {
		return
	}
	t := table{head: []column{{"Compare", false}, {"Declared", true}, {"Win", true}, {"Loss", true}, {"Tie", true},
		{"Inconclusive", true}, {"Without figures", true}}}
	line := func(name string, c stats.Totals) {
		n := func(o stats.Outcome) string { return fmt.Sprint(c.Counts[o]) }
		t.add(name, fmt.Sprint(c.Universe), n(stats.Win), n(stats.Loss),
			fmt.Sprint(c.Counts[stats.Tie]-c.Identical), n(stats.Inconclusive), fmt.Sprint(c.Universe-c.Measured()))
	}
	for _, c := range p.Compares {
		line(codeCell(c.Compare), c)
	}
	line("**All**", p.Total)
	t.write(out)
}

func compareSection(out *strings.Builder, p *document.Counted, t stats.Totals) {
	var judged, others, secondary []stats.Comparison
	for _, c := range p.Comparisons {
		switch {
		case c.Compare != t.Compare:
		case !c.Primary:
			secondary = append(secondary, c)
		case c.Measured():
			judged = append(judged, c)
		default:
			others = append(others, c)
		}
	}
	fmt.Fprintf(out, "## Compare %s\n\n", code(t.Compare))
	if len(p.Compares) > 1 {
		fmt.Fprintf(out, "%s. %s have figures; %s.\n\n", document.Verdicts(t), document.Share(t.Measured(),
			t.Universe, "declared"),
			document.Missing(t))
	}
	variantsBeside(out, p, t.Compare)
	figures(out, judged)
	pairSection(out, p, t.Compare)
	if len(others) > 0 {
		fmt.Fprintf(out, "### Without figures: %s\n\n", document.Share(len(others), t.Universe, "declared"))
		withoutFigures(out, others)
	}
	if len(secondary) > 0 {
		fmt.Fprintf(out,
			"### Further metrics\n\nExploratory: these rows are counted in no total, and among so many some are "+
				"false.\n\n")
		figures(out, secondary)
	}
}

// figures writes judged rows, and below them notes with reasons and caveats.
func figures(out *strings.Builder, rows []stats.Comparison) {
	if len(rows) == 0 {
		return
	}
	t := table{head: []column{{"Outcome", false}, {"Commit", false}, {"Candidate", false}, {"Effect", true},
		{document.IntervalTitle(rows), true},
		{"Blocks", true}, {"p_t", true}, {"q", true}, {"From", true}, {"To", true}, {"Unit", false}, {"Metric", false},
		{"Better", false},
		{"Benchmark", false}, {"Against", false}, {"Attempts", false}, {"Notes", false}}}
	notes := numbered{}
	for _, c := range rows {
		var marks []string
		if c.Outcome != stats.Win && c.Outcome != stats.Loss && c.Outcome != stats.Tie && c.Reason != "" {
			marks = append(marks, notes.mark(c.Why()))
		}
		if c.Doubtful() {
			marks = append(marks, notes.mark("q is above 0.05: among so many candidates this may be a false one, and "+
				"it belongs in no headline"))
		}
		for _, caveat := range document.CaveatTexts(c) {
			if mark := notes.mark(caveat); !slices.Contains(marks, mark) {
				marks = append(marks, mark)
			}
		}
		cells := []string{weighted(c), codeCell(c.Commit), codeCell(c.Candidate), "", "", fmt.Sprint(c.Blocks), "", "",
			"", "",
			prose(c.Unit), codeCell(c.Metric), c.DirectionText(), codeCell(c.Benchmark), codeCell(c.Against),
			lossesText(c.Attempts), strings.Join(marks, ", ")}
		if c.Blocks >= 1 {
			cells[3], cells[8], cells[9] = c.EffectText(), document.Number(c.AgainstValue), document.Number(c.Value)
		}
		if c.Blocks >= 2 {
			cells[4], cells[6] = c.IntervalText(), strings.TrimPrefix(document.TestP(c), "p_t ")
		}
		if c.Q > 0 {
			cells[7] = document.Probability(c.Q)
		}
		t.add(cells...)
	}
	t.write(out)
	notes.write(out)
}

// numbered collects notes that rows can share.
type numbered struct{ texts []string }

func (n *numbered) mark(text string) string {
	i := slices.Index(n.texts, text)
	if i < 0 {
		n.texts = append(n.texts, text)
		i = len(n.texts) - 1
	}
	return fmt.Sprint(i + 1)
}

func (n *numbered) write(out *strings.Builder) {
	if len(n.texts) == 0 {
		return
	}
	out.WriteString("Notes:\n\n")
	for i, text := range n.texts {
		fmt.Fprintf(out, "%d. %s\n", i+1, cmp.Or(prose(shorten(printable.Line(text))), "—"))
	}
	out.WriteByte('\n')
}

// outcome emphasizes wins and losses.
func outcome(o stats.Outcome) string {
	if o == stats.Win || o == stats.Loss {
		return "**" + string(o) + "**"
	}
	return prose(string(o))
}

// weighted returns the outcome of a row with figures, emphasized if it stands.
func weighted(c stats.Comparison) string {
	if c.Stands() {
		return outcome(c.Outcome)
	}
	return prose(string(c.Outcome))
}

// lossesText describes the attempts of a row if some do not count.
func lossesText(a *stats.Attempts) string {
	if a == nil || a.Voided+a.Replaced == 0 {
		return ""
	}
	return prose(a.Text())
}

func withoutFigures(out *strings.Builder, rows []stats.Comparison) {
	t := table{head: []column{{"Outcome", false}, {"Commit", false}, {"Candidate", false}, {"Benchmark", false},
		{"Reason", false}, {"Caveats", false}}}
	for _, c := range rows {
		caveats := slices.DeleteFunc(document.CaveatTexts(c), func(text string) bool { return text == c.Reason })
		t.add(outcome(c.Outcome), codeCell(c.Commit), codeCell(c.Candidate), codeCell(c.Benchmark),
			cmp.Or(prose(shorten(printable.Line(c.Reason))), "no reason was recorded"),
			prose(shorten(printable.Line(strings.Join(caveats, "; ")))))
	}
	t.write(out)
}

func skipSection(out *strings.Builder, skips []document.Skip) {
	if len(skips) == 0 {
		return
	}
	fmt.Fprintf(out, "## Declared exclusions: %d\n\n", len(skips))
	t := table{head: []column{{"Address", false}, {"Reason", false}}}
	for _, s := range skips {
		t.add(codeCell(s.Address), prose(s.Reason))
	}
	t.write(out)
}

// Method explains how to read the figures.
func Method(out *strings.Builder, p *document.Counted) {
	var margins []float64
	for _, c := range p.Comparisons {
		if c.Tie > 0 {
			margins = append(margins, c.Tie)
		}
	}
	slices.Sort(margins)
	var texts []string
	for _, m := range slices.Compact(margins) {
		texts = append(texts, fmt.Sprintf("%.4g %%", 100*m))
	}
	fmt.Fprintf(out, "## How this was judged\n\n"+
		"A block is one fresh run of every variant of a commit on the same devices, in random order. Effects come "+
		"from the mean of "+
		"the blocks' log ratios and are positive when the candidate is better: where less is better the ratio is "+
		"turned round, so half the time is +100 %%. "+
		"From and To are geometric means. "+
		"**win** and **loss**: the t interval at the look's level (Pocock) excludes 0, the effect reaches the "+
		"margin, and the t test survives Holm's "+
		"correction over the commit's contrasts. **tie**: the 90 %% interval lies inside the margin. "+
		"**inconclusive**: neither, at the last look, or "+
		"when a verdict at the last look has become unlikely. Intervals are those of the blocks at the last look, "+
		"not adjusted for the looks before. "+
		"p_t is the p of that t test after Holm within the commit; JSON and CSV also have p, that of the exact "+
		"sign-flip test, which decides nothing. q is Benjamini–Hochberg's over the compare: "+
		"of a list of all rows with q ≤ 0.05, at most 5 %% are expected to be false.")
	if len(texts) > 0 {
		fmt.Fprintf(out, " Margins used: %s.", strings.Join(texts, ", "))
	}
	fmt.Fprintf(out,
		" Every candidate that was declared is in exactly one row of its compare: %d rows, %d declared.\n\n",
		p.Total.Universe, p.Universe)
}

// Cost describes the hardware, and the time of the measurements.
func Cost(out *strings.Builder, p *document.Counted) {
	fmt.Fprintf(out, "## Hardware, time and cost\n\n")
	for _, h := range p.Machines() {
		fmt.Fprintf(out, "- %s\n", prose(h))
	}
	aside := 0
	for _, m := range p.Measurements {
		if m.Phase != "" {
			aside++
		}
	}
	fmt.Fprintf(out, "- %d values from valid runs\n", len(p.Measurements)-aside)
	if aside > 0 {
		fmt.Fprintf(out, "- %d values of burn-in blocks, which no verdict rests on\n", aside)
	}
	// Unknown is not zero: omit costs that were not recorded.
	if p.Cost.Attempts == 0 {
		return
	}
	fmt.Fprintf(out, "- %d attempts took %s", p.Cost.Attempts, printable.Duration(p.Cost.Wall))
	if p.Cost.GPUTime > 0 {
		fmt.Fprintf(out, " and %.2f GPU-hours", p.Cost.GPUTime.Hours())
	}
	if p.Cost.Money > 0 {
		fmt.Fprintf(out, ", %.2f in the currency of the file", p.Cost.Money)
	}
	if p.Cost.Lost > 0 {
		fmt.Fprintf(out, "; %s failed", document.Share(p.Cost.Lost, p.Cost.Attempts, "attempts"))
		if p.Cost.LostGPU > 0 {
			fmt.Fprintf(out, " and took %.2f of these GPU-hours", p.Cost.LostGPU.Hours())
		}
	}
	fmt.Fprintf(out, " (from records)\n")
}
