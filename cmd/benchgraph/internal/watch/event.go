// Package watch shows an apply while it runs: to a person, to a program that reads JSON, or to one with little memory.
package watch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// Watcher receives the events of an apply. After Close, it shows nothing.
type Watcher interface {
	Event(engine.Event)
	Close()
}

// Lines prints events as plain lines. Up-to-date nodes have no line: a line for every node would bury the others.
type Lines struct {
	mu      sync.Mutex
	w       io.Writer
	style   view.Style
	verbose bool
}

// NewLines returns a Lines that writes to w.
func NewLines(w io.Writer, s view.Style, verbose bool) *Lines {
	return &Lines{w: w, style: s, verbose: verbose}
}

// Event writes the lines of one event.
func (l *Lines) Event(e engine.Event) {
	text := eventText(l.style, e, l.verbose)
	if text == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprint(l.w, text)
}

// Close does nothing: lines stay.
func (l *Lines) Close() {}

// eventText returns an event as lines; "" for events that are not shown.
func eventText(s view.Style, e engine.Event, verbose bool) string {
	address := view.Clean(e.Address)
	line := func(color, word, rest string) string {
		return s.Paint(color, view.Pad(word, 8)) + " " + strings.TrimSpace(address+"  "+view.Clean(rest)) + "\n"
	}
	switch e.Type {
	case engine.NodeStart:
		return line(view.Blue, "start", e.Reason)
	case engine.NodeDone:
		took := printable.Duration(e.Duration)
		if e.Queued > time.Second {
			took += ", queued for " + printable.Duration(view.Roughly(e.Queued))
		}
		return line(view.Green, "done", took)
	case engine.NodeCached:
		if !verbose {
			return ""
		}
		return line(view.Dim, "cached", e.Reason)
	case engine.NodeFailed:
		return failedText(s, e)
	case engine.SampleInvalid:
		return line(view.Yellow, "invalid", dataText(e.Data, "candidate")+" block "+dataText(e.Data,
			"block")+": "+e.Failure.Text())
	case engine.FixApplied:
		return line(view.Yellow, "fix", strings.TrimSuffix(dataText(e.Data, "fix")+": "+e.Reason, ": "))
	case engine.VerdictMade:
		of := strings.TrimSpace(dataText(e.Data, "benchmark") + " " + dataText(e.Data, "metric"))
		of = strings.TrimSuffix(of, " "+sample.Undecided)
		return line(view.Strong, "verdict", fmt.Sprintf("%s: %s (%s)", dataText(e.Data, "candidate"),
			dataText(e.Data, "outcome"), cmp.Or(of, "in no benchmark")))
	case engine.Note:
		return line(view.Yellow, "note", e.Reason)
	}
	return ""
}

func dataText(data map[string]any, name string) string {
	if v, ok := data[name]; ok {
		return fmt.Sprint(v)
	}
	return ""
}

// failedText formats a failure in full: the node, the line of evidence, the path of the log, and the remedy.
func failedText(s view.Style, e engine.Event) string {
	if e.Reason == failure.Interrupted {
		return fmt.Sprintf("%s %s  %s\n", s.Paint(view.Yellow, view.Pad("ended", 8)), view.Clean(e.Address),
			view.Clean(e.Reason))
	}
	word, color := "failed", view.Red
	if e.Retrying {
		word, color = "retry", view.Yellow
	}
	var b strings.Builder
	f := e.Failure
	if f == nil {
		f = &failure.Failure{Message: e.Reason}
	}
	fmt.Fprintf(&b, "%s %s  %s", s.Paint(color, view.Pad(word, 8)), view.Clean(e.Address), view.Clean(f.Message))
	if class := view.Class(f); class != "" {
		b.WriteString(" [" + class + "]")
	}
	if e.Retrying {
		b.WriteString("; " + view.Clean(e.Reason))
	}
	b.WriteByte('\n')
	detail := func(name, text string) {
		if text = view.Clean(text); text != "" {
			fmt.Fprintf(&b, "         %s %s\n", s.Paint(view.Dim, name), text)
		}
	}
	if !strings.Contains(f.Message, f.Evidence) {
		detail("|", f.Evidence)
	}
	if !e.Retrying {
		detail("remedy:", f.Remedy)
		detail("log:", e.Log)
	}
	return b.String()
}

