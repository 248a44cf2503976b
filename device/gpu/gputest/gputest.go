// Package gputest has devices for tests.
package gputest

import (
	"fmt"

	"github.com/benchgraph/benchgraph/device/gpu"
)

// Devices returns n devices of one model that do not exist. memory is in bytes.
func Devices(n int, name string, memory int64) []gpu.Device {
	all := make([]gpu.Device, n)
	for i := range all {
		all[i] = gpu.Device{Index: i, UUID: fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", i), Name: name,
			Memory: memory}
	}
	return all
}
