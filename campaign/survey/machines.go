package survey

import (
	"context"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/preflight/requirement"
	"github.com/benchgraph/benchgraph/tasks"
)

// machinesOf adds the machines that measure benchmarks with devices. It returns the names of these machines by the name
// of the image that the benchmarks' images begin with, if the requirements of that image count for them.
func (p *survey) machinesOf(ctx context.Context, in *preflight.Input) map[string]map[string]bool {
	images := map[hclspec.Address]*hclspec.Image{}
	for i := range p.Spec.Images {
		images[p.Spec.Images[i].Address] = &p.Spec.Images[i]
	}
	machines := map[string]map[string]bool{}
	for i := range p.Spec.Benchmarks {
		b := &p.Spec.Benchmarks[i]
		if b.GPUs == nil {
			continue
		}
		name := p.addMachine(in, b)
		if requirement.Disabled(b.Env[requirement.Disable].String()) {
			continue // its containers start whatever the image requires
		}
		for m := images[b.Image]; m != nil; m = images[m.Base] {
			from := p.beginsWith(ctx, m)
			if machines[from] == nil {
				machines[from] = map[string]bool{}
			}
			machines[from][name] = true
		}
	}
	return machines
}

// addMachine adds the devices of the machine on which a benchmark is measured, and returns the name of the machine.
func (p *survey) addMachine(in *preflight.Input, b *hclspec.Benchmark) string {
	name := machineName(p.PlaceOf(b))
	if _, known := in.Devices[name]; known {
		return name
	}
	in.Devices[name] = []requirement.Device{}
	for _, d := range p.DevicesFor(b) {
		in.Devices[name] = append(in.Devices[name], requirement.Device{Name: d.Name, Memory: d.Memory, Driver: d.Driver,
			CUDA: d.CUDA, Brand: d.Brand})
	}
	return name
}

// machineName returns the name of a machine in the preflight; "" for this machine.
func machineName(e *tasks.Elsewhere) string {
	if e == nil {
		return ""
	}
	return e.Name
}
