package main

import (
	"math"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
)

// Each attempt costs as much as the devices of its own machine.
func TestMoneyIsOfEachMachine(t *testing.T) {
	const hopper, ampere = "x, 2 × NVIDIA H100 80GB HBM3", "y, 1 × NVIDIA A100-SXM4-40GB"
	spec := &hclspec.Spec{GPUHour: map[string]float64{"NVIDIA H100 80GB HBM3": 4, "NVIDIA A100-SXM4-40GB": 1}}
	found := []findings.Findings{{
		Measurements: []sample.Measurement{
			{Benchmark: "large", Commit: "c", Hardware: hopper}, {Benchmark: "small", Commit: "c", Hardware: ampere},
		},
		Spent: []findings.Spent{
			{Attempt: "1", Took: time.Hour, GPUs: 2, Block: true, Benchmark: "large", Commit: "c"},
			{Attempt: "2", Took: time.Hour, GPUs: 1, Block: true, Benchmark: "small", Commit: "c"},
			{Attempt: "3", Took: time.Hour, GPUs: 1, Failed: true, Benchmark: "small", Commit: "c"},
			{Attempt: "4", Took: time.Hour}, // a build
		},
	}}
	hardware := []string{hopper, ampere}
	if c := costOf(found, hardware, pricesOf(spec)); math.Abs(c.Money-10) > 1e-9 || c.GPUTime != 4*time.Hour {
		t.Errorf("%+v", c)
	}
	// The present machine of the benchmark does not matter if an attempt says where it ran.
	found[0].Spent = append(found[0].Spent, findings.Spent{Attempt: "0", Took: time.Hour, GPUs: 1, Failed: true,
		Block: true, Benchmark: "large", Commit: "c", Hardware: ampere})
	if c := costOf(found, hardware, pricesOf(spec)); math.Abs(c.Money-11) > 1e-9 {
		t.Errorf("%+v", c)
	}
	// An attempt of an earlier version that measured nothing may have run on either machine.
	found[0].Spent = append(found[0].Spent, findings.Spent{Attempt: "5", Took: time.Hour, GPUs: 1, Failed: true,
		Block: true, Benchmark: "large", Commit: "d"})
	if c := costOf(found, hardware, pricesOf(spec)); c.Money != 0 {
		t.Errorf("%+v", c)
	}
}
