// Package page writes documents as HTML: a self-contained file, and the live page of an apply.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/report/markdown"
	"github.com/benchgraph/benchgraph/stats"
)

var (
	//go:embed page.html
	pageTemplate string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
)

// page is the data of the HTML report's template.
type page struct {
	Title    string
	Snapshot document.Snapshot
	Policy   string // content security policy: nothing is loaded, and only the page's own style and script apply
	Style    template.CSS
	Script   template.JS
	JSON     template.JS // the whole report.json: the page is also the export
	Answer   string
	Ledger   template.HTML
	Outcomes []outcomeCount
	Compares []pageCompare
	Matrix   matrix
	Commits  []pageCommit
	Tables   []pageTable // tables that account for everything declared
	Failures []document.Failed
	Skips    []document.Skip
	Method   string
	Cost     string
	Live     *livePart // nil: the page is a file
}

// outcomeCount is one outcome in the ledger.
type outcomeCount struct {
	Outcome stats.Outcome
	Count   int
	Share   string // of the declared candidates
}

// pageCompare is one compare of the page.
type pageCompare struct {
	Name    string
	Answer  string
	Forest  template.HTML // empty: no row has an interval
	Rows    []pageRow     // rows of the primary metrics
	Further []pageRow     // rows of the other metrics
	Pairs   []pageRow     // patched candidates against the variant without a patch
}

// pageRow is a row of a table of comparisons. Its text is ready to be shown.
type pageRow struct {
	Primary                                  bool
	ID, CommitID                             string // anchors of the row and of its commit
	Outcome                                  stats.Outcome
	Commit, Candidate, Against               string
	Benchmark, Metric, Unit, Better          string
	Effect, Interval, From, To, P, Q, Remark string
	EffectValue                              float64 // for sorting
	Blocks                                   int
	Attempts                                 string
	Caveats                                  []string
}

// matrix shows the outcome of each candidate: commits down, variants across.
type matrix struct {
	Variants []string
	Rows     []matrixRow
}

type matrixRow struct {
	Commit, CommitID string
	Cells            []matrixCell
}

// matrixCell is one candidate's outcome. The zero cell stands for an undeclared candidate.
type matrixCell struct {
	Outcome stats.Outcome
	Text    string
	RowID   string
	Blocks  int // measured blocks of a candidate without figures, on a live page
}

// pageCommit is the section of one commit.
type pageCommit struct {
	Name, ID, Title string
	Rows            []pageRow
	Samples         []samplePlot
	Failures        []document.Failed
	Logs            []pageLog // only on a live page
}

// Render writes report.html, a self-contained file.
func Render(p *document.Counted) (map[string][]byte, error) {
	document, err := document.JSON(p)
	if err != nil {
		return nil, err
	}
	view := newPage(p)
	view.JSON = template.JS(strings.ReplaceAll(string(document["report.json"]), "<", `\u003c`))
	text, err := execute(view)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"report.html": []byte(text)}, nil
}

func execute(view *page) (string, error) {
	t, err := template.New("page").Funcs(template.FuncMap{"sign": sign, "took": took, "attempt": document.AttemptOf,
		"dots": dots}).Parse(pageTemplate)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, view); err != nil {
		return "", fmt.Errorf("html: %w", err)
	}
	return printable.Lines(out.String()), nil
}

func newPage(p *document.Counted) *page {
	script := strings.TrimSpace(pageScript)
	style := strings.TrimSpace(pageStyle)
	view := &page{
		Title: titleOf(&p.Document), Snapshot: p.Snapshot, Style: template.CSS(style), Script: template.JS(script),
		Policy: fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'",
			digest(style), digest(script)),
		Answer: "Nothing was declared to be compared.",
		Tables: pageTables(p), Failures: p.Failures, Skips: p.Skips,
	}
	if p.Universe > 0 {
		view.Answer = fmt.Sprintf("%s. %s have figures; %s.", document.Verdicts(p.Total),
			document.Share(p.Total.Measured(), p.Universe, "declared"), document.Missing(p.Total))
	}
	for _, o := range stats.Outcomes() {
		if n := p.Total.Counts[o]; n > 0 {
			view.Outcomes = append(view.Outcomes, outcomeCount{o, n, document.Share(n, p.Universe, "declared")})
		}
	}
	view.Ledger = ledgerBar(view.Outcomes, p.Universe)
	ids := rowIDs(p)
	for _, t := range p.Compares {
		view.Compares = append(view.Compares, newPageCompare(p, t, ids))
	}
	view.Matrix = newMatrix(p, ids)
	view.Commits = pageCommits(p, ids)
	var text strings.Builder
	markdown.Method(&text, p)
	_, view.Method, _ = strings.Cut(plain(text.String()), "\n")
	text.Reset()
	markdown.Cost(&text, p)
	_, view.Cost, _ = strings.Cut(plain(text.String()), "\n")
	return view
}

