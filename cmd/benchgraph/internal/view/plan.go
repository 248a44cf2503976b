package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/forecast"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/tasks"
)

// Limits above which lines of a plan are grouped.
const (
	mostInstances = 8  // lines of one block with one action and one reason
	mostReasons   = 8  // lines of one block with one action
	mostBlocks    = 40 // lines of one kind with one action
)

// Failed is the word for a node that failed and is not retried. Its action is Blocked.
const Failed engine.Action = "failed"

// Word returns the word for a node in a plan, the same as in status: its action, or a word for its earlier failure.
func Word(s *engine.Step) engine.Action {
	switch {
	case s.Action != engine.Blocked || s.Failure == nil:
		return s.Action
	case tasks.KnownIssue(s.Failure.Failure):
		return engine.Skip
	}
	return Failed
}

// symbol returns the sign of an action, which repeats the word beside it.
func symbol(a engine.Action) (sign, color string) {
	switch a {
	case engine.Run:
		return "+", Green
	case engine.Cached:
		return "=", Dim
	case engine.Skip:
		return "-", Yellow
	case engine.Blocked, Failed:
		return "!", Red
	}
	return "?", ""
}

// Outline is the part of a plan that a plan file keeps.
type Outline struct {
	Nodes    []Planned `json:"nodes"` // in order of execution
	Notes    []string  `json:"notes,omitempty"`
	Sum      string    `json:"sum"`
	Critical string    `json:"critical_path,omitempty"`
}

// Planned is a node of a plan.
type Planned struct {
	Address  string        `json:"address"`
	Action   engine.Action `json:"action"`
	Key      cache.Key     `json:"key"`
	Reason   string        `json:"reason"`
	Estimate float64       `json:"estimate_s"` // 0: unknown
	// ID of the attempt whose outcome the run replaces; empty: none
	Follows string `json:"follows,omitempty"`
	// word for the action, if it differs
	Word engine.Action `json:"word,omitempty"`
}

// PlanOutline returns the outline of a plan; verbose adds the rejected sources of wheels.
func PlanOutline(p *engine.Plan, f forecast.Forecast, verbose bool) Outline {
	o := Outline{Sum: Sum(p, f), Critical: critical(f, p), Nodes: slices.Grow([]Planned(nil), len(p.Steps))}
	for i := range p.Steps {
		st := &p.Steps[i]
		o.Nodes = append(o.Nodes, Planned{Address: st.Node.Address, Action: st.Action, Key: st.Key,
			Reason: reason(st, verbose), Estimate: st.Estimate.Seconds()})
		if word := Word(st); word != st.Action {
			o.Nodes[i].Word = word
		}
	}
	if n := len(f.Beside); n > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("Blocks of %s may run at once and disturb each other: quiet = true in a "+
			"benchmark gives each of its blocks the host.", strings.Join(f.Beside[:min(n, 3)], ", ")+more(n-3)))
	}
	for _, r := range f.Resolutions {
		o.Notes = append(o.Notes, r.String())
	}
	return o
}

// more returns a text about the remaining items of a list.
func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// line is one line of a plan: a node, or a group of nodes.
type line struct {
	name   string // address, or the common part of several
	count  int
	action engine.Action
	reason string
	about  time.Duration // estimate; only for a single node
}