// eventJSON is the JSON form of an event: first the fields that all events have, then those of a failure.
type eventJSON struct {
	Type     string   `json:"type"`
	Time     string   `json:"time"`
	Address  string   `json:"address,omitempty"`
	Key      string   `json:"key,omitempty"`
	Attempt  int      `json:"attempt,omitempty"`
	Phase    string   `json:"phase,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Severity string   `json:"severity,omitempty"` // of a diagnostic
	Duration *float64 `json:"duration_s,omitempty"`
	Waited   *float64 `json:"waited_s,omitempty"`
	Queued   float64  `json:"queued_s,omitempty"`
	Class    string   `json:"class,omitempty"`
	Rule     any      `json:"rule,omitempty"` // a text; null for a failure without a rule
	Stage    string   `json:"stage,omitempty"`
	Subject  string   `json:"subject,omitempty"`
	Evidence string   `json:"evidence,omitempty"`
	Message  string   `json:"message,omitempty"`
	Remedy   string   `json:"remedy,omitempty"`
	Retrying bool     `json:"retrying,omitempty"`
	Log      string   `json:"log,omitempty"`
}

// MarshalEvent returns an event as one JSON object, with the data of the task among its fields.
func MarshalEvent(e engine.Event) ([]byte, error) {
	shape := eventJSON{
		Type: string(e.Type), Time: e.Time.Format(time.RFC3339Nano), Address: e.Address, Attempt: e.Attempt,
		Phase: e.Phase, Reason: e.Reason, Log: e.Log, Retrying: e.Retrying}
	if !e.Key.IsZero() {
		shape.Key = e.Key.String()
	}
	if e.Type == engine.NodeDone || e.Type == engine.NodeFailed {
		seconds := e.Duration.Seconds()
		shape.Duration, shape.Queued = &seconds, e.Queued.Seconds()
	}
	if e.Type == engine.NodeStart {
		seconds := e.Duration.Seconds()
		shape.Waited = &seconds
	}
	if f := e.Failure; f != nil {
		shape.Class, shape.Stage, shape.Subject = string(f.Class), f.Stage, f.Subject
		if shape.Rule = f.Rule; f.Rule == "" {
			shape.Rule = (*string)(nil)
		}
		shape.Evidence, shape.Message, shape.Remedy = f.Evidence, f.Message, f.Remedy
	}
	if e.Type == engine.Note { // with the fields of a diagnostic, which other events of this type have
		shape.Severity, shape.Message = "note", e.Reason
	}
	return join(shape, e.Data)
}

// join writes the fields of an object, and then those of data whose names are free.
func join(shape any, data map[string]any) ([]byte, error) {
	own, err := marshal(shape)
	if err != nil || len(data) == 0 {
		return own, err
	}
	var names map[string]json.RawMessage
	if err := json.Unmarshal(own, &names); err != nil {
		return nil, err
	}
	rest := map[string]any{}
	for name, v := range data {
		if _, taken := names[name]; !taken {
			rest[name] = v
		}
	}
	if len(rest) == 0 {
		return own, nil
	}
	more, err := marshal(rest)
	if err != nil {
		return nil, err
	}
	return append(append(own[:len(own)-1], ','), more[1:]...), nil
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return printable.JSON(bytes.TrimRight(b.Bytes(), "\n")), nil
}

// Stream writes events as JSON, one a line: first the version, last a summary.
type Stream struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

// NewStream returns a Stream and writes its first line.
func NewStream(w io.Writer, version string) *Stream {
	s := &Stream{w: w}
	s.Write(map[string]any{"format": view.Format, "type": "version", "version": version,
		"time": time.Now().Format(time.RFC3339Nano)})
	return s
}

// Event writes one event.
func (s *Stream) Event(e engine.Event) {
	text, err := MarshalEvent(e)
	s.line(text, err)
}

// Write writes one object.
func (s *Stream) Write(v any) {
	text, err := marshal(v)
	s.line(text, err)
}

func (s *Stream) line(text []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		_, err = s.w.Write(append(text, '\n'))
	}
	if s.err == nil {
		s.err = err
	}
}

// Close does nothing: the command writes the summary.
func (s *Stream) Close() {}

// Err returns the first error of writing.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Watchers passes events to several watchers.
type Watchers []Watcher

// Event passes an event on to all.
func (ws Watchers) Event(e engine.Event) {
	for _, w := range ws {
		w.Event(e)
	}
}

// Close closes all.
func (ws Watchers) Close() {
	for _, w := range ws {
		w.Close()
	}
}
