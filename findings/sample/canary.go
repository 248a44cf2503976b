package sample

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics"
)

// CanaryValue reads the number of a canary from its raw output.
func CanaryValue(spec *hclspec.Canary, dir string) (metrics.Sample, error) {
	result, err := Read(hclspec.Metrics{Custom: []hclspec.Metric{spec.Metric}}, spec.Command, dir)
	if err != nil {
		return metrics.Sample{}, err
	}
	s, ok := metrics.Find(result.Samples, spec.Metric.Name)
	switch {
	case !ok:
		return s, errors.New("its number is not in the output")
	case !(s.Value > 0) || math.IsInf(s.Value, 0):
		return s, fmt.Errorf("its number is %g, and must be positive", s.Value)
	}
	return s, nil
}

// CanaryPlace identifies the group, host and devices of canaries. Only canaries of one place are compared.
type CanaryPlace struct {
	group, host string
	devices     string // UUIDs, sorted
}

// CanaryPlaceOf returns the place of a group's canaries on a machine.
func CanaryPlaceOf(group string, in machine.Instance) CanaryPlace {
	return CanaryPlace{group, in.Host, strings.Join(slices.Sorted(slices.Values(in.UUIDs)), " ")}
}

// Canaries holds the numbers of the canaries in valid blocks, by place and address of the trial. It is safe for
// concurrent use.
type Canaries struct {
	mu sync.Mutex
	of map[CanaryPlace]map[hclspec.Address][]float64
}

// Note stores the numbers of the block of a trial.
func (c *Canaries) Note(at CanaryPlace, trial hclspec.Address, values []float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[CanaryPlace]map[hclspec.Address][]float64{}
	}
	if c.of[at] == nil {
		c.of[at] = map[hclspec.Address][]float64{}
	}
	c.of[at][trial] = values
}

// Usual returns the median of the numbers of all other blocks at a place, and the number of these blocks.
func (c *Canaries) Usual(at CanaryPlace, except hclspec.Address) (median float64, blocks int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []float64
	for trial, values := range c.of[at] {
		if trial != except {
			all = append(all, values...)
			blocks++
		}
	}
	if blocks == 0 {
		return 0, 0
	}
	slices.Sort(all)
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2, blocks
}
