// Package mps recognises CUDA's Multi-Process Service, by which programs share a device.
package mps

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchgraph/benchgraph/device/process"
)

// Name is the name of both programs of CUDA's Multi-Process Service (MPS), nvidia-cuda-mps-control and
// nvidia-cuda-mps-server: the kernel keeps 15 bytes.
const Name = "nvidia-cuda-mps"

// Warning says that a control daemon of MPS has its pipes in a directory; empty: none is seen from here.
func Warning(pipes string) string {
	text, _ := os.ReadFile(filepath.Join(pipes, "nvidia-cuda-mps-control.pid"))
	p := process.Process{}
	_, _ = fmt.Sscan(string(text), &p.PID)
	if p.Identify(); p.Name != Name { // a daemon that was killed leaves its files
		return ""
	}
	return fmt.Sprintf("an MPS daemon waits for programs, %s: those without a sandbox become its clients, and share "+
		"the device with others (echo quit | nvidia-cuda-mps-control)", p)
}
