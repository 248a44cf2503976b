package watch

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/forecast"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/stats"
)

// progress is the state of an apply, from its plan and its events.
type progress struct {
	running map[string]*runningNode
	ended   map[string]bool          // by address
	planned map[string]time.Duration // estimates of nodes to run that have not ended, by address
	total   int
	cached  int // nodes that ended as cached
	failed  int // nodes that ended as failed
	begun   time.Time
	waits   string // the last reason to wait that the apply gave; empty: a node has started since

	learned  map[string]took    // durations of nodes in this apply, by kin
	groups   map[string]*blocks // by benchmark and commit
	outcomes map[string]string  // by compare, benchmark and candidate
}

// took is the sum of the durations of n nodes.
type took struct {
	n   int
	sum time.Duration
}

// blocks has the blocks of one commit in one benchmark.
type blocks struct {
	benchmark, commit string
	planned           map[string]bool            // by address: whether the block has a result
	better, baseline  string                     // from the samples
	values            map[string]map[int]float64 // by variant and block
}

func newProgress(p *engine.Plan) progress {
	l := progress{running: map[string]*runningNode{}, ended: map[string]bool{}, planned: map[string]time.Duration{},
		total: len(p.Steps), begun: time.Now(),
		learned: map[string]took{}, groups: map[string]*blocks{}, outcomes: map[string]string{}}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Action == engine.Run {
			l.planned[s.Node.Address] = s.Estimate
		}
		if g := l.group(s.Node.Address); g != nil {
			_, stored := s.Stored()
			g.planned[s.Node.Address] = stored
		}
	}
	return l
}

// group returns the group of a trial; nil for any other node.
func (l *progress) group(address string) *blocks {
	at, err := hclspec.ParseAddress(address)
	if err != nil || at.Kind != "trial" {
		return nil
	}
	commit, _ := at.Trial()
	key := at.Name + " " + commit
	if l.groups[key] == nil {
		l.groups[key] = &blocks{benchmark: at.Name, commit: commit, planned: map[string]bool{},
			values: map[string]map[int]float64{}}
	}
	return l.groups[key]
}

func (l *progress) note(e engine.Event) {
	switch e.Type {
	case engine.NodeStart:
		l.waits = ""
		l.running[e.Address] = &runningNode{address: e.Address, since: e.Time, log: e.Log}
		if g := l.group(e.Address); g != nil {
			g.planned[e.Address] = false
		}
	case engine.NodeProgress:
		if n := l.running[e.Address]; n != nil {
			n.phase = e.Phase
		}
	case engine.LeaseGranted:
		if n := l.running[e.Address]; n != nil {
			devices, _ := e.Data["devices"].([]string)
			n.devices, n.since, n.queued = len(devices), e.Time, false
		}
	case engine.SampleTaken:
		if g := l.group(e.Address); g != nil {
			g.take(e.Data)
		}
	case engine.VerdictMade:
		l.outcomes[dataText(e.Data, "compare")+" "+dataText(e.Data, "benchmark")+" "+dataText(e.Data,
			"candidate")] = dataText(e.Data, "outcome")
	case engine.Note:
		what, waits := strings.CutPrefix(e.Reason, engine.Waiting)
		if n := l.running[e.Address]; waits && n != nil {
			n.queued = true
		} else if waits {
			l.waits = what
		}
	case engine.NodeDone, engine.NodeFailed, engine.NodeCached, engine.NodeSkipped:
		l.end(e)
	}
	l.total = max(l.total, len(l.ended)+len(l.running))
}

func (l *progress) end(e engine.Event) {
	delete(l.running, e.Address)
	if e.Type == engine.NodeDone {
		for _, kin := range kin(e.Address) {
			t := l.learned[kin]
			l.learned[kin] = took{t.n + 1, t.sum + e.Duration}
		}
		if g := l.group(e.Address); g != nil {
			g.planned[e.Address] = true
		}
	}
	if e.Retrying {
		return
	}
	if !l.ended[e.Address] {
		switch e.Type {
		case engine.NodeCached:
			l.cached++
		case engine.NodeFailed:
			l.failed++
		}
	}
	l.ended[e.Address] = true
	delete(l.planned, e.Address)
}

