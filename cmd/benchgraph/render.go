package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/recorded"
	"github.com/benchgraph/benchgraph/metrics/units"
	"github.com/benchgraph/benchgraph/report"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
)

// render makes the files of a report, by name.
func (p place) render(found []findings.Findings, spec *hclspec.Spec, r *hclspec.Report) (map[string][]byte, error) {
	doc, err := p.document(found, spec, r)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, format := range r.Formats {
		made, err := report.Render(doc, format)
		if err != nil {
			return nil, fmt.Errorf("report %s as %s: %w", r.Address.Name, format, err)
		}
		maps.Copy(files, made)
	}
	return files, nil
}

// document converts findings to a report. The report changes only if the findings do.
func (p place) document(found []findings.Findings, spec *hclspec.Spec, r *hclspec.Report) (document.Document, error) {
	id, err := snapshotOf(found)
	if err != nil {
		return document.Document{}, err
	}
	doc := document.Document{Title: r.Address.Name, Snapshot: document.Snapshot{ID: id, Version: version}}
	better := map[string]string{}
	hardware := map[string]bool{}
	for _, f := range found {
		doc.Universe += f.Universe
		rows, pairs := f.Settled(pricesOf(spec))
		doc.Comparisons = append(doc.Comparisons, rows...)
		doc.Pairs = append(doc.Pairs, pairs...)
		for _, row := range f.Comparisons {
			if row.Better != "" {
				better[row.Metric] = row.Better
			}
			// A candidate that several benchmarks would have measured is left out once.
			skip := document.Skip{Address: row.Candidate, Reason: row.Reason}
			if row.Primary && row.Outcome == stats.Skipped && !slices.Contains(doc.Skips, skip) {
				doc.Skips = append(doc.Skips, skip)
			}
		}
	}
	seen := map[sample.Measurement]bool{} // two compares may rest on the same samples
	for _, f := range found {
		for _, m := range f.Measurements {
			if seen[m] {
				continue
			}
			seen[m] = true
			start, err := time.Parse(time.RFC3339Nano, m.Start)
			if err != nil {
				return doc, fmt.Errorf("sample of %s: %w", m.Candidate, err)
			}
			if start.After(doc.Snapshot.Time) {
				doc.Snapshot.Time = start
			}
			hardware[m.Hardware] = true
			doc.Measurements = append(doc.Measurements, document.Measurement{
				Benchmark: m.Benchmark, Commit: m.Commit, Candidate: m.Candidate, Block: m.Block, Order: m.Position,
				Metric: m.Metric,
				Value:  m.Value, Unit: m.Unit, Better: better[m.Metric], Start: start, Seed: m.Seed,
				DeviceClass: m.Hardware, Phase: m.Phase,
			})
		}
	}
	doc.Hardware = sortedKeys(hardware)
	for i := range spec.Commits {
		c := &spec.Commits[i]
		doc.Commits = append(doc.Commits, document.Commit{Name: c.Name, Title: c.Title, Rev: c.Rev, Parent: c.Parent,
			Model: modelOf(c.Params)})
	}
	if slices.ContainsFunc(r.Formats, report.OfRun) {
		doc.Attempts = runlog.LastAttempts(p.runDir())
	}
	p.account(&doc, found, spec)
	if len(r.Recorded) > 0 { // recorded results are part of the state that the report shows
		sum := sha256.Sum256([]byte(id + "\n" + strings.Join(r.Recorded, "\n")))
		doc.Snapshot.ID = hex.EncodeToString(sum[:6])
	}
	doc.Recorded, err = recordedOf(spec, r)
	return doc, err
}

