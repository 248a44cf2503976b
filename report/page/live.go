package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"html/template"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
)

var (
	//go:embed live.html
	liveTemplate string
	//go:embed live.js
	liveScript string
	//go:embed log.js
	logScript string
)

// Now is the state of an apply, shown above the report on the live page.
type Now struct {
	At      string // position in the run log, RUN:OFFSET; empty: there was no apply
	Apply   string // who applies since when; empty: nobody
	Run     string // name of the current or last apply; empty: there was none
	Done    int    // number of nodes
	Failed  int
	Samples int
	Invalid int
	Running []LiveNode
	Ended   []LiveNode // newest first
	Groups  []LiveGroup
	States  []LiveState
	Read    time.Time // when the results of the page were read; zero: not yet
	Problem string    // error of the last reading of results
}

// LiveNode is a node that runs or has just ended.
type LiveNode struct {
	Address  string
	Attempt  string // names its log; empty: no log
	Phase    string
	Took     string // time so far
	Failed   bool
	Retrying bool
	Class    string
	Message  string
}

// LiveState counts the nodes in one state.
type LiveState struct {
	Name  string
	Count int
}

// LiveGroup holds recent samples of one commit in one benchmark.
type LiveGroup struct {
	Benchmark, Commit string
	Samples           []document.Measurement
}

// LogView is the end of the log of an attempt at a node.
type LogView struct {
	Address  string
	Attempt  string
	How      string // how the attempt ended, or that it is running
	Running  bool
	Attempts []LogAttempt
	Text     string // end of the log
	At       int64  // offset in the log at which Text ends, in bytes
	Cut      bool   // the beginning of the log is missing in Text
}

// LogAttempt is one attempt at a node.
type LogAttempt struct{ Name, How string }

// LivePage is a page that shows a report while it grows. Now is inserted between the two parts.
type LivePage struct {
	Before, After []byte
	Version       string // changes when the page changes
	Policy        string // content security policy for the header
}

// livePart is the part of the template's data for live pages.
type livePart struct {
	Mark   template.HTML
	Script template.JS
}

// Marks in a page that are replaced later. Text of a document cannot contain them, as its brackets are escaped.
const (
	mark        = "<!--now-->"
	unversioned = `<body data-version="">`
)

// LogOf returns the node that has the log of a block; empty: none.
type LogOf func(benchmark, commit string, block int) string

// RenderLive makes a live page of a document. For nil, it makes a page with only a title, while the results are being
// read.
func RenderLive(doc *document.Document, title string, logOf LogOf) (LivePage, error) {
	reading := doc == nil
	if reading {
		doc = &document.Document{Title: title}
	}
	p, err := document.Check(*doc)
	if err != nil {
		return LivePage{}, err
	}
	view := newPage(p)
	script := strings.TrimSpace(liveScript)
	view.Live = &livePart{Mark: mark, Script: template.JS(script)}
	view.Policy = livePolicy(string(view.Style), string(view.Script), script)
	if reading {
		view.Answer = "The results are being read."
	}
	links := logLinks(p, logOf)
	for i := range view.Commits {
		view.Commits[i].Logs = links[view.Commits[i].Name]
	}
	countBlocks(&view.Matrix, p)
	text, err := execute(view)
	if err != nil {
		return LivePage{}, err
	}
	version := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16]
	text = strings.Replace(text, unversioned, fmt.Sprintf(`<body data-version="%s">`, version), 1)
	before, after, _ := strings.Cut(text, mark)
	return LivePage{[]byte(before), []byte(after), version, view.Policy + unframed}, nil
}

// livePolicy allows a page its own style and scripts, and requests to its own server.
func livePolicy(style string, scripts ...string) string {
	var sources []string
	for _, script := range scripts {
		sources = append(sources, "'"+digest(script)+"'")
	}
	return fmt.Sprintf("default-src 'none'; style-src '%s'; script-src %s; connect-src 'self'; base-uri 'none'; "+
		"form-action 'none'",
		digest(style), strings.Join(sources, " "))
}

// unframed is a directive that works only in a header: no other page may frame this one.
const unframed = "; frame-ancestors 'none'"

// pageLog is a link to a log.
type pageLog struct{ Node, Text string }

