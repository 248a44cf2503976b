// Package gpu asks the driver of this machine for its GPUs, and notes which of them are left out.
package gpu

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Device is one GPU, or one instance of a partitioned one (MIG), as its driver sees it.
type Device struct {
	Index  int    `json:"index"` // of the GPU; its instances share it
	UUID   string `json:"uuid"`
	Name   string `json:"name"`
	Memory int64  `json:"memory_bytes"`
	Used   int64  `json:"used_bytes"`
	// UUID of the GPU that this is an instance of; empty: it is a whole one
	Parent     string  `json:"parent,omitempty"`
	PCI        string  `json:"pci,omitempty"`
	NUMA       int     `json:"numa_node"`               // that it hangs on; -1: not known
	PowerLimit float64 `json:"power_limit_w,omitempty"` // 0: not known
	Driver     string  `json:"driver,omitempty"`        // version of the kernel's driver; empty: not known
	CUDA       string  `json:"cuda,omitempty"`          // the newest that the driver serves; empty: not known
	Brand      string  `json:"brand,omitempty"`         // as NVIDIA's container tools name it; empty: not known
	Locked     int     `json:"-"`                       // MHz that its SM clock is locked at for a block; 0: it is not
	// why programs may not start on it, or be slow, each with the remedy
	Warnings []string `json:"warnings,omitempty"`
}

// Warnings are those of devices, each once, with the devices that it is about.
func Warnings(all []Device) (lines []string) {
	about := map[string][]string{}
	for _, d := range all {
		for _, w := range d.Warnings {
			about[w] = append(about[w], strconv.Itoa(d.Index))
		}
	}
	for _, w := range slices.Sorted(maps.Keys(about)) {
		which := "device "
		if len(about[w]) > 1 {
			which = "devices "
		}
		lines = append(lines, which+strings.Join(about[w], ", ")+": "+w)
	}
	return lines
}
