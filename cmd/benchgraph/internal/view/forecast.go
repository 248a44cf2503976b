package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/forecast"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// about returns the forecast in a few words, such as "about 31 GPU-h, $122"; empty if nothing is known.
func about(f forecast.Forecast) string {
	var parts []string
	switch {
	case f.GPUHours > 0:
		parts = append(parts, figure(f.GPUHours)+" GPU-h")
	case f.Wall > 0:
		parts = append(parts, printable.Duration(Roughly(f.Wall)))
	}
	if f.Cost > 0 {
		parts = append(parts, "$"+figure(f.Cost))
	}
	if len(parts) == 0 {
		return ""
	}
	word := "about "
	if f.Unknown > 0 {
		word = fmt.Sprintf("at least (%s of unknown duration) ", Number(f.Unknown))
	}
	return word + strings.Join(parts, ", ")
}

// Executors returns a line about the nodes that run as jobs of executors; empty if there are none.
func Executors(f *forecast.Forecast) string {
	var parts []string
	of := " of these nodes run"
	for _, x := range f.Executors {
		if x.Jobs == 0 {
			continue
		}
		text := fmt.Sprintf("%s%s as jobs of executor %s, at most %d at once", Number(x.Jobs), of, Clean(x.Name),
			x.MaxJobs)
		of = "" // only once
		if cost := about(forecast.Forecast{GPUHours: x.GPUHours, Cost: x.Cost}); cost != "" {
			text += " (" + cost + ")"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "; the others here. Time in the queue is not in the forecast."
}

// Roughly rounds a duration to the precision of a forecast.
func Roughly(d time.Duration) time.Duration {
	switch {
	case d > time.Hour:
		return d.Round(time.Minute)
	case d > time.Second:
		return d.Round(time.Second)
	}
	return d
}

// mostNamed is the largest number of nodes of a path in a line.
const mostNamed = 6

// critical returns a line with the chain of nodes that bounds the duration of an apply; empty if there is none.
func critical(f forecast.Forecast, p *engine.Plan) string {
	if f.Wall == 0 {
		return ""
	}
	path := forecast.CriticalPath(p)
	if len(path) < 2 {
		return ""
	}
	var names []string
	var took time.Duration
	for i, s := range path {
		took += s.Estimate
		if i < mostNamed-1 || i == len(path)-1 {
			names = append(names, s.Node.Address)
		} else if i == mostNamed-1 {
			names = append(names, "…")
		}
	}
	if took == 0 {
		return ""
	}
	return fmt.Sprintf("Critical path (%s of about %s): %s", printable.Duration(Roughly(took)),
		printable.Duration(Roughly(f.Wall)), strings.Join(names, " → "))
}

// Sum returns the last line of a plan.
func Sum(p *engine.Plan, f forecast.Forecast) string {
	counts := map[engine.Action]int{}
	for i := range p.Steps {
		counts[Word(&p.Steps[i])]++
	}
	parts := []string{Number(counts[engine.Run]) + " to run"}
	var kinds []string
	for _, k := range []struct {
		n    int
		word string
	}{{f.Build, "build"}, {f.Measure, "measure"}, {f.Read, "read"}} {
		if k.n > 0 {
			kinds = append(kinds, Number(k.n)+" "+k.word)
		}
	}
	if len(kinds) > 0 {
		parts[0] += " (" + strings.Join(kinds, ", ") + ")"
	}
	for _, c := range []struct {
		action engine.Action
		word   string
	}{{engine.Cached, "cached"}, {Failed, "failed"}, {engine.Blocked, "blocked"},
		{engine.Skip, "skipped"}} {
		if n := counts[c.action]; n > 0 {
			parts = append(parts, Number(n)+" "+c.word)
		}
	}
	text := "Plan: " + strings.Join(parts, ", ")
	if words := about(f); words != "" {
		text += "; " + words
	}
	return text + "."
}