// kin returns the names of groups of nodes whose durations predict that of a node, the nearest first: the blocks of the
// same commit, and all nodes of the same block of the file.
func kin(address string) []string {
	block, _, _ := strings.Cut(address, "[")
	group, _, numbered := strings.Cut(address, "#")
	if !numbered {
		return []string{block}
	}
	return []string{group, block}
}

// estimate returns how long a node takes: by its kin in this apply, or else by the plan; 0 if unknown.
func (l *progress) estimate(address string) time.Duration {
	for _, kin := range kin(address) {
		if t := l.learned[kin]; t.n > 0 {
			return t.sum / time.Duration(t.n)
		}
	}
	return l.planned[address]
}

// left returns the time left if as many nodes as now run at once: about 3 min left. If the duration of some nodes is
// unknown, it is "at least". It returns "" if nothing is known.
func (l *progress) left() string {
	var sum, longest time.Duration
	word := "about "
	for address := range l.planned {
		estimate := l.estimate(address)
		if estimate == 0 && !momentary(address) {
			word = "at least "
		}
		switch n := l.running[address]; {
		case n == nil:
		case n.queued: // nobody knows for how long
			word = "at least "
		default:
			estimate = max(0, estimate-time.Since(n.since))
		}
		sum += estimate
		longest = max(longest, estimate)
	}
	if sum == 0 {
		return ""
	}
	return word + printable.Duration(view.Roughly(max(longest, sum/time.Duration(max(1, len(l.running)))))) + " left"
}

// busy returns how many nodes run, and how many are queued.
func (l *progress) busy() (running, queued int) {
	for _, n := range l.running {
		if n.queued {
			queued++
		}
	}
	return len(l.running) - queued, queued
}

// momentary reports whether a node only reads results.
func momentary(address string) bool {
	kind, _, _ := strings.Cut(address, ".")
	return forecast.ReadsOnly(kind)
}

// verdicts counts the outcomes so far: 3 win, 1 tie.
func (l *progress) verdicts() string {
	counts := map[string]int{}
	for _, outcome := range l.outcomes {
		counts[outcome]++
	}
	var parts []string
	for _, o := range stats.Outcomes() {
		if n := counts[string(o)]; n > 0 && o.Judged() {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	return strings.Join(parts, ", ")
}

// take takes in a sample of the primary metric.
func (g *blocks) take(data map[string]any) {
	value, ok := data["value"].(float64)
	block, numbered := data["block"].(int)
	_, variant, named := strings.Cut(dataText(data, "candidate"), "/")
	if !ok || !numbered || !named {
		return
	}
	if baseline, _ := data["baseline"].(bool); baseline {
		g.baseline = variant
	}
	g.better = cmp.Or(dataText(data, "better"), g.better)
	if g.values[variant] == nil {
		g.values[variant] = map[int]float64{}
	}
	g.values[variant][block] = value
}

// name returns the commit with the number of its blocks: 22d33bac 5/7 blocks.
func (g *blocks) name(withBenchmark bool) string {
	done := 0
	for _, stored := range g.planned {
		if stored {
			done++
		}
	}
	text := cmp.Or(g.commit, g.benchmark)
	if withBenchmark && g.commit != "" {
		text += " " + g.benchmark
	}
	return fmt.Sprintf("%s %d/%d blocks", text, done, len(g.planned))
}

// soFar returns how each candidate compares with the baseline, by the blocks of this apply: human ×1.03 so far. It
// returns "" before there is a block of both, or if nothing tells which direction is better.
func (g *blocks) soFar() string {
	var parts []string
	for _, variant := range slices.Sorted(maps.Keys(g.values)) {
		sum, n := 0.0, 0
		for block, value := range g.values[variant] {
			if against := g.values[g.baseline][block]; variant != g.baseline && value > 0 && against > 0 {
				sum, n = sum+math.Log(value/against), n+1
			}
		}
		switch {
		case n == 0:
		case g.better == stats.Lower:
			parts = append(parts, fmt.Sprintf("%s ×%.2f", variant, math.Exp(-sum/float64(n))))
		case g.better == stats.Higher:
			parts = append(parts, fmt.Sprintf("%s ×%.2f", variant, math.Exp(sum/float64(n))))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + " so far"
}
