package device

import "fmt"

// These are devices that are known, as Options have them.
func These(devices []Device) func() []Device { return func() []Device { return devices } }

// FakeGPUs returns n devices of one model that exist nowhere, for tests and for planning without hardware.
func FakeGPUs(n int, name string, memory int64) []Device {
	var all []Device
	for i := range n {
		all = append(all, Device{Index: i, UUID: fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", i), Name: name,
			Memory: memory})
	}
	return all
}