// recordedOf returns the book of the results of other studies that a report names, for the file's commits.
func recordedOf(spec *hclspec.Spec, r *hclspec.Report) (*recorded.Book, error) {
	if len(r.Recorded) == 0 {
		return nil, nil
	}
	var lines []recorded.Line
	for _, text := range r.Recorded {
		some, err := recorded.Read([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%s: recorded: %w", r.Address, err)
		}
		lines = append(lines, some...)
	}
	commits := make([]recorded.Commit, len(spec.Commits))
	for i := range spec.Commits {
		c := &spec.Commits[i]
		commits[i] = recorded.Commit{Name: c.Name, Rev: c.Rev, Parent: c.Parent, Model: modelOf(c.Params)}
	}
	slices.SortFunc(commits, func(a, b recorded.Commit) int { return strings.Compare(a.Name, b.Name) })
	return recorded.Keep(commits, lines, units.Convert), nil
}

// modelOf returns the parameter model of a commit; "" if it is missing or no text.
func modelOf(params json.RawMessage) string {
	var named struct {
		Model any `json:"model"`
	}
	// Params come from the file's own encoder.
	_ = json.Unmarshal(params, &named)
	model, _ := named.Model.(string)
	return model
}

// account adds states of variants, failures and cost to a document. Several compares may be about the same blocks.
func (p place) account(doc *document.Document, found []findings.Findings, spec *hclspec.Spec) {
	states := map[findings.State]bool{}
	failures := map[findings.Failed]bool{}
	for _, f := range found {
		for _, s := range f.States {
			if !states[s] {
				states[s] = true
				doc.States = append(doc.States, document.State(s))
			}
		}
		for _, failed := range f.Failures {
			if failures[failed] {
				continue
			}
			failures[failed] = true
			shown := document.Failed{Address: failed.Address, Commit: failed.Commit, Candidate: failed.Candidate,
				Failure: failed.Failure, Took: failed.Took}
			if failed.Attempt != "" {
				shown.Log = p.shortLog(failed.Attempt)
			}
			doc.Failures = append(doc.Failures, shown)
		}
	}
	doc.Cost = costOf(found, doc.Hardware, pricesOf(spec))
}

// costOf sums up attempts, each once. Money is 0 if the price of a used device is unknown. Attempts of a group that was
// never measured count as run on the hardware of the whole report.
func costOf(found []findings.Findings, hardware []string, price func(hardware []string) float64) (c document.Cost) {
	seen := map[string]bool{}
	blocks, priced := 0, true
	for _, f := range found {
		classes := f.Classes()
		for _, a := range f.Spent {
			if seen[a.Attempt] {
				continue
			}
			seen[a.Attempt] = true
			gpus := a.Took * time.Duration(a.GPUs)
			c.Attempts++
			c.Wall += a.Took
			c.GPUTime += gpus
			if gpus > 0 {
				used, measured := classes[findings.BlocksOf{Benchmark: a.Benchmark, Commit: a.Commit}]
				if a.Hardware != "" {
					used = []string{a.Hardware}
				} else if !measured {
					used = hardware
				}
				hour := price(used)
				c.Money += gpus.Hours() * hour
				priced = priced && hour > 0
			}
			switch {
			case a.Failed:
				c.Lost++
				c.LostGPU += gpus
			case a.Block:
				c.PerBlock += a.Took
				blocks++
			}
		}
	}
	if blocks > 0 {
		c.PerBlock /= time.Duration(blocks)
	}
	if !priced {
		c.Money = 0
	}
	return c
}

// shortLog returns the path of an attempt's log, relative to the project's directory if the log is below it.
func (p place) shortLog(attempt string) string {
	path := p.logOf(attempt)
	if below, err := filepath.Rel(p.dir, path); err == nil && filepath.IsLocal(below) {
		return filepath.ToSlash(below)
	}
	return path
}

// pricesOf returns a function from the classes of measuring machines to the price of an hour of a device.
func pricesOf(spec *hclspec.Spec) func(hardware []string) float64 {
	return func(hardware []string) float64 { return priceOf(hardware, spec.GPUHour) }
}

// priceOf returns the cost of an hour of the device that measured every row; 0 if it has no price, or if there are
// several.
func priceOf(hardware []string, prices map[string]float64) float64 {
	price := 0.0
	for _, class := range hardware {
		own := 0.0
		for device, p := range prices {
			if strings.Contains(class, device) {
				own = max(own, p)
			}
		}
		if own == 0 || price != 0 && own != price {
			return 0
		}
		price = own
	}
	return price
}

// snapshotOf returns an ID of the findings in any order: stored findings may be older than a change in the order of the
// file's blocks.
func snapshotOf(found []findings.Findings) (string, error) {
	var lines []string
	var err error
	add := func(v any) {
		text, failed := json.Marshal(v)
		lines, err = append(lines, string(text)), errors.Join(err, failed)
	}
	for _, f := range found {
		add([]any{f.Compare, f.Universe})
		for i := range f.Comparisons {
			add(f.Comparisons[i])
		}
		for i := range f.Measurements {
			add([]any{f.Compare, f.Measurements[i]})
		}
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:6]), err
}
