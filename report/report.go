// Package report renders findings: the verdicts, and every other declared candidate with the reason for the missing
// figure.
//
// It computes nothing but counts, and refuses a document whose counts do not add up. The same document gives the same
// bytes. All text of a document may come from hostile logs and patches, so each format escapes text in its own way.
package report

import (
	"fmt"

	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/report/exchange"
	"github.com/benchgraph/benchgraph/report/markdown"
	"github.com/benchgraph/benchgraph/report/page"
)

// format is one row of the table of formats.
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

// Formats are the names of the formats that Render writes.
func Formats() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

// OfRun says whether a format shows the last apply and not what was found.
func OfRun(format string) bool { return format == "trace" || format == "otel" }

// Render writes a document in one format. The files are keyed by name; a name holds no directory.
//
// A document that does not add up gives no file but a *stats.RefusedError.
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
