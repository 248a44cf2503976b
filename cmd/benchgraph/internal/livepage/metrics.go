package livepage

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// metrics writes metrics in the Prometheus text format, version 0.0.4.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	s.keeper.look()
	results, _ := s.keeper.now()
	at, _ := s.tail.now()
	var e exposition
	applying := 0.0
	if at.held {
		applying = 1
	}
	e.family("benchgraph_applying", "gauge", "1 while an apply runs.")
	e.sample("benchgraph_applying", applying)
	e.family("benchgraph_run_nodes", "gauge", "Nodes of the last apply, by how they stand.")
	running := len(at.state.Running)
	if !at.held {
		running = 0
	}
	e.sample("benchgraph_run_nodes", float64(running), "state", "running")
	e.sample("benchgraph_run_nodes", float64(at.count("done")), "state", "done")
	e.sample("benchgraph_run_nodes", float64(at.count("failed")), "state", "failed")
	e.family("benchgraph_run_samples", "gauge", "Samples of the last apply, by whether they count.")
	e.sample("benchgraph_run_samples", float64(at.state.Samples), "counts", "yes")
	e.sample("benchgraph_run_samples", float64(at.state.Invalid), "counts", "no")
	if !at.state.Last.IsZero() {
		e.family("benchgraph_run_last_event_timestamp_seconds", "gauge", "When the last apply told something last.")
		e.sample("benchgraph_run_last_event_timestamp_seconds", seconds(at.state.Last))
	}
	e.family("benchgraph_ended_nodes_total", "counter",
		"Ends of nodes, done or failed, since this server began, and in the run that it found.")
	e.sample("benchgraph_ended_nodes_total", float64(at.ends))
	e.family("benchgraph_event_clients", "gauge", "Clients that follow the events.")
	e.sample("benchgraph_event_clients", float64(s.clients.Load()))
	e.family("benchgraph_results_failed", "gauge", "1 when the results could not be read the last time.")
	e.sample("benchgraph_results_failed", map[bool]float64{true: 1}[results.problem != nil])
	if results.results != nil {
		e.family("benchgraph_nodes", "gauge", "Nodes by state, as the page counts them.")
		for _, state := range s.states(results, at) {
			e.sample("benchgraph_nodes", float64(state.Count), "state", state.Name)
		}
		e.results(results)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	packed(w, r, []byte(e.text.String()))
}

// exposition builds the text.
type exposition struct{ text strings.Builder }

// results writes metrics about stored results.
func (e *exposition) results(s shown) {
	e.family("benchgraph_results_timestamp_seconds", "gauge", "When the results were read.")
	e.sample("benchgraph_results_timestamp_seconds", seconds(s.at))
	e.family("benchgraph_results_reading_seconds", "gauge", "How long it took to read the results.")
	e.sample("benchgraph_results_reading_seconds", s.took.Seconds())
	type key struct{ compare, outcome string }
	counts := map[key]int{}
	var order []key
	for i := range s.results.Document.Comparisons {
		c := &s.results.Document.Comparisons[i]
		if !c.Primary {
			continue
		}
		k := key{c.Compare, string(c.Outcome)}
		if counts[k] == 0 {
			order = append(order, k)
		}
		counts[k]++
	}
	e.family("benchgraph_candidates", "gauge", "Rows of each compare, by outcome.")
	for _, k := range order {
		e.sample("benchgraph_candidates", float64(counts[k]), "compare", k.compare, "outcome", k.outcome)
	}
	cost := s.results.Document.Cost
	e.family("benchgraph_attempts", "gauge", "Attempts that the journal holds, by how they ended.")
	e.sample("benchgraph_attempts", float64(cost.Attempts-cost.Lost), "result", "succeeded")
	e.sample("benchgraph_attempts", float64(cost.Lost), "result", "failed")
	e.family("benchgraph_gpu_seconds", "gauge", "Time of devices that these attempts took, by how they ended.")
	e.sample("benchgraph_gpu_seconds", (cost.GPUTime - cost.LostGPU).Seconds(), "result", "succeeded")
	e.sample("benchgraph_gpu_seconds", cost.LostGPU.Seconds(), "result", "failed")
}

func (e *exposition) family(name, kind, help string) {
	fmt.Fprintf(&e.text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// sample writes one number; labels are alternating names and values.
func (e *exposition) sample(name string, value float64, labels ...string) {
	e.text.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		fmt.Fprintf(&e.text, `%c%s="%s"`, "{,"[min(i, 1)], labels[i], quoted(labels[i+1]))
	}
	if len(labels) > 0 {
		e.text.WriteByte('}')
	}
	fmt.Fprintf(&e.text, " %g\n", value)
}

// quoted escapes a text as the value of a label.
func quoted(text string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
