// Package mps detects CUDA's Multi-Process Service, with which programs share a device.
package mps

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchgraph/benchgraph/device/process"
)

// Name is the kernel's name of both programs of CUDA's Multi-Process Service (MPS), nvidia-cuda-mps-control and
// nvidia-cuda-mps-server: it keeps only 15 bytes.
const Name = "nvidia-cuda-mps"

// Warning returns a text if a control daemon of MPS has its pipes in a directory; empty: no daemon is visible.
func Warning(pipes string) string {
	text, _ := os.ReadFile(filepath.Join(pipes, "nvidia-cuda-mps-control.pid"))
	p := process.Process{}
	_, _ = fmt.Sscan(string(text), &p.PID)
	if p.Identify(); p.Name != Name { // a killed daemon leaves its files
		return ""
	}
	return fmt.Sprintf("an MPS daemon waits for programs, %s: those without a sandbox become its clients, and share "+
		"the device with others (echo quit | nvidia-cuda-mps-control)", p)
}
