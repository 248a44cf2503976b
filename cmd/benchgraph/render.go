package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/internal/judge"
	"github.com/benchgraph/benchgraph/internal/sample"
	"github.com/benchgraph/benchgraph/report"
	"github.com/benchgraph/benchgraph/stats"
)

// render makes the files of a report. A format that this version cannot write yet is left out: the others are not held
// up by it.
func render(found []judge.Findings, name string, formats []string) (map[string][]byte, error) {
	doc, err := document(found, name)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, format := range formats {
		made, err := report.Render(doc, format)
		var unavailable *report.UnavailableError
		if errors.As(err, &unavailable) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("report %s as %s: %w", name, format, err)
		}
		for file, text := range made {
			files[file] = text
		}
	}
	return files, nil
}

// document is what findings are as a report. It holds nothing that changes while the findings do not.
func document(found []judge.Findings, title string) (report.Document, error) {
	id, err := snapshotOf(found)
	if err != nil {
		return report.Document{}, err
	}
	doc := report.Document{Title: title, Snapshot: report.Snapshot{ID: id, Version: version}}
	better := map[string]string{}
	hardware := map[string]bool{}
	for _, f := range found {
		doc.Universe += f.Universe
		doc.Comparisons = append(doc.Comparisons, f.Comparisons...)
		for _, row := range f.Comparisons {
			if row.Better != "" {
				better[row.Metric] = row.Better
			}
			// A candidate that several benchmarks would have measured is left out once.
			skip := report.Skip{Address: row.Candidate, Reason: row.Reason}
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
			doc.Measurements = append(doc.Measurements, report.Measurement{
				Benchmark: m.Benchmark, Commit: m.Commit, Candidate: m.Candidate, Block: m.Block, Order: m.Position, Metric: m.Metric,
				Value: m.Value, Unit: m.Unit, Better: better[m.Metric], Start: start, Seed: m.Seed, DeviceClass: m.Hardware,
			})
		}
	}
	doc.Hardware = sortedKeys(hardware)
	return doc, nil
}

// snapshotOf names what was found, in whatever order: findings that are stored may be from before the blocks of the file
// changed their places.
func snapshotOf(found []judge.Findings) (string, error) {
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
