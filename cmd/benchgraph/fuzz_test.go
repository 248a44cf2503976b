package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// A run log is written by another process, and may be cut off anywhere.
func FuzzRunLog(f *testing.F) {
	f.Add([]byte(`{"type":"node_start","time":"2024-01-01T00:00:00Z","address":"task.a","attempt":1,"log":"l"}` + "\n" +
		`{"type":"node_progress","address":"task.a","phase":"warmup"}` + "\n" +
		`{"type":"node_start","address":"task.b"}` + "\n" +
		`{"type":"node_done","address":"task.a"}` + "\n" + `{"type":"node_st`))
	f.Add([]byte("null\n[]\n{\"time\":1}\n\xff\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		fuzzing.Frugal(t, len(text), func() {
			starts := bytes.Count(text, []byte("\n")) + 1
			if nodes := runlog.Read(bytes.NewReader(text)).Running; len(nodes) > starts {
				t.Fatalf("%d nodes run after %d lines", len(nodes), starts)
			}
		})
	})
}

// A plan file may come from anywhere. Whatever it has, it is refused, or found to differ from the plan that is made
// now.
func FuzzPlanFile(f *testing.F) {
	seed, err := json.Marshal(planFile{Type: planFileType, Format: view.Format,
		Outline: view.Outline{Nodes: []view.Planned{{Address: "task.a", Action: engine.Run}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(strings.Replace(string(seed), "task.a", `\u001b[2Jtask.\u202e`, 1)))
	f.Add([]byte("null"))
	graph, err := engine.NewGraph(nil)
	if err != nil {
		f.Fatal(err)
	}
	empty, err := engine.NewPlan(context.Background(), graph, engine.PlanOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		fuzzing.Frugal(t, len(text), func() {
			file, err := parsePlanFile("plan", text)
			if err != nil {
				return
			}
			err = file.check(empty, func(*engine.Step) string { return "" })
			if (err == nil) != (len(file.Nodes) == 0) {
				t.Fatalf("%d nodes are compared with none: %v", len(file.Nodes), err)
			}
		})
	})
}