// Plan prints a plan: a line for each node or, unless verbose, each group, then notes and sum.
func Plan(w io.Writer, s Style, o Outline, verbose bool) error {
	lines := make([]line, len(o.Nodes))
	for i, n := range o.Nodes {
		lines[i] = line{name: n.Address, count: 1, action: cmp.Or(n.Word, n.Action), reason: n.Reason,
			about: time.Duration(n.Estimate * float64(time.Second))}
	}
	if !verbose {
		lines = draw(lines, mostInstances, func(l line) string { return block(l.name) + "\x00" + elide(l.reason) })
		lines = draw(lines, mostReasons, func(l line) string { return block(l.name) })
		lines = draw(lines, mostBlocks, func(l line) string { kind, _, _ := strings.Cut(l.name, "."); return kind })
	}
	var b strings.Builder
	columns := 0
	for _, l := range lines {
		columns = max(columns, min(Cells(title(l)), 56))
	}
	for _, l := range lines {
		sign, color := symbol(l.action)
		action, name, note := Pad(Clean(string(l.action)), 7), Pad(title(l), columns), "  "+Clean(l.reason)
		if l.about > 0 {
			note += " (about " + printable.Duration(l.about) + ")"
		}
		s.noted(&b, s.Paint(color, sign)+" "+s.Paint(color, action)+"  "+name, Cells(sign+action+name)+3, note, "    ")
	}
	if len(lines) > 0 {
		b.WriteByte('\n')
	}
	for _, note := range o.Notes {
		s.noted(&b, "", 0, Clean(note), "")
	}
	b.WriteString(s.Bold(Clean(o.Sum)) + "\n")
	if o.Critical != "" {
		s.noted(&b, "", 0, Clean(o.Critical), "")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// reason returns the reason of an action, with its executor, and with the origin of the result if there is a choice.
func reason(s *engine.Step, verbose bool) string {
	text := s.Reason
	if x := s.Node.Resources.Queue; x != "" && s.Action == engine.Run {
		text += "; a job of executor " + x
	}
	if s.Node.Origin != nil {
		text += "; " + Origin(s.Node.Origin, verbose)
	}
	return text
}

// Origin describes the source that serves a node and, if verbose, the sources before it that do not.
func Origin(o *engine.Origin, verbose bool) string {
	text := "built here: " + o.Reason
	if o.Serves != "" {
		text = "prebuilt " + strconv.Quote(o.Serves)
		if o.Ancestor != "" {
			text = fmt.Sprintf("served by an ancestor with the same native tree: %s (%s back), %s",
				o.Ancestor[:min(7, len(o.Ancestor))], Count(o.Back, "commit"), text)
		}
	}
	if !verbose || len(o.Passed) == 0 {
		return text
	}
	passed := make([]string, len(o.Passed))
	for i, url := range o.Passed {
		passed[i] = strconv.Quote(url)
	}
	return text + "; passed over: " + strings.Join(passed, ", ")
}

func title(l line) string {
	if l.count == 1 {
		return Clean(l.name)
	}
	return fmt.Sprintf("%s (%s)", Clean(l.name), Number(l.count))
}

// block is an address without its instance key.
func block(address string) string {
	name, _, _ := strings.Cut(address, "[")
	return name
}

// elide removes instance keys and values from a reason, so that the instances of a block share it.
func elide(reason string) string {
	var b strings.Builder
	for i, part := range strings.Split(reason, `"`) {
		if i%2 == 1 {
			part = "…"
		}
		b.WriteString(part)
	}
	return b.String()
}

// draw groups lines with the same action and key if there are more than most of them. The group replaces its first
// line.
func draw(lines []line, most int, key func(line) string) []line {
	type id struct {
		action engine.Action
		key    string
	}
	ids := make([]id, len(lines))
	groups := map[id][]int{}
	for i, l := range lines {
		ids[i] = id{l.action, key(l)}
		groups[ids[i]] = append(groups[ids[i]], i)
	}
	var kept []line
	for i, l := range lines {
		members := groups[ids[i]]
		switch {
		case len(members) <= most:
			kept = append(kept, l)
		case members[0] == i:
			kept = append(kept, together(lines, members, ids[i].key))
		}
	}
	return kept
}

func together(lines []line, members []int, key string) line {
	name, _, exact := strings.Cut(key, "\x00")
	sum := line{name: name, action: lines[members[0]].action, reason: lines[members[0]].reason}
	reasons := map[string]bool{}
	for _, i := range members {
		sum.count += lines[i].count
		reasons[elide(lines[i].reason)] = true
	}
	if !strings.Contains(name, ".") {
		sum.name = name + ".*"
	}
	if exact {
		sum.reason = elide(sum.reason)
	}
	if len(reasons) > 1 {
		sum.reason = fmt.Sprintf("%s; and %s (-verbose lists all)", sum.reason,
			Count(len(reasons)-1, "other reason"))
	}
	return sum
}

// planNode is a node in the JSON of a plan.
type planNode struct {
	Address   string         `json:"address"`
	Kind      string         `json:"kind"`
	Action    string         `json:"action"`
	Reason    string         `json:"reason"`
	Key       string         `json:"key"`
	Needs     []string       `json:"needs"`
	Resources Resources      `json:"resources"`
	Estimate  float64        `json:"estimate_s"` // 0: unknown
	Never     bool           `json:"never,omitempty"`
	Place     string         `json:"place,omitempty"`
	Origin    *engine.Origin `json:"origin,omitempty"` // only of a wheel with prebuilt sources
	// why this machine cannot run the node, in a plan for another machine
	Waits string `json:"waits,omitempty"`
}

// Resources are what a node needs while it runs.
type Resources struct {
	CPUs     int    `json:"cpus"`
	Memory   int64  `json:"memory_bytes,omitempty"`
	Disk     int64  `json:"disk_bytes,omitempty"`
	Ports    int    `json:"ports,omitempty"`
	Quiet    bool   `json:"quiet,omitempty"`
	GPUs     *GPUs  `json:"gpus,omitempty"`
	Executor string `json:"executor,omitempty"` // executor whose job the node is; "": the node runs here
}

// GPUs are the GPUs that a node needs.
type GPUs struct {
	Count  int    `json:"count"`
	Memory int64  `json:"memory_bytes,omitempty"` // of each
	Model  string `json:"model,omitempty"`        // regular expression for the name
}

// ResourcesOf returns the resources of a node.
func ResourcesOf(n *engine.Node) Resources {
	q := n.Resources
	r := Resources{CPUs: q.Takes(), Memory: q.Memory, Disk: q.Disk, Ports: q.Ports, Quiet: q.Quiet, Executor: q.Queue}
	if q.GPUs.Count > 0 {
		r.GPUs = &GPUs{Count: q.GPUs.Count, Memory: q.GPUs.Memory}
		if q.GPUs.Model != nil {
			r.GPUs.Model = q.GPUs.Model.String()
		}
	}
	return r
}

// Needs returns the addresses of all nodes that a node waits for.
func Needs(n *engine.Node) []string {
	needs := []string{}
	for _, list := range [][]*engine.Node{n.Needs, n.Order, n.After} {
		for _, dep := range list {
			if !slices.Contains(needs, dep.Address) {
				needs = append(needs, dep.Address)
			}
		}
	}
	return needs
}

// PlanJSON writes a plan as one JSON document, with forecast, findings and diagnostics.
func PlanJSON(w io.Writer, p *engine.Plan, f forecast.Forecast, found []preflight.Finding,
	diagnostics []Diagnostic) error {
	if found == nil {
		found = []preflight.Finding{}
	}
	nodes := make([]planNode, len(p.Steps))
	for i := range p.Steps {
		s := &p.Steps[i]
		nodes[i] = planNode{s.Node.Address, s.Node.Kind, string(s.Action), s.Reason, s.Key.String(), Needs(s.Node),
			ResourcesOf(s.Node), s.Estimate.Seconds(), s.Never, s.Node.Place, s.Node.Origin, f.Waits[s.Node.Address]}
	}
	counts := p.Counts()
	summary := map[string]any{
		"run": counts[engine.Run], "cached": counts[engine.Cached], "blocked": counts[engine.Blocked],
		"skipped": counts[engine.Skip],
		"build":   f.Build, "measure": f.Measure, "read": f.Read,
		"seconds": f.Wall.Seconds(), "gpu_hours": f.GPUHours, "cost": f.Cost,
		"unknown": f.Unknown,
	}
	if len(f.Executors) > 0 {
		summary["executors"] = f.Executors
	}
	if len(f.Executors) == 1 {
		x := f.Executors[0]
		summary["executor"], summary["jobs"], summary["max_jobs"] = x.Name, x.Jobs, x.MaxJobs
	}
	path := []string{}
	for _, s := range forecast.CriticalPath(p) {
		path = append(path, s.Node.Address)
	}
	doc := map[string]any{"format": Format, "nodes": nodes, "preflight": found, "summary": summary,
		"critical_path": path, "diagnostics": diagnostics,
		"resolution": append([]results.Resolution{}, f.Resolutions...)}
	if f.Machine != "" {
		doc["machine"] = f.Machine
		summary["waiting"] = len(f.Waits)
	}
	return JSON(w, doc)
}

// JSON writes one JSON document.
func JSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(printable.JSON(b.Bytes()))
	return err
}
