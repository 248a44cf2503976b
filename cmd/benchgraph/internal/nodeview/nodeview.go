// Package nodeview shows a node, as JSON and as text.
package nodeview

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/image"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// Node is the content of show.
type Node struct {
	Format    string               `json:"format"`
	Address   string               `json:"address"`
	Kind      string               `json:"kind"`
	Action    engine.Action        `json:"action"`
	Word      engine.Action        `json:"-"` // the action for people
	Reason    string               `json:"reason"`
	Key       string               `json:"key"`
	Place     string               `json:"place"`
	Needs     []string             `json:"needs"`
	Users     []string             `json:"users"`
	Resources view.Resources       `json:"resources"`
	Estimate  float64              `json:"estimate_s"`
	Result    *Result              `json:"result"`
	Record    json.RawMessage      `json:"record,omitempty"` // record of a trial or an image
	Attempts  []Attempt            `json:"attempts"`
	Runs      []results.Run        `json:"runs,omitempty"` // of a benchmark: the runs that measured its candidate
	Samples   []sample.Measurement `json:"samples"`
	Alone     bool                 `json:"alone,omitempty"` // its blocks are its own, and never compared
	Origin    *engine.Origin       `json:"origin,omitempty"`
	About     []view.Diagnostic    `json:"diagnostics"` // warnings about the file
}

// Result is the stored result of a node.
type Result struct {
	Digest   string       `json:"digest"`
	MadeBy   string       `json:"made_by"` // address of the node that made it first
	Created  time.Time    `json:"created"`
	Duration float64      `json:"duration_s"`
	Bytes    int64        `json:"bytes"`
	Dir      string       `json:"dir"`
	Files    []cache.File `json:"files"`
}

// Attempt is an attempt at a node, with the path of its log.
type Attempt struct {
	journal.Attempt
	Duration float64 `json:"duration_s"`
	Log      string  `json:"log"`
	Current  bool    `json:"current"` // has the present inputs of the node, or made the result
}

// Text writes a node for people.
func (v *Node) Text(w io.Writer, style view.Style) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-10s %s\n", name, view.Clean(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintf(w, "%s\n", style.Bold(view.Clean(v.Address)))
	line("declared", "%s", v.Place)
	line("state", "%s: %s", v.Word, v.Reason)
	if v.Alone {
		line("measured", "alone: in blocks without the other variants, which are never compared")
	}
	line("key", "%s", v.Key)
	if v.Origin != nil {
		line("origin", "%s", view.Origin(v.Origin, true))
	}
	for _, n := range v.Needs {
		line("needs", "%s", n)
	}
	for _, n := range v.Users[:min(len(v.Users), 10)] {
		line("used by", "%s", n)
	}
	if rest := len(v.Users) - 10; rest > 0 {
		line("used by", "%d more", rest)
	}
	if r := v.Result; r != nil {
		line("result", "%s, %s, %s, made by %s in %s", r.Created.Local().Format(time.DateTime),
			view.Count(len(r.Files), "file"), view.Bytes(r.Bytes),
			r.MadeBy, printable.Duration(time.Duration(r.Duration*float64(time.Second))))
		line("digest", "%s", r.Digest)
		line("files", "%s", r.Dir)
	}
	for i, text := range image.Summary(v.Record) {
		name := "image"
		if i > 0 {
			name = ""
		}
		line(name, "%s", text)
	}
	for _, row := range sample.Summary(v.Record) {
		line(row[0], "%s", row[1])
	}
	for i, t := range v.Attempts {
		how := "succeeded"
		if t.Failure != nil {
			how = "failed: " + t.Failure.Message
		}
		if len(t.Devices) > 0 {
			how += " on " + strings.Join(t.Devices, ", ")
		}
		if !t.Current {
			how = "with other inputs than now, " + how
		}
		line(fmt.Sprintf("attempt %d", i+1), "%s in run %s, %s, %s", t.Start.Local().Format(time.DateTime), t.Run,
			printable.Duration(t.Attempt.Duration), how)
		if f := t.Failure; f != nil {
			for _, more := range []struct {
				name, text string
			}{{"class", view.Class(f)}, {"evidence", f.Evidence}, {"remedy", f.Remedy}, {"log", t.Log}} {
				if more.text != "" {
					line("  "+more.name, "%s", more.text)
				}
			}
		}
	}
	for _, r := range v.Runs {
		for _, blocks := range r.Blocks {
			line(fmt.Sprintf("run %d", r.Number), "%s measured it in %s", r.Name, view.Count(blocks, "block"))
		}
	}
	for _, m := range v.Samples {
		block := fmt.Sprintf("block %d", m.Block)
		if m.Candidate != "" {
			block += ", " + m.Candidate
		}
		if m.Phase != "" {
			block += ", " + m.Phase
		}
		line("sample", "%s: %s = %g %s (%s)", block, m.Metric, m.Value, m.Unit, m.Hardware)
	}
}
