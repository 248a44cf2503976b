// Package tried shows the outcome of a try, as JSON and as one line.
package tried

import (
	"fmt"
	"io"
	"strings"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
)

// Document is the outcome of a try, as JSON. Its own figures are those of the primary metric.
type Document struct {
	Format    string         `json:"format"`
	Benchmark string         `json:"benchmark"`
	Against   string         `json:"against"`
	Metric    *string        `json:"metric"` // null: the output of the baseline has not told it
	Outcome   stats.Outcome  `json:"outcome"`
	Effect    *float64       `json:"effect"` // relative, positive is better; null: not known
	Low       *float64       `json:"low"`
	High      *float64       `json:"high"`
	Speedup   *float64       `json:"speedup"` // 1 + effect
	Value     *float64       `json:"value"`   // of the candidate, in unit
	Base      *float64       `json:"against_value"`
	Unit      string         `json:"unit"`
	Blocks    int            `json:"blocks"`
	Reason    string         `json:"reason"` // why there is no verdict
	Caveats   []stats.Caveat `json:"caveats"`
	Logs      []Log          `json:"logs"`

	Comparisons []stats.Comparison  `json:"comparisons"` // the row of each metric, the primary one first
	Failures    []document.Failed   `json:"failures"`    // of nodes that the try ran, now or before
	Preflight   []preflight.Finding `json:"preflight"`   // without findings that are ok
	Diagnostics []view.Diagnostic   `json:"diagnostics"` // warnings about the file
}

// Log is the log of the attempt that tells the state of a node of a try.
type Log struct {
	Address string `json:"address"`
	Log     string `json:"log"`
}

// Fill fills in the figures of the primary metric; the lists must be set. clear replaces a path that the user has never
// seen by words of the command line. Fill returns an error unless there is exactly one primary row.
func (d *Document) Fill(clear func(string) string) error {
	primary := 0
	for i := range d.Comparisons {
		r := &d.Comparisons[i]
		r.Benchmark, r.Reason = strings.TrimSuffix(r.Benchmark, " "+hclspec.Tried), clear(r.Reason)
		if r.Metric == sample.Undecided { // the output of the baseline was to tell the metric
			r.Metric = ""
		}
		if r.Primary {
			primary++
			d.take(r)
		}
	}
	for i := range d.Failures {
		f := &d.Failures[i]
		f.Message, f.Evidence = clear(f.Message), clear(f.Evidence)
	}
	found := []preflight.Finding{}
	for _, f := range d.Preflight {
		if f.Evidence = clear(f.Evidence); f.Status != preflight.OK {
			found = append(found, f)
		}
	}
	d.Preflight = found
	if d.Failures == nil {
		d.Failures = []document.Failed{}
	}
	if primary != 1 {
		return fmt.Errorf("a try has one row, and here are %d", primary)
	}
	return nil
}

// take takes over the figures of a row.
func (d *Document) take(r *stats.Comparison) {
	d.Format, d.Benchmark, d.Against = view.Format, r.Benchmark, r.Against
	if r.Metric != "" {
		d.Metric = &r.Metric
	}
	d.Outcome, d.Unit, d.Blocks, d.Reason = r.Outcome, r.Unit, r.Blocks, r.Reason
	d.Caveats = append([]stats.Caveat{}, r.Caveats...)
	if r.Blocks > 0 {
		d.Value, d.Base = &r.Value, &r.AgainstValue
	}
	ratio := r.Ratio()
	d.Effect, d.Speedup, d.Low, d.High = ratio.Effect, ratio.Speedup, ratio.Low, ratio.High
}

// Write writes the verdict as one line.
func (d *Document) Write(w io.Writer, style view.Style) {
	var row stats.Comparison
	for _, r := range d.Comparisons {
		if r.Primary {
			row = r
		}
	}
	line := style.Bold(string(d.Outcome))
	switch {
	case d.Effect == nil:
	case row.Better == stats.Lower:
		line += " " + row.EffectText()
		if interval := row.IntervalText(); interval != "" {
			line += fmt.Sprintf(", %g %% %s", 100*row.Confidence, interval)
		}
	default:
		line += fmt.Sprintf(" ×%.4g (%s", *d.Speedup, percent(*d.Effect))
		if d.Low != nil {
			low := strings.TrimSuffix(percent(*d.Low), " %")
			line += fmt.Sprintf(", %g %% %s to %s", 100*row.Confidence, low, percent(*d.High))
		}
		line += ")"
	}
	if d.Blocks > 0 {
		line += fmt.Sprintf(", %s; %s %s → %s %s", view.Count(d.Blocks, "block"), view.Clean(row.Metric),
			view.Amount(*d.Base), view.Amount(*d.Value), view.Clean(d.Unit))
	}
	if d.Reason != "" && !d.Outcome.Judged() {
		line += ": " + view.Clean(d.Reason)
	}
	fmt.Fprintln(w, strings.TrimSpace(line))
}

// percent returns a relative difference for people, with its sign.
func percent(x float64) string {
	if x > -0.1 && x < 0.1 {
		return fmt.Sprintf("%+.2f %%", 100*x)
	}
	return fmt.Sprintf("%+.1f %%", 100*x)
}

// Notes returns the warnings about protected files of the candidate, and its caveats.
func (d *Document) Notes() (texts []string) {
	for _, f := range d.Preflight {
		own := strings.HasSuffix(f.Candidate, "/"+hclspec.Tried)
		if own && f.Check == preflight.Protect && f.Status == preflight.Warn {
			texts = append(texts, "protect: "+f.Evidence+": "+f.Remedy)
		}
	}
	for _, c := range d.Caveats {
		texts = append(texts, c.Text)
	}
	return texts
}
