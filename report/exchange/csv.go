package exchange

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
)

// CSV writes comparisons.csv, samples.csv, failures.csv, states.csv and, if there are recorded results, recorded.csv
// according to RFC 4180. A figure without a meaning is an empty cell. Text that a spreadsheet would read as a formula
// gets a leading apostrophe.
func CSV(p *document.Counted) (map[string][]byte, error) {
	comparisons := [][]string{{"snapshot", "compare", "benchmark", "commit", "title", "candidate", "against", "metric",
		"primary", "outcome", "reason",
		"effect", "low", "high", "confidence", "blocks", "p", "q", "hodges_lehmann", "value", "against_value", "unit",
		"better", "tie", "methodology", "caveats",
		"speedup", "change", "direction", "p_t", "detectable", "needed", "valid", "voided", "retried", "replaced",
		"causes",
		"settle_blocks", "settle_s", "settle_gpu_hours", "settle_money"}}
	for _, c := range p.Comparisons {
		comparisons = append(comparisons, comparisonRecord(p.Snapshot.ID, p.TitleOf(c.Commit), c))
	}
	samples := [][]string{{"snapshot", "benchmark", "commit", "candidate", "metric", "block", "order", "value", "unit",
		"better", "start", "seed",
		"device_class", "devices", "phase"}}
	for _, m := range p.Measurements {
		samples = append(samples, []string{cell(p.Snapshot.ID), cell(m.Benchmark), cell(m.Commit), cell(m.Candidate),
			cell(m.Metric),
			strconv.Itoa(m.Block), strconv.Itoa(m.Order), exactly(m.Value), cell(m.Unit), cell(m.Better),
			m.Start.UTC().Format(time.RFC3339Nano),
			strconv.FormatUint(m.Seed, 10), cell(m.DeviceClass), cell(strings.Join(m.Devices, " ")), cell(m.Phase)})
	}
	files := map[string][]byte{}
	all := map[string][][]string{"comparisons.csv": comparisons, "samples.csv": samples,
		"failures.csv": failureRecords(p), "states.csv": stateRecords(p)}
	if p.Recorded != nil {
		all["recorded.csv"] = recordedRecords(p)
	}
	for name, records := range all {
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

func failureRecords(p *document.Counted) [][]string {
	records := [][]string{{"snapshot", "address", "commit", "candidate", "class", "stage", "rule", "message",
		"evidence", "log", "remedy", "cost_s"}}
	for _, f := range p.Failures {
		cost := ""
		if s := document.Seconds(f.Took); s != nil {
			cost = exactly(*s)
		}
		records = append(records, []string{cell(p.Snapshot.ID), cell(f.Address), cell(f.Commit), cell(f.Candidate),
			cell(string(f.Class)), cell(f.Stage), cell(f.Rule),
			cell(f.Message), cell(f.Evidence), cell(f.Log), cell(f.Remedy), cost})
	}
	return records
}

func stateRecords(p *document.Counted) [][]string {
	records := [][]string{{"snapshot", "benchmark", "commit", "title", "variant", "candidate", "baseline", "gpus",
		"state", "blocks", "reason"}}
	for _, s := range p.States {
		records = append(records, []string{cell(p.Snapshot.ID), cell(s.Benchmark), cell(s.Commit),
			cell(p.TitleOf(s.Commit)), cell(s.Variant), cell(s.Candidate),
			strconv.FormatBool(s.Baseline), strconv.Itoa(s.GPUs), cell(s.State), strconv.Itoa(s.Blocks),
			cell(s.Reason)})
	}
	return records
}

func comparisonRecord(snapshot, title string, c stats.Comparison) []string {
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
	record := []string{cell(snapshot), cell(c.Compare), cell(c.Benchmark), cell(c.Commit), cell(title),
		cell(c.Candidate), cell(c.Against), cell(c.Metric),
		strconv.FormatBool(c.Primary), cell(string(c.Outcome)), cell(c.Reason), figure(c.Effect, 1), figure(c.Low, 2),
		figure(c.High, 2),
		optional(c.Confidence), strconv.Itoa(c.Blocks), figure(c.P, 2), optional(c.Q), figure(c.HodgesLehmann, 2),
		figure(c.Value, 1),
		figure(c.AgainstValue, 1), cell(c.Unit), cell(c.Better), optional(c.Tie), cell(c.Methodology),
		cell(strings.Join(document.CaveatTexts(c), "; "))}
	if c.NoRatio { // there is no ratio
		for _, column := range []int{11, 12, 13, 18} {
			record[column] = ""
		}
	}
	speedup, change, needed := "", "", ""
	if c.Blocks >= 1 {
		change = c.EffectText()
		if !c.NoRatio {
			speedup = exactly(1 + c.Effect)
		}
	}
	if c.Needed > 0 {
		needed = strconv.Itoa(c.Needed)
	}
	record = append(record, speedup, cell(change), c.DirectionText(), optional(c.PT), optional(c.Detectable), needed)
	if a := c.Attempts; a != nil {
		record = append(record, strconv.Itoa(a.Valid), strconv.Itoa(a.Voided), strconv.Itoa(a.Retried),
			strconv.Itoa(a.Replaced), cell(causesText(a)))
	} else {
		record = append(record, "", "", "", "", "")
	}
	if s := c.Settle; s != nil {
		gpu := ""
		if s.Took > 0 {
			gpu = exactly(s.GPUHours)
		}
		return append(record, strconv.Itoa(s.Blocks), optional(s.Took.Seconds()), gpu, optional(s.Money))
	}
	return append(record, "", "", "", "")
}

// causesText lists causes as "variant class rule count", separated by semicolons.
func causesText(a *stats.Attempts) string {
	var parts []string
	for _, c := range a.Causes {
		parts = append(parts, fmt.Sprintf("%s %s %s %d", cmp.Or(c.Variant, "machine"), c.Class,
			cmp.Or(c.Rule, "undiagnosed"), c.Count))
	}
	return strings.Join(parts, "; ")
}

// exactly writes a number so that reading it gives the same number.
func exactly(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// cell makes text safe for spreadsheets, which would execute it if it begins like a formula.
func cell(s string) string {
	s = printable.Line(s)
	if s != "" && strings.ContainsRune("=+-@＝＋－＠", []rune(s)[0]) {
		return "'" + s
	}
	return s
}

func recordedRecords(p *document.Counted) [][]string {
	records := [][]string{{"snapshot", "commit", "title", "variant", "side", "agent", "runner", "metric", "value",
		"unit", "model", "gpus", "methodology",
		"status", "diagnosis", "counts", "why", "flags", "source"}}
	for _, e := range p.Recorded.Entries {
		value, gpus := "", ""
		if e.Value != nil {
			value = exactly(*e.Value)
		}
		if e.GPUs > 0 {
			gpus = strconv.Itoa(e.GPUs)
		}
		records = append(records, []string{cell(p.Snapshot.ID), cell(e.Commit), cell(p.TitleOf(e.Commit)),
			cell(e.Variant()), cell(e.Side), cell(e.Agent),
			cell(e.Runner), cell(e.Metric), value, cell(e.Unit), cell(e.Model), gpus, cell(e.Methodology),
			cell(e.Status), cell(e.Diagnosis),
			strconv.FormatBool(e.Counts), cell(e.Why), cell(strings.Join(e.Flags, "; ")), cell(e.Source)})
	}
	return records
}
