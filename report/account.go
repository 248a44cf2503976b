package report

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/stats"
)

// Commit is a commit of the file.
type Commit struct {
	Name   string `json:"commit"`
	Title  string `json:"title"`
	Rev    string `json:"rev"`
	Parent string `json:"parent"`
	Model  string `json:"-"` // its parameter model
}

// State is how one variant of a commit stands in one benchmark, the baseline included.
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

const measured = "measured"

// Failed is one node that failed, or a candidate that failed within a block.
type Failed struct {
	Address   string
	Commit    string // empty: the node belongs to none
	Candidate string // empty: nobody in particular
	failure.Failure
	Log  string        // where the complete log is
	Took time.Duration // 0: not recorded
}

// MarshalJSON writes null for what is not known.
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
		known(f.Remedy), seconds(f.Took),
	})
}

// Cost is what the attempts took that the journal holds.
type Cost struct {
	Attempts int
	Lost     int           // of these, attempts that failed
	Wall     time.Duration // sum over all attempts; 0: not recorded
	GPUTime  time.Duration // devices × time
	LostGPU  time.Duration // of this, in attempts that failed
	Money    float64       // in the currency of the file's cost block; 0: no price is declared for the devices
	PerBlock time.Duration // mean time of a block; 0: no block was measured
}

// MarshalJSON writes null for what is not known.
func (c Cost) MarshalJSON() ([]byte, error) {
	document := struct {
		Attempts *int     `json:"attempts"`
		Failed   *int     `json:"failed_attempts"`
		Wall     *float64 `json:"wall_s"`
		GPUHours *float64 `json:"gpu_hours"`
		Lost     *float64 `json:"lost_gpu_hours"` // in attempts that failed
		Money    *float64 `json:"money"`
		PerBlock *float64 `json:"block_s"`
		From     string   `json:"from"` // records: nothing in it is estimated
	}{Wall: seconds(c.Wall), PerBlock: seconds(c.PerBlock), From: "records"}
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

func seconds(d time.Duration) *float64 {
	if d <= 0 {
		return nil
	}
	s := d.Seconds()
	return &s
}

// count is one line of a partition.
type count struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Of    int    `json:"of"`
}

// availability partitions the measurements that were declared, one for each benchmark and commit, by the variants that
// have figures.
func availability(states []State) []count {
	type cell struct{ benchmark, commit string }
	have, all := map[cell][]string{}, map[cell]int{}
	var order []cell
	for _, s := range states {
		at := cell{s.Benchmark, s.Commit}
		if all[at] == 0 {
			order = append(order, at)
		}
		all[at]++
		if s.State == measured {
			have[at] = append(have[at], s.Variant)
		}
	}
	counts := map[string]int{}
	for _, at := range order {
		counts[pattern(have[at], all[at])]++
	}
	var list []count
	for _, name := range sortedNames(counts) {
		list = append(list, count{name, counts[name], len(order)})
	}
	return list
}

// pattern names a set of variants.
func pattern(have []string, all int) string {
	switch {
	case len(have) == 0:
		return "none"
	case len(have) == all:
		return "all"
	case len(have) == 1:
		return have[0] + " only"
	}
	have = slices.Clone(have)
	slices.Sort(have)
	return strings.Join(have, " and ") + " only"
}

// sortedNames puts the larger counts first.
func sortedNames(counts map[string]int) []string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return names
}

// deviceCount is how many of the members that need so many devices have figures.
type deviceCount struct {
	GPUs     int `json:"gpus"`
	Measured int `json:"measured"`
	Of       int `json:"of"`
}

func byDevices(states []State) []deviceCount {
	at := map[int]*deviceCount{}
	for _, s := range states {
		if at[s.GPUs] == nil {
			at[s.GPUs] = &deviceCount{GPUs: s.GPUs}
		}
		at[s.GPUs].Of++
		if s.State == measured {
			at[s.GPUs].Measured++
		}
	}
	var list []deviceCount
	for _, d := range at {
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b deviceCount) int { return cmp.Compare(a.GPUs, b.GPUs) })
	return list
}

// kindOfFailure is failures of one class, stage and cause.
type kindOfFailure struct {
	Class    failure.Class `json:"class"`
	Stage    *string       `json:"stage"`
	Rule     *string       `json:"rule"`  // null: undiagnosed
	Count    int           `json:"count"` // failures
	Commits  []string      `json:"commits"`
	Evidence *string       `json:"evidence"` // of the first
	Remedy   *string       `json:"remedy"`
	Cost     *float64      `json:"cost_s"` // of those with a record
}

