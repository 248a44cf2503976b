// Package report renders findings: verdicts, and for every other declared candidate the reason why it has no figure.
//
// It computes only counts, and refuses a document whose counts do not add up. The same document gives the same bytes.
// All text of a document may come from hostile logs and patches, so each format has its own escaping.
package report

import (
	"fmt"

	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/report/exchange"
	"github.com/benchgraph/benchgraph/report/markdown"
	"github.com/benchgraph/benchgraph/report/page"
)

// format is a row of the table of formats.
type format struct {
	name   string
	render func(*document.Counted) (map[string][]byte, error)
}

func formats() []format {
	return []format{
		{"markdown", markdown.Render},
		{"json", document.JSON},
		{"csv", exchange.CSV},
		{"benchfmt", exchange.Benchfmt},
		{"junit", exchange.JUnit},
		{"html", page.Render},
		{"github", markdown.RenderGitHub},
		{"github-action-benchmark", exchange.GitHubActionBenchmark},
		{"bmf", exchange.BMF},
		{"pytorch", exchange.PyTorch},
		{"trace", exchange.Trace},
		{"otel", exchange.OTel},
	}
}

// Formats returns the names of the formats that Render writes.
func Formats() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

// OfRun reports whether a format shows the last apply instead of findings.
func OfRun(format string) bool { return format == "trace" || format == "otel" }

// Render writes a document in one format. It returns the files by name; names contain no directory.
//
// If the counts of a document do not add up, Render returns *stats.RefusedError.
func Render(doc document.Document, name string) (map[string][]byte, error) {
	for _, f := range formats() {
		if f.name != name {
			continue
		}
		p, err := document.Check(doc)
		if err != nil {
			return nil, err
		}
		return f.render(p)
	}
	return nil, fmt.Errorf("report format %q: unknown; known are %q", name, Formats())
}
