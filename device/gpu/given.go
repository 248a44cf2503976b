package gpu

import "github.com/benchgraph/benchgraph/device/gpu/link"

// These returns a function that returns the devices, for the Options of a pool.
func These(devices []Device) func() []Device { return func() []Device { return devices } }

// DriverOf returns a driver of the given devices, which are not connected; read returns their state.
func DriverOf(devices []Device, read func(Device) (Reading, error)) *Driver {
	return &Driver{answer: answer{Provider: ProviderNVML, devices: devices, source: given(read)}}
}

// given is the source of a driver of given devices.
type given func(Device) (Reading, error)

func (g given) read(d Device) (Reading, error) { return g(d) }
func (g given) link(_, _ Device) link.Link     { return link.Link{} }
func (g given) close(bool)                     {}