func kindsOfFailures(failures []Failed) []kindOfFailure {
	type kind struct{ class, stage, rule string }
	at := map[kind]*kindOfFailure{}
	var order []kind
	for _, f := range failures {
		k := kind{string(f.Class), f.Stage, f.Rule}
		if at[k] == nil {
			at[k] = &kindOfFailure{Class: f.Class, Stage: known(f.Stage), Rule: known(f.Rule), Commits: []string{},
				Evidence: known(f.Evidence), Remedy: known(f.Remedy)}
			order = append(order, k)
		}
		sum := at[k]
		sum.Count++
		if f.Commit != "" && !slices.Contains(sum.Commits, f.Commit) {
			sum.Commits = append(sum.Commits, f.Commit)
		}
		if s := seconds(f.Took); s != nil {
			total := *s
			if sum.Cost != nil {
				total += *sum.Cost
			}
			sum.Cost = &total
		}
	}
	list := make([]kindOfFailure, 0, len(order))
	for _, k := range order {
		list = append(list, *at[k])
	}
	slices.SortStableFunc(list, func(a, b kindOfFailure) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

// Ways in which a row without a verdict could get one.
const (
	byFix     = "fix"
	byRebuild = "rebuild"
	byRetry   = "retry"
	byGPUs    = "more GPUs"
	byRun     = "apply"
	byBlocks  = "more blocks"
	byNothing = "none: the candidate's own"
	byIntent  = "none: declared"
)

// recovery is the rows that could get a verdict in one way.
type recovery struct {
	Way        string   `json:"way"`
	Rows       int      `json:"rows"`
	Of         int      `json:"of"` // rows without a verdict
	Candidates []string `json:"candidates"`
	Remedies   []string `json:"remedies"`
	// Cost estimates the seconds of the missing blocks: those that would settle an open row, or else the mean time of a
	// block that was measured × the blocks of a row. null: no block was measured, or nothing helps.
	Cost      *float64 `json:"cost_s"`
	Estimated bool     `json:"estimated"`
	took      time.Duration
}

// recoveries says of every row without a verdict what would give it one.
func recoveries(p *prepared) []recovery {
	type group struct{ way, benchmark, commit string }
	blocks := typicalBlocks(p.Comparisons)
	at, needed := map[string]*recovery{}, map[group]time.Duration{} // time of the missing blocks
	open := 0
	for _, c := range p.Comparisons {
		if !c.Primary || c.Outcome == stats.Win || c.Outcome == stats.Loss || c.Outcome == stats.Tie {
			continue
		}
		open++
		way, remedy := wayOut(c, p.Failures)
		if at[way] == nil {
			at[way] = &recovery{Way: way, Candidates: []string{}, Remedies: []string{}}
		}
		r := at[way]
		r.Rows++
		r.Candidates = append(r.Candidates, c.Candidate)
		if remedy != "" && !slices.Contains(r.Remedies, remedy) {
			r.Remedies = append(r.Remedies, remedy)
		}
		took := p.Cost.PerBlock * time.Duration(blocks)
		switch {
		case way == byBlocks && c.Settle != nil && c.Settle.Took > 0: // as the row says
			took = c.Settle.Took
		case way == byBlocks:
			took = p.Cost.PerBlock * time.Duration(max(0, c.Needed-c.Blocks))
		}
		if way != byNothing && way != byIntent {
			shared := group{way, c.Benchmark, c.Commit}
			needed[shared] = max(needed[shared], took)
		}
	}
	for g, took := range needed {
		at[g.way].took += took
	}
	var list []recovery
	for _, way := range []string{byFix, byRebuild, byRetry, byGPUs, byRun, byBlocks, byNothing, byIntent} {
		if r := at[way]; r != nil {
			r.Of, r.Cost, r.Estimated = open, seconds(r.took), r.took > 0
			list = append(list, *r)
		}
	}
	return list
}

// typicalBlocks is the median number of blocks of the rows with figures; 0 when there are none.
func typicalBlocks(rows []stats.Comparison) int {
	var all []int
	for _, c := range rows {
		if c.Primary && c.Blocks > 0 {
			all = append(all, c.Blocks)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// wayOut tells what would give a row a verdict, with the remedy of the failure behind it.
func wayOut(c stats.Comparison, failures []Failed) (way, remedy string) {
	switch c.Outcome {
	case stats.Skipped, stats.NoPatch:
		return byIntent, ""
	case stats.Infeasible:
		return byGPUs, ""
	case stats.Inconclusive:
		return byBlocks, ""
	case stats.NotComparable:
		return byRun, "measure both under the same conditions"
	case stats.Wrong:
		return byNothing, ""
	}
	who := c.Candidate
	if c.Outcome == stats.NoBaseline {
		who = c.Against
	}
	i := slices.IndexFunc(failures, func(f Failed) bool { return f.Candidate == who && f.Commit == c.Commit })
	switch {
	case i >= 0:
	case c.Outcome == stats.Infra:
		return byRetry, ""
	case c.Outcome == stats.BuildFailed, c.Outcome == stats.Failed: // nothing ran: its patch does not apply, say
		return byNothing, ""
	default:
		return byRun, ""
	}
	f := failures[i]
	switch {
	case f.Class == failure.Fixable:
		return byFix, f.Remedy
	case f.Class != failure.Permanent:
		return byRetry, f.Remedy
	case strings.Contains(f.Rule, "memory") || strings.HasPrefix(f.Rule, "kv_cache"):
		return byGPUs, f.Remedy
	case f.Stage != "checkout" && c.Outcome == stats.BuildFailed, f.Stage == "build", f.Stage == "fetch":
		return byRebuild, f.Remedy
	}
	return byNothing, f.Remedy
}

// hardware lists the classes of the machines that measured, for people: of several, each with its benchmarks.
func (p *prepared) hardware() []string {
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
