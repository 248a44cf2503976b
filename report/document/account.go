package document

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec/recorded"
)

// Commit is a commit under study.
type Commit struct {
	Name   string `json:"commit"`
	Title  string `json:"title"`
	Rev    string `json:"rev"`
	Parent string `json:"parent"`
	Model  string `json:"-"` // its parameter model
}

// State is the state of a variant of a commit in a benchmark; the baseline is a variant, too.
type State struct {
	Benchmark string `json:"benchmark"`
	Commit    string `json:"commit"`
	Variant   string `json:"variant"`
	Candidate string `json:"candidate"`
	Baseline  bool   `json:"baseline"`
	GPUs      int    `json:"gpus"`
	State     string `json:"state"` // measured, or an outcome without figures
	Reason    string `json:"reason"`
	Blocks    int    `json:"blocks"`
}

const Measured = "measured"

// Failed is a failed node, or a candidate that failed within a block.
type Failed struct {
	Address   string
	Commit    string // empty: the node belongs to no commit
	Candidate string // empty: no single candidate
	failure.Failure
	Log  string        // path of the complete log
	Took time.Duration // 0: not recorded
}

// MarshalJSON writes null for unknown values.
func (f Failed) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Address   string        `json:"address"`
		Commit    *string       `json:"commit"`
		Candidate *string       `json:"candidate"`
		Class     failure.Class `json:"class"`
		Stage     *string       `json:"stage"`
		Rule      *string       `json:"rule"` // null: undiagnosed
		Message   *string       `json:"message"`
		Evidence  *string       `json:"evidence"`
		Log       *string       `json:"log"`
		Remedy    *string       `json:"remedy"`
		Cost      *float64      `json:"cost_s"` // seconds of the attempt
	}{
		f.Address, known(f.Commit), known(f.Candidate), f.Class, known(f.Stage), known(f.Rule), known(f.Message),
		known(f.Evidence), known(f.Log),
		known(f.Remedy), Seconds(f.Took),
	})
}

// Cost is the cost of the attempts in the journal.
type Cost struct {
	Attempts int
	Lost     int           // failed attempts
	Wall     time.Duration // sum over all attempts; 0: not recorded
	GPUTime  time.Duration // devices × time
	LostGPU  time.Duration // part of GPUTime in failed attempts
	Money    float64       // in the currency of the file's cost block; 0: no price is declared
	PerBlock time.Duration // mean time of a block; 0: no measured block
}

// MarshalJSON writes null for unknown values.
func (c Cost) MarshalJSON() ([]byte, error) {
	document := struct {
		Attempts *int     `json:"attempts"`
		Failed   *int     `json:"failed_attempts"`
		Wall     *float64 `json:"wall_s"`
		GPUHours *float64 `json:"gpu_hours"`
		Lost     *float64 `json:"lost_gpu_hours"` // in failed attempts
		Money    *float64 `json:"money"`
		PerBlock *float64 `json:"block_s"`
		From     string   `json:"from"` // always "records": no value is an estimate
	}{Wall: Seconds(c.Wall), PerBlock: Seconds(c.PerBlock), From: "records"}
	if c.Attempts > 0 {
		gpu, lost := c.GPUTime.Hours(), c.LostGPU.Hours()
		document.Attempts, document.Failed, document.GPUHours, document.Lost = &c.Attempts, &c.Lost, &gpu, &lost
	}
	if c.Money > 0 {
		document.Money = &c.Money
	}
	return json.Marshal(document)
}

func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Seconds returns a time in seconds; nil: not known.
func Seconds(d time.Duration) *float64 {
	if d <= 0 {
		return nil
	}
	s := d.Seconds()
	return &s
}

