package gpu

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchgraph/benchgraph/device/process"
)

// mpsName is the name of both programs of CUDA's Multi-Process Service (MPS), nvidia-cuda-mps-control and
// nvidia-cuda-mps-server: the kernel keeps 15 bytes.
const mpsName = "nvidia-cuda-mps"

// mpsWarning says that a control daemon of MPS has its pipes in a directory; empty: none is seen from here.
func mpsWarning(pipes string) string {
	text, _ := os.ReadFile(filepath.Join(pipes, "nvidia-cuda-mps-control.pid"))
	p := process.Process{}
	_, _ = fmt.Sscan(string(text), &p.PID)
	if p.Identify(); p.Name != mpsName { // a daemon that was killed leaves its files
		return ""
	}
	return fmt.Sprintf("an MPS daemon waits for programs, %s: those without a sandbox become its clients, and share "+
		"the device with others (echo quit | nvidia-cuda-mps-control)", p)
}