// logLinks returns links to the logs of each commit's blocks.
func logLinks(p *document.Counted, logOf LogOf) map[string][]pageLog {
	links, seen := map[string][]pageLog{}, map[string]bool{}
	for _, m := range p.Measurements {
		node := logOf(m.Benchmark, m.Commit, m.Block)
		if node == "" || seen[node] {
			continue
		}
		seen[node] = true
		links[m.Commit] = append(links[m.Commit], pageLog{node, fmt.Sprintf("%s, block %d", m.Benchmark, m.Block)})
	}
	return links
}

// countBlocks sets the number of measured blocks of candidates without an outcome.
func countBlocks(m *matrix, p *document.Counted) {
	type cell struct{ commit, variant string }
	blocks := map[cell]map[int]bool{}
	for i := range p.Measurements {
		of := cell{p.Measurements[i].Commit, variantOf(p.Measurements[i].Candidate)}
		if blocks[of] == nil {
			blocks[of] = map[int]bool{}
		}
		blocks[of][p.Measurements[i].Block] = true
	}
	for _, row := range m.Rows {
		for i := range row.Cells {
			if row.Cells[i].Outcome == stats.NotRun {
				row.Cells[i].Blocks = len(blocks[cell{row.Commit, m.Variants[i]}])
			}
		}
	}
}

// dots returns a dot for each block.
func dots(blocks int) string {
	if blocks > mostDots {
		return strings.Repeat("●", mostDots) + "…"
	}
	return strings.Repeat("●", blocks)
}

const mostDots = 20

// livePages parses the templates that only live pages have.
var livePages = sync.OnceValues(func() (*template.Template, error) {
	return template.New("live").Funcs(template.FuncMap{
		"clock": func(t time.Time) string { return t.Format(time.DateTime) },
		"plots": groupPlots,
	}).Parse(liveTemplate)
})

// HTML returns the section of the live page that changes all the time.
func (n *Now) HTML() ([]byte, error) { return renderLivePart("now", n) }

// HTML returns a page with the end of a log; while the attempt runs, the page follows the log.
func (v *LogView) HTML() (page []byte, policy string, err error) {
	style, script := strings.TrimSpace(pageStyle), strings.TrimSpace(logScript)
	page, err = renderLivePart("log", struct {
		*LogView
		Shown  string
		Style  template.CSS
		Script template.JS
	}{v, printable.Lines(v.Text), template.CSS(style), template.JS(script)})
	return page, livePolicy(style, script) + unframed, err
}

func renderLivePart(name string, data any) ([]byte, error) {
	t, err := livePages()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, name, data); err != nil {
		return nil, fmt.Errorf("html: %w", err)
	}
	return []byte(printable.Lines(out.String())), nil
}

// Summary returns a sentence about the state of the apply.
func (n *Now) Summary() string {
	came := fmt.Sprintf("%d nodes done, %d failed, %d samples", n.Done, n.Failed, n.Samples)
	if n.Invalid > 0 {
		came += fmt.Sprintf(", %d voided", n.Invalid)
	}
	switch {
	case n.Apply != "":
		return n.Apply + ": " + came + " so far."
	case n.Run == "":
		return "Nothing has been applied here."
	case len(n.Running) > 0:
		return fmt.Sprintf("No apply runs. The last one, %s, was ended from outside while %d nodes ran: %s.",
			n.Run, len(n.Running), came)
	}
	return fmt.Sprintf("No apply runs. The last one was %s: %s.", n.Run, came)
}

// Active returns the running nodes. After an apply was killed, there are none.
func (n *Now) Active() []LiveNode {
	if n.Apply == "" {
		return nil
	}
	return n.Running
}

// groupPlots draws the samples of a group, one picture for each metric.
func groupPlots(g LiveGroup) []samplePlot {
	p := &document.Counted{Document: document.Document{Measurements: g.Samples}}
	for _, m := range g.Samples {
		p.Comparisons = append(p.Comparisons, stats.Comparison{Benchmark: m.Benchmark, Metric: m.Metric, Primary: true})
	}
	return samplePlots(p)[g.Commit]
}

// titleOf returns the title of a page.
func titleOf(doc *document.Document) string { return cmp.Or(doc.Title, "Benchmark report") }
