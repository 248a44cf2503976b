package gpu

import (
	"fmt"

	"github.com/benchgraph/benchgraph/device/gpu/link"
)

// These returns a function that returns the devices, for the Options of a pool.
func These(devices []Device) func() []Device { return func() []Device { return devices } }

// Fake returns n devices of one model that do not exist, for tests and for planning without hardware.
func Fake(n int, name string, memory int64) []Device {
	var all []Device
	for i := range n {
		all = append(all, Device{Index: i, UUID: fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", i), Name: name,
			Memory: memory})
	}
	return all
}

// NewFake returns a driver of such devices for tests; read returns their state.
func NewFake(devices []Device, read func(Device) (Reading, error)) *Driver {
	return &Driver{answer: answer{Provider: ProviderNVML, devices: devices, source: fake(read)}}
}

// fake is a source whose devices are not connected.
type fake func(Device) (Reading, error)

func (f fake) read(d Device) (Reading, error) { return f(d) }
func (f fake) link(_, _ Device) link.Link     { return link.Link{} }
func (f fake) close(bool)                     {}
