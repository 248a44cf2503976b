package report

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/stats"
)

// renderCSV writes comparisons.csv and samples.csv after RFC 4180. A figure that has no meaning is an empty cell. Text
// that a spreadsheet would take for a formula begins with an apostrophe.
func renderCSV(p *prepared) (map[string][]byte, error) {
	comparisons := [][]string{{"snapshot", "compare", "benchmark", "commit", "candidate", "against", "metric", "primary", "outcome", "reason",
		"effect", "low", "high", "confidence", "blocks", "p", "q", "hodges_lehmann", "value", "against_value", "unit", "better", "tie", "methodology", "caveats"}}
	for _, c := range p.Comparisons {
		comparisons = append(comparisons, comparisonRecord(p.Snapshot.ID, c))
	}
	samples := [][]string{{"snapshot", "benchmark", "commit", "candidate", "metric", "block", "order", "value", "unit", "better", "start", "seed",
		"device_class", "devices", "void"}}
	for _, m := range p.Measurements {
		samples = append(samples, []string{cell(p.Snapshot.ID), cell(m.Benchmark), cell(m.Commit), cell(m.Candidate), cell(m.Metric),
			strconv.Itoa(m.Block), strconv.Itoa(m.Order), exactly(m.Value), cell(m.Unit), cell(m.Better), m.Start.UTC().Format(time.RFC3339Nano),
			strconv.FormatUint(m.Seed, 10), cell(m.DeviceClass), cell(strings.Join(m.Devices, " ")), cell(m.Void)})
	}
	files := map[string][]byte{}
	for name, records := range map[string][][]string{"comparisons.csv": comparisons, "samples.csv": samples} {
		var out bytes.Buffer
		w := csv.NewWriter(&out)
		w.UseCRLF = true
		if err := w.WriteAll(records); err != nil {
			return nil, err
		}
		files[name] = out.Bytes()
	}
	return files, nil
}

func comparisonRecord(snapshot string, c stats.Comparison) []string {
	figure := func(v float64, fewest int) string {
		if c.Blocks < fewest {
			return ""
		}
		return exactly(v)
	}
	optional := func(v float64) string {
		if v == 0 {
			return ""
		}
		return exactly(v)
	}
	return []string{cell(snapshot), cell(c.Compare), cell(c.Benchmark), cell(c.Commit), cell(c.Candidate), cell(c.Against), cell(c.Metric),
		strconv.FormatBool(c.Primary), cell(string(c.Outcome)), cell(c.Reason), figure(c.Effect, 1), figure(c.Low, 2), figure(c.High, 2),
		optional(c.Confidence), strconv.Itoa(c.Blocks), figure(c.P, 2), optional(c.Q), figure(c.HodgesLehmann, 2), figure(c.Value, 1),
		figure(c.AgainstValue, 1), cell(c.Unit), cell(c.Better), optional(c.Tie), cell(c.Methodology), cell(strings.Join(c.Caveats, "; "))}
}

// exactly writes a number so that reading it gives the same number.
func exactly(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
