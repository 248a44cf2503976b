// Package metricstest checks the properties that every parser of package metrics must have.
package metricstest

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/collect"
)

// Parse parses a text. No parser may return an error for a text.
func Parse(t testing.TB, p metrics.Parser, text string) metrics.Result {
	t.Helper()
	r, err := p.Parse(metrics.Output{Stdout: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Check parses any bytes. It fails the test unless samples are finite with clean names and the result is within its
// bounds. It returns the parser's error.
func Check(t testing.TB, p metrics.Parser, b []byte) error {
	t.Helper()
	r, err := p.Parse(metrics.Output{Stdout: bytes.NewReader(b)})
	for _, s := range r.Samples {
		if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || s.Metric == "" ||
			strings.ContainsFunc(s.Metric, unicode.IsControl) {
			t.Fatalf("%T: %+v", p, s)
		}
	}
	if len(r.Labels) > collect.MaxLabels || len(r.Warnings) > collect.MaxWarnings+1 ||
		len(r.Samples) > 2*collect.MaxSamples {
		t.Fatalf("%T: bounds exceeded", p)
	}
	return err
}
