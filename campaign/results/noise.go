package results

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/tasks"
)

// Resolution is the smallest effect that the blocks of a benchmark show on the class of machine of a plan, by the noise
// of blocks that were measured there before.
type Resolution struct {
	Benchmark string  `json:"benchmark"`
	Metric    string  `json:"metric"`
	Deviation float64 `json:"deviation"` // between blocks, relative
	Known     int     `json:"known_blocks"`
	Looks     []Sight `json:"looks"` // at the first and the last look
}

// Sight is the smallest effect that a number of blocks shows in four of five cases.
type Sight struct {
	Blocks int     `json:"blocks"`
	Sees   float64 `json:"sees"`
}

// String returns the resolution in one line.
func (r Resolution) String() string {
	var parts []string
	for _, s := range r.Looks {
		parts = append(parts, fmt.Sprintf("≥ %s %% with %d blocks", stats.TwoDigits(100*s.Sees), s.Blocks))
	}
	return fmt.Sprintf("benchmark.%s sees %s of %s (noise of %s %% between the %d blocks measured before)",
		r.Benchmark, strings.Join(parts, ", "), r.Metric, stats.TwoDigits(100*r.Deviation), r.Known)
}

// Resolutions returns the resolutions of the benchmarks with blocks to run, as far as the last findings of the
// compares, noise included, tell the noise on this class of machine.
func (s *Stored) Resolutions(ctx context.Context) (list []Resolution, err error) {
	toRun, compares := map[string]*engine.Node{}, []string{"compare." + hclspec.Noise}
	for i := range s.Plan.Steps {
		switch step := &s.Plan.Steps[i]; {
		case step.Node.Kind == "trial" && step.Action == engine.Run:
			a, err := hclspec.ParseAddress(step.Node.Address)
			if err == nil && toRun[a.Name] == nil {
				toRun[a.Name] = step.Node
			}
		case step.Node.Kind == "compare":
			compares = append(compares, step.Node.Address)
		}
	}
	if len(toRun) == 0 { // reading the journal would take longer than the rest of a plan without work
		return nil, nil
	}
	known := map[string][]stats.Comparison{} // rows by benchmark
	for _, address := range compares {
		if err := s.knownRows(ctx, address, toRun, known); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(toRun)) {
		if r, ok := resolutionOf(name, known[name]); ok {
			list = append(list, r)
		}
	}
	return list, nil
}

// knownRows adds to known, by benchmark, the judged primary rows of the last findings of a compare. Findings are large,
// so older ones are read only while a benchmark of toRun has no row.
func (s *Stored) knownRows(ctx context.Context, address string, toRun map[string]*engine.Node,
	known map[string][]stats.Comparison) error {
	seen, open := map[[2]string]bool{}, maps.Clone(toRun)
	if c := compareOf(s.Spec, strings.TrimPrefix(address, "compare.")); c != nil { // compare.noise has any rows
		maps.DeleteFunc(open, func(name string, _ *engine.Node) bool {
			return !slices.ContainsFunc(c.Of, func(of hclspec.Address) bool { return of.Name == name })
		})
	}
	for _, a := range slices.Backward(s.Journal.Attempts(address)) {
		if len(open) == 0 {
			return nil
		}
		if a.Failure != nil {
			continue
		}
		e, err := s.ResultOf(ctx, a)
		if err != nil {
			continue // the result is no longer stored
		}
		text, err := os.ReadFile(filepath.Join(e.Dir, tasks.FindingsFile))
		if err != nil {
			return err
		}
		var f findings.Findings
		if err := json.Unmarshal(text, &f); err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
		classes := map[[2]string]string{}
		for _, m := range f.Measurements {
			classes[[2]string{m.Benchmark, m.Candidate}] = m.Hardware
		}
		for _, row := range f.Comparisons {
			name := strings.TrimSuffix(row.Benchmark, " "+hclspec.Noise)
			id := [2]string{row.Benchmark, row.Candidate}
			if n := toRun[name]; n == nil || !row.Primary || seen[id] || !row.Outcome.Judged() ||
				!s.isClass(classes[id], n) {
				continue
			}
			seen[id] = true
			delete(open, name)
			known[name] = append(known[name], row)
		}
	}
	return nil
}

// isClass reports whether samples of a class of hardware are of the class of machine that would run block n.
func (s *Stored) isClass(hardware string, n *engine.Node) bool {
	q := n.Resources.GPUs
	class, devices := s.MachineFor(n)
	if q.Count == 0 {
		return hardware == class
	}
	return slices.ContainsFunc(machine.Kinds(devices), func(kind string) bool {
		return (q.Kind == "" || q.Kind == kind) && hardware == machine.WithGPUs(class, q.Count, kind)
	})
}

// resolutionOf pools the noise of rows; false if no row tells the noise.
func resolutionOf(name string, rows []stats.Comparison) (Resolution, bool) {
	r := Resolution{Benchmark: name}
	sum, freedom := 0.0, 0
	var rule stats.Rule
	for i := range rows {
		row := &rows[i]
		deviation := row.Deviation()
		if deviation <= 0 || math.IsInf(deviation, 0) || len(row.Looks) == 0 {
			continue
		}
		sum += deviation * deviation * float64(row.Blocks-1)
		freedom += row.Blocks - 1
		r.Known += row.Blocks
		r.Metric, rule = row.Metric, stats.Rule{Tie: row.Tie, Confidence: row.Confidence, Looks: row.Looks}
	}
	if freedom == 0 {
		return r, false
	}
	r.Deviation = math.Sqrt(sum / float64(freedom))
	for _, blocks := range slices.Compact([]int{rule.Looks[0], rule.Looks[len(rule.Looks)-1]}) {
		if blocks >= stats.FewestBlocks {
			r.Looks = append(r.Looks, Sight{blocks, rule.Resolution(r.Deviation, blocks)})
		}
	}
	return r, len(r.Looks) > 0
}
