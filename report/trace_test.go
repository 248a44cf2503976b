package report

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/report/document"

	"pgregory.net/rapid"
)

// Whatever ran when, nothing overlaps on a track, each attempt is on a track, and each wait ends where its attempt
// begins.
func TestNothingOverlapsInATrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
		var doc document.Document
		free := map[string]time.Time{} // by device, from when on it is free
		for range rapid.IntRange(0, 20).Draw(t, "attempts") {
			at := func(from time.Time, name string) time.Time {
				return from.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, name)) * time.Millisecond)
			}
			a := document.Attempt{Run: "r", Address: rapid.SampledFrom([]string{"wheel.a", "trial.b",
				"x\x1b[31m"}).Draw(t,
				"address"), Number: 1, State: document.AttemptDone, CPUs: rapid.IntRange(0, 3).Draw(t, "cpus")}
			a.Ready = at(begin, "ready")
			a.Start = at(a.Ready, "start")
			if device := rapid.SampledFrom([]string{"", "GPU-1", "GPU-2"}).Draw(t, "device"); device != "" {
				a.Devices = []string{device}
				if free[device].After(a.Start) {
					a.Start = free[device]
				}
			}
			a.End = at(a.Start, "end").Add(time.Millisecond)
			for _, d := range a.Devices {
				free[d] = a.End
			}
			doc.Attempts = append(doc.Attempts, a)
		}
		files, err := Render(doc, "trace")
		if err != nil {
			t.Fatal(err)
		}
		var trace struct {
			Events []struct {
				Ph       string
				Cat      string
				Ts, Dur  float64
				Pid, Tid int
			} `json:"traceEvents"`
		}
		if err := json.Unmarshal(files["trace.json"], &trace); err != nil {
			t.Fatal(err)
		}
		tracks := map[[2]int][][2]float64{}
		named := map[[2]int]bool{}
		ran := 0
		for _, e := range trace.Events {
			track := [2]int{e.Pid, e.Tid}
			if e.Ph == "M" {
				named[track] = true
				continue
			}
			if !named[track] || e.Ts < 0 {
				t.Fatalf("%+v is on a track without a name, or before all others", e)
			}
			if e.Cat != "wait" {
				ran++
			}
			tracks[track] = append(tracks[track], [2]float64{e.Ts, e.Ts + e.Dur})
		}
		if ran < len(doc.Attempts) {
			t.Fatalf("%d of %d attempts are shown", ran, len(doc.Attempts))
		}
		for track, slicesOf := range tracks {
			slices.SortFunc(slicesOf, func(a, b [2]float64) int { return int(a[0] - b[0]) })
			for i := 1; i < len(slicesOf); i++ {
				if slicesOf[i][0] < slicesOf[i-1][1]-0.01 {
					t.Fatalf("on track %v, %v begins within %v", track, slicesOf[i], slicesOf[i-1])
				}
			}
		}
	})
}