// plain removes the Markdown marks of texts that are shared with report.md.
func plain(text string) string {
	return strings.NewReplacer("**", "", "`", "", `\`, "").Replace(text)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// sign returns a mark for each outcome, so that colour is never the only sign.
func sign(o stats.Outcome) string {
	switch o {
	case stats.Win:
		return "▲"
	case stats.Loss:
		return "▼"
	case stats.Tie:
		return "="
	case stats.Inconclusive:
		return "?"
	case stats.Skipped, stats.NoPatch, stats.NotRun:
		return "–"
	}
	return "✕"
}

// rowIDs returns the anchors of the rows, by index in the document. Anchors contain no foreign text.
func rowIDs(p *document.Counted) map[int]string {
	ids := make(map[int]string, len(p.Comparisons))
	for i := range p.Comparisons {
		ids[i] = fmt.Sprintf("row-%d", i+1)
	}
	return ids
}

// commitIDs returns the commits in order of their names, and their anchors.
func commitIDs(p *document.Counted) (names []string, ids map[string]string) {
	ids = map[string]string{}
	for _, c := range p.Comparisons {
		if ids[c.Commit] == "" {
			ids[c.Commit] = "known"
			names = append(names, c.Commit)
		}
	}
	slices.Sort(names)
	for i, name := range names {
		ids[name] = fmt.Sprintf("commit-%d", i+1)
	}
	return names, ids
}

func newPageCompare(p *document.Counted, t stats.Totals, ids map[int]string) pageCompare {
	c := pageCompare{
		Name: t.Compare,
		Answer: fmt.Sprintf("%s. %s have figures; %s.", document.Verdicts(t), document.Share(t.Measured(), t.Universe,
			"declared"),
			document.Missing(t)),
	}
	_, commits := commitIDs(p)
	var judged []stats.Comparison
	var judgedIDs []string
	for i, row := range p.Comparisons {
		if row.Compare != t.Compare {
			continue
		}
		shown := newPageRow(row, ids[i], commits[row.Commit])
		if !row.Primary {
			c.Further = append(c.Further, shown)
			continue
		}
		c.Rows = append(c.Rows, shown)
		if row.Outcome.Judged() && row.Blocks >= 2 {
			judged, judgedIDs = append(judged, row), append(judgedIDs, ids[i])
		}
	}
	for i, row := range p.Pairs {
		if row.Compare == t.Compare {
			c.Pairs = append(c.Pairs, newPageRow(row, fmt.Sprintf("pair-%d", i+1), commits[row.Commit]))
		}
	}
	c.Forest = forest(judged, judgedIDs)
	return c
}

func newPageRow(c stats.Comparison, id, commitID string) pageRow {
	row := pageRow{
		ID: id, CommitID: commitID, Primary: c.Primary, Outcome: c.Outcome, Commit: c.Commit,
		Candidate: variantOf(c.Candidate), Against: variantOf(c.Against),
		Benchmark: c.Benchmark, Metric: c.Metric, Unit: c.Unit, Blocks: c.Blocks, Remark: c.Why(),
		EffectValue: c.Effect, Caveats: document.CaveatTexts(c), Attempts: c.Attempts.Text(),
	}
	switch c.Better {
	case "higher":
		row.Better = "higher is better"
	case "lower":
		row.Better = "lower is better"
	}
	if c.Blocks >= 1 {
		row.Effect, row.From, row.To = c.EffectText(), document.Number(c.AgainstValue), document.Number(c.Value)
	}
	if c.Blocks >= 2 {
		row.Interval, row.P = c.IntervalText(), document.TestP(c)
	}
	if c.Q > 0 {
		row.Q = document.Probability(c.Q)
	}
	return row
}

func variantOf(candidate string) string {
	if _, variant, ok := strings.Cut(candidate, "/"); ok {
		return variant
	}
	return candidate
}

func newMatrix(p *document.Counted, ids map[int]string) matrix {
	var m matrix
	names, commits := commitIDs(p)
	type key struct{ commit, variant string }
	cells := map[key]matrixCell{}
	for i, c := range p.Comparisons {
		if !c.Primary {
			continue
		}
		k := key{c.Commit, variantOf(c.Candidate)}
		if !slices.Contains(m.Variants, k.variant) {
			m.Variants = append(m.Variants, k.variant)
		}
		if _, taken := cells[k]; taken {
			continue // the candidate is in a second compare or benchmark, whose own table shows it
		}
		text := string(c.Outcome)
		if c.Outcome.Judged() && c.Blocks >= 1 {
			text = c.EffectText()
		}
		cells[k] = matrixCell{Outcome: c.Outcome, Text: text, RowID: ids[i]}
	}
	slices.Sort(m.Variants)
	for _, name := range names {
		row := matrixRow{Commit: name, CommitID: commits[name]}
		for _, v := range m.Variants {
			row.Cells = append(row.Cells, cells[key{name, v}])
		}
		m.Rows = append(m.Rows, row)
	}
	return m
}

func pageCommits(p *document.Counted, ids map[int]string) []pageCommit {
	names, anchors := commitIDs(p)
	byName := map[string]*pageCommit{}
	all := make([]pageCommit, len(names))
	for i, name := range names {
		all[i] = pageCommit{Name: name, ID: anchors[name], Title: p.TitleOf(name)}
		byName[name] = &all[i]
	}
	for i, c := range p.Comparisons {
		commit := byName[c.Commit]
		commit.Rows = append(commit.Rows, newPageRow(c, ids[i], commit.ID))
	}
	for _, f := range p.Failures {
		if c := byName[f.Commit]; c != nil {
			c.Failures = append(c.Failures, f)
		}
	}
	for name, plots := range samplePlots(p) {
		if c := byName[name]; c != nil {
			c.Samples = plots
		}
	}
	return all
}
