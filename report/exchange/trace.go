package exchange

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/report/document"
)

// Trace writes trace.json in Chrome's trace event format, which Perfetto opens: a track for each device and each
// core, and tracks for waiting nodes.
func Trace(p *document.Counted) (map[string][]byte, error) {
	type event struct {
		Name     string         `json:"name"`
		Category string         `json:"cat,omitempty"`
		Phase    string         `json:"ph"`
		At       float64        `json:"ts"` // microseconds since the first event
		Duration float64        `json:"dur,omitempty"`
		Process  int            `json:"pid"`
		Thread   int            `json:"tid"`
		Args     map[string]any `json:"args,omitempty"`
	}
	const devices, cores, waits = 1, 2, 3
	attempts := byStart(p.Attempts)
	events := []event{}
	name := func(what string, process, thread int, text string) {
		events = append(events, event{Name: what, Phase: "M", Process: process, Thread: thread,
			Args: map[string]any{"name": text}})
	}
	named := map[[2]int]bool{}
	slice := func(process, thread int, track string, from, to time.Time, category string, a document.Attempt) {
		if len(named) == 0 {
			for process, text := range []string{devices: "devices", cores: "cores", waits: "waiting"} {
				if text != "" {
					name("process_name", process, 0, text)
				}
			}
		}
		if !named[[2]int{process, thread}] {
			named[[2]int{process, thread}] = true
			name("thread_name", process, thread, track)
		}
		args := map[string]any{"attempt": a.Number, "state": a.State}
		if a.Message != "" {
			args["class"], args["message"] = printable.Line(a.Class), printable.Line(a.Message)
		}
		begin := attempts[0].Ready
		events = append(events, event{Name: printable.Line(a.Address), Category: category, Phase: "X",
			At: micros(from.Sub(begin)), Duration: max(1, micros(to.Sub(from))),
			Process: process, Thread: thread, Args: args})
	}
	var onCores, waiting lanes
	uuids := map[string]int{}
	for _, a := range attempts {
		kind, _, _ := strings.Cut(a.Address, ".")
		for _, uuid := range a.Devices {
			if _, known := uuids[uuid]; !known {
				uuids[uuid] = len(uuids) + 1
			}
			slice(devices, uuids[uuid], printable.Line(uuid), a.Start, a.End, kind, a)
		}
		for range max(1, a.CPUs) {
			if len(a.Devices) > 0 {
				break
			}
			lane := onCores.reserve(a.Start, a.End)
			slice(cores, lane, fmt.Sprintf("core %d", lane), a.Start, a.End, kind, a)
		}
		if a.Start.Sub(a.Ready) >= time.Millisecond {
			lane := waiting.reserve(a.Ready, a.Start)
			slice(waits, lane, fmt.Sprintf("waiting %d", lane), a.Ready, a.Start, "wait", a)
		}
	}
	text, err := document.Indented(map[string]any{"traceEvents": events, "displayTimeUnit": "ms"})
	return map[string][]byte{"trace.json": text}, err
}

// byStart returns attempts sorted by their earliest possible start.
func byStart(attempts []document.Attempt) []document.Attempt {
	attempts = slices.Clone(attempts)
	slices.SortStableFunc(attempts, func(a, b document.Attempt) int {
		return cmp.Or(a.Ready.Compare(b.Ready), a.Start.Compare(b.Start), cmp.Compare(a.Address, b.Address),
			cmp.Compare(a.Number, b.Number))
	})
	return attempts
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// lanes are tracks without overlapping intervals.
type lanes []time.Time // by track: when it becomes free

// reserve reserves the first track that is free at from until to, and returns its number, from 1.
func (l *lanes) reserve(from, to time.Time) int {
	for i, free := range *l {
		if !free.After(from) {
			(*l)[i] = to
			return i + 1
		}
	}
	*l = append(*l, to)
	return len(*l)
}

// OTel writes otel.json, the spans of the last apply in the JSON of the OpenTelemetry protocol (OTLP): one for the
// apply, with a child for each attempt.
func OTel(p *document.Counted) (map[string][]byte, error) {
	type attribute struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
	type status struct {
		Code    int    `json:"code"`
		Message string `json:"message,omitempty"`
	}
	type span struct {
		Trace      string      `json:"traceId"`
		ID         string      `json:"spanId"`
		Parent     string      `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes"`
		Status     status      `json:"status"`
	}
	const internal, ok, failed = 1, 1, 2
	id := func(bytes int, parts ...string) string {
		sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
		return hex.EncodeToString(sum[:bytes])
	}
	nanos := func(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
	text := func(key, value string) attribute {
		return attribute{key, map[string]any{"stringValue": printable.Line(value)}}
	}
	number := func(key string, value int64) attribute {
		return attribute{key, map[string]any{"intValue": strconv.FormatInt(value, 10)}}
	}
	spans := []span{}
	runs := map[string]*span{}
	for _, a := range byStart(p.Attempts) {
		trace := id(16, a.Run)
		run := runs[a.Run]
		if run == nil {
			run = &span{Trace: trace, ID: id(8, a.Run), Name: "apply", Kind: internal, Start: nanos(a.Ready),
				End: nanos(a.End), Attributes: []attribute{text("benchgraph.run", a.Run)}, Status: status{Code: ok}}
			runs[a.Run] = run
		}
		run.End = max(run.End, nanos(a.End)) // works as text: both have the same number of digits
		kind, _, _ := strings.Cut(a.Address, ".")
		s := span{Trace: trace, ID: id(8, a.Run, a.Address, strconv.Itoa(a.Number)), Parent: run.ID,
			Name: printable.Line(a.Address), Kind: internal, Start: nanos(a.Start), End: nanos(a.End),
			Status: status{Code: ok}}
		s.Attributes = []attribute{text("benchgraph.kind", kind), number("benchgraph.attempt", int64(a.Number)),
			number("benchgraph.waited_ms", a.Start.Sub(a.Ready).Milliseconds()), text("benchgraph.state", a.State)}
		for _, uuid := range a.Devices {
			s.Attributes = append(s.Attributes, text("benchgraph.device", uuid))
		}
		if a.State != document.AttemptDone {
			s.Status = status{failed, printable.Line(cmp.Or(a.Message, a.State))}
			if a.Class != "" {
				s.Attributes = append(s.Attributes, text("benchgraph.failure.class", a.Class))
			}
		}
		spans = append(spans, s)
	}
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		spans = append(spans, *runs[name])
	}
	trace := map[string]any{"resourceSpans": []any{map[string]any{
		"resource": map[string]any{"attributes": []attribute{text("service.name", "benchgraph"),
			text("service.version", p.Snapshot.Version)}},
		"scopeSpans": []any{map[string]any{"scope": map[string]any{"name": "benchgraph"}, "spans": spans}},
	}}}
	made, err := document.Indented(trace)
	return map[string][]byte{"otel.json": made}, err
}
