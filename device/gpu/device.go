// Package gpu reads the GPUs of this machine from their driver, and records which of them are left out.
package gpu

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Device is a GPU, or an instance of a partitioned GPU (MIG), as reported by the driver.
type Device struct {
	Index  int    `json:"index"` // of the GPU; instances share it
	UUID   string `json:"uuid"`
	Name   string `json:"name"`
	Memory int64  `json:"memory_bytes"`
	Used   int64  `json:"used_bytes"`
	// UUID of the GPU whose instance this is; empty: a whole GPU
	Parent     string  `json:"parent,omitempty"`
	PCI        string  `json:"pci,omitempty"`
	NUMA       int     `json:"numa_node"`               // node of its PCI slot; -1: not known
	PowerLimit float64 `json:"power_limit_w,omitempty"` // 0: not known
	Driver     string  `json:"driver,omitempty"`        // version of the kernel driver; empty: not known
	CUDA       string  `json:"cuda,omitempty"`          // newest version that the driver supports; empty: not known
	Brand      string  `json:"brand,omitempty"`         // in the spelling of NVIDIA's container tools; empty: not known
	Locked     int     `json:"-"`                       // MHz at which its SM clock is locked; 0: not locked
	// why programs may not start on it or may be slow, each with the remedy
	Warnings []string `json:"warnings,omitempty"`
}

// Warnings returns the warnings of devices, each once, with the indices of its devices.
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