// Availability partitions the declared measurements, one for each benchmark and commit, by the variants that have
// figures.
func Availability(states []State) []recorded.Count {
	type cell struct{ benchmark, commit string }
	have, all := map[cell][]string{}, map[cell]int{}
	var order []cell
	for _, s := range states {
		at := cell{s.Benchmark, s.Commit}
		if all[at] == 0 {
			order = append(order, at)
		}
		all[at]++
		if s.State == Measured {
			have[at] = append(have[at], s.Variant)
		}
	}
	counts := map[string]int{}
	for _, at := range order {
		slices.Sort(have[at])
		counts[recorded.Pattern(have[at], all[at])]++
	}
	return recorded.Partition(counts, len(order))
}

// DeviceCount counts the members that need this many devices, and those of them with figures.
type DeviceCount struct {
	GPUs     int `json:"gpus"`
	Measured int `json:"measured"`
	Of       int `json:"of"`
}

// ByDevices counts the members with figures by the number of devices that they need.
func ByDevices(states []State) []DeviceCount {
	at := map[int]*DeviceCount{}
	for _, s := range states {
		if at[s.GPUs] == nil {
			at[s.GPUs] = &DeviceCount{GPUs: s.GPUs}
		}
		at[s.GPUs].Of++
		if s.State == Measured {
			at[s.GPUs].Measured++
		}
	}
	var list []DeviceCount
	for _, d := range at {
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b DeviceCount) int { return cmp.Compare(a.GPUs, b.GPUs) })
	return list
}

// FailureKind is a group of failures with the same class, stage and rule.
type FailureKind struct {
	Class    failure.Class `json:"class"`
	Stage    *string       `json:"stage"`
	Rule     *string       `json:"rule"`  // null: undiagnosed
	Count    int           `json:"count"` // number of failures
	Commits  []string      `json:"commits"`
	Evidence *string       `json:"evidence"` // of the first failure
	Remedy   *string       `json:"remedy"`
	Cost     *float64      `json:"cost_s"` // of the failures with a recorded time
}

// FailureKinds groups failures by class, stage and rule, the largest group first.
func FailureKinds(failures []Failed) []FailureKind {
	type kind struct{ class, stage, rule string }
	at := map[kind]*FailureKind{}
	var order []kind
	for _, f := range failures {
		k := kind{string(f.Class), f.Stage, f.Rule}
		if at[k] == nil {
			at[k] = &FailureKind{Class: f.Class, Stage: known(f.Stage), Rule: known(f.Rule), Commits: []string{},
				Evidence: known(f.Evidence), Remedy: known(f.Remedy)}
			order = append(order, k)
		}
		sum := at[k]
		sum.Count++
		if f.Commit != "" && !slices.Contains(sum.Commits, f.Commit) {
			sum.Commits = append(sum.Commits, f.Commit)
		}
		if s := Seconds(f.Took); s != nil {
			total := *s
			if sum.Cost != nil {
				total += *sum.Cost
			}
			sum.Cost = &total
		}
	}
	list := make([]FailureKind, 0, len(order))
	for _, k := range order {
		list = append(list, *at[k])
	}
	slices.SortStableFunc(list, func(a, b FailureKind) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

// Machines returns the classes of the machines that measured, in words: if there are several, each with its
// benchmarks.
func (p *Counted) Machines() []string {
	if len(p.Hardware) < 2 {
		return p.Hardware
	}
	benchmarks := map[string]map[string]bool{}
	for _, m := range p.Measurements {
		if benchmarks[m.DeviceClass] == nil {
			benchmarks[m.DeviceClass] = map[string]bool{}
		}
		benchmarks[m.DeviceClass][m.Benchmark] = true
	}
	lines := make([]string, len(p.Hardware))
	for i, class := range p.Hardware {
		lines[i] = class + ": measured " + strings.Join(slices.Sorted(maps.Keys(benchmarks[class])), ", ")
	}
	return lines
}

// TitleOf returns the title of a commit; empty if it has none.
func (p *Counted) TitleOf(name string) string {
	if i, ok := p.Places[name]; ok {
		return p.Commits[i].Title
	}
	return ""
}
