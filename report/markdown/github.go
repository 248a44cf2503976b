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

const (
	// mostComment limits github.md, in bytes: GitHub refuses comments of more than 65,536 characters.
	mostComment = 64_000

	// mostFolded limits each folded table, in bytes, so that the open part has room.
	mostFolded = 16_000

	// mostRevisions limits the commits whose revisions the comment names. The gate of a pull request has one.
	mostRevisions = 3
)

// urgency lists outcomes in the order of interest to a reviewer. All other outcomes are folded.
var urgency = []stats.Outcome{stats.Loss, stats.Wrong, stats.Failed, stats.BuildFailed, stats.NotComparable,
	stats.NoBaseline, stats.Infra,
	stats.Win, stats.Inconclusive}

// RenderGitHub writes github.md, a comment for a pull request. Its first line is a marker that is the same for all
// reports of the same compares, so that a script finds its earlier comment. Foreign text is in code spans, where a
// name after an @ notifies nobody.
func RenderGitHub(p *document.Counted) (map[string][]byte, error) {
	out := &strings.Builder{}
	var names []string
	for _, c := range p.Compares {
		names = append(names, c.Compare)
	}
	fmt.Fprintf(out, "<!-- benchgraph %s -->\n", strings.ReplaceAll(printable.Line(strings.Join(names, " ")), "--",
		"- -"))
	fmt.Fprintf(out, "### %s\n\n", cmp.Or(code(p.Title), "Benchmarks"))
	if p.Universe == 0 {
		out.WriteString("Nothing was declared to be compared.\n")
		return map[string][]byte{"github.md": []byte(out.String())}, nil
	}
	fmt.Fprintf(out, "**%s.** %s have figures.\n\n", document.Verdicts(p.Total),
		document.Share(p.Total.Measured(), p.Universe, "declared"))
	var shown, ties, rest []stats.Comparison
	for _, c := range p.Comparisons {
		switch {
		case !c.Primary:
		case slices.Contains(urgency, c.Outcome):
			shown = append(shown, c)
		case c.Outcome == stats.Tie && c.Measured():
			ties = append(ties, c)
		default:
			rest = append(rest, c)
		}
	}
	slices.SortStableFunc(shown, func(a, b stats.Comparison) int {
		return slices.Index(urgency, a.Outcome) - slices.Index(urgency, b.Outcome)
	})
	folded := &strings.Builder{}
	fold(p, folded, "Ties", ties)
	fold(p, folded, "Further candidates without figures", rest)
	foldCaveats(folded, append(shown, ties...))
	fmt.Fprintf(folded, "%s\n", identityCode(p))
	rowsOf(p, out, shown, mostComment-folded.Len())
	out.WriteString(folded.String())
	return map[string][]byte{"github.md": []byte(out.String())}, nil
}

// rowsOf writes a table of rows. The whole output stays below most bytes.
func rowsOf(p *document.Counted, out *strings.Builder, rows []stats.Comparison, most int) {
	title := "| Outcome | Candidate | Commit | Metric | Effect | Blocks | Why |\n| --- | --- | --- | --- | " +
		"---: | ---: | --- |\n"
	several := slices.ContainsFunc(p.Comparisons, func(c stats.Comparison) bool {
		return c.Primary && c.Benchmark != p.Comparisons[0].Benchmark
	})
	if several { // two benchmarks may have metrics of the same name
		title = strings.NewReplacer("| Metric", "| Benchmark | Metric", "\n|", "\n| --- |").Replace(title)
	}
	const room = 100 // for the line about omitted rows
	if len(rows) == 0 {
		return
	}
	out.WriteString(title)
	for i, c := range rows {
		effect, blocks, why := "", "", codeCell(document.Shorten(cmp.Or(c.OpenText(), c.Reason), 160))
		if c.Blocks > 0 {
			effect, blocks = c.EffectText(), fmt.Sprint(c.Blocks)
			if c.Blocks > 1 {
				effect += " (" + c.IntervalText() + ")"
			}
		}
		if c.Doubtful() {
			why = "may be a false one among so many (q above 0.05)"
		}
		commit := codeCell(document.Shorten(p.TitleOf(c.Commit), 60))
		if several {
			commit += " | " + codeCell(c.Benchmark)
		}
		line := fmt.Sprintf("| %s | %s | %s | %s %s | %s | %s | %s |\n", weighted(c), codeCell(c.Candidate), commit,
			codeCell(c.Metric), c.DirectionText(), effect, blocks, why)
		if out.Len()+len(line)+room > most {
			fmt.Fprintf(out, "\nand %d more rows, which the whole report has\n", len(rows)-i)
			break
		}
		out.WriteString(line)
	}
	out.WriteByte('\n')
}

// fold writes a table that is folded at first.
func fold(p *document.Counted, out *strings.Builder, name string, rows []stats.Comparison) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(out, "<details><summary>%s: %d</summary>\n\n", name, len(rows))
	rowsOf(p, out, rows, out.Len()+mostFolded)
	out.WriteString("</details>\n\n")
}

// foldCaveats lists the caveats of rows, each once.
func foldCaveats(out *strings.Builder, rows []stats.Comparison) {
	counts := map[string]int{}
	var order []string
	for _, c := range rows {
		for _, text := range document.CaveatTexts(c) {
			if counts[text]++; counts[text] == 1 {
				order = append(order, text)
			}
		}
	}
	if len(order) == 0 {
		return
	}
	fmt.Fprintf(out, "<details><summary>Caveats: %d</summary>\n\n", len(order))
	for i, text := range order {
		if i == 40 {
			fmt.Fprintf(out, "- and %d more\n", len(order)-i)
			break
		}
		fmt.Fprintf(out, "- %s", code(document.Shorten(text, 300)))
		if n := counts[text]; n > 1 {
			fmt.Fprintf(out, " (%d rows)", n)
		}
		out.WriteByte('\n')
	}
	out.WriteString("\n</details>\n\n")
}

// identityCode is identity for a place where foreign text must be in code spans. It also names the revisions of a few
// commits: a comment is replaced with each push, and a reader must see for which push it is.
func identityCode(p *document.Counted) string {
	text := "Snapshot " + cmp.Or(code(p.Snapshot.ID), "without a name")
	if p.Snapshot.Version != "" {
		text += ", benchgraph " + code(p.Snapshot.Version)
	}
	for _, c := range p.Commits {
		if len(p.Commits) <= mostRevisions && c.Rev != "" {
			text += fmt.Sprintf(", %s is %s, its parent %s", code(c.Name), code(fmt.Sprintf("%.12s", c.Rev)),
				cmp.Or(code(fmt.Sprintf("%.12s", c.Parent)), "unknown"))
		}
	}
	return "<sub>" + text + "</sub>"
}
