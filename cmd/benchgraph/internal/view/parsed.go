package view

import (
	"cmp"
	"fmt"
	"io"

	"github.com/benchgraph/benchgraph/metrics/formats"
)

// Parsed prints the samples and the failure that were parsed from a log.
func Parsed(w io.Writer, log formats.Log) {
	fmt.Fprintf(w, "%s, %d samples\n", cmp.Or(log.Detected, "no format that is known"), len(log.Samples))
	var rows [][]string
	for _, s := range log.Samples {
		rows = append(rows, []string{Clean(s.Metric), fmt.Sprint(s.Value), Clean(s.Unit)})
	}
	Table(w, "  ", rows)
	for _, warning := range log.Warnings {
		if warning.Line > 0 {
			fmt.Fprintf(w, "warning: line %d: %s\n", warning.Line, Clean(warning.Text))
		} else {
			fmt.Fprintf(w, "warning: %s\n", Clean(warning.Text))
		}
	}
	if log.Detected == "" && log.Failure == nil {
		fmt.Fprintln(w, `remedy: give the format with -format, or read the numbers with metric blocks: `+
			`metric "NAME" { match = "LABEL: ([0-9.]+)" }`)
	}
	if f := log.Failure; f != nil {
		at := ""
		if f.Line > 0 { // a result in JSON has no lines
			at = fmt.Sprintf(", line %d", f.Line)
		}
		fmt.Fprintf(w, "failure: %s (%s)%s: %s\n", f.Rule, f.Class, at, Clean(f.Evidence))
		if f.Remedy != "" {
			fmt.Fprintf(w, "remedy: %s\n", Clean(f.Remedy))
		}
	}
}
