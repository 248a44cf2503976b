//go:build linux && cgo

package gpu

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/benchgraph/benchgraph/device/gpu/mps"
	"github.com/benchgraph/benchgraph/device/process"
)

// warnings returns settings of a whole device that its owner should change. It returns an error if no program can use
// the device.
func (s *nvmlSource) warnings(h nvml.Device) (all []string, err error) {
	if s.has("nvmlDeviceGetComputeMode") {
		switch mode, ret := h.GetComputeMode(); {
		case ret != nvml.SUCCESS || mode == nvml.COMPUTEMODE_DEFAULT:
		case mode == nvml.COMPUTEMODE_PROHIBITED:
			return nil, errors.New("its compute mode lets no program use it (nvidia-smi -c DEFAULT)")
		default:
			all = append(all, "its compute mode is exclusive, so that a second process on the device fails, as of a "+
				"server of several processes (nvidia-smi -c DEFAULT)")
		}
	}
	for _, p := range s.processes(h, nil) {
		if p.Identify(); p.Name == mps.Name { // a number of another PID namespace names another program here
			all = append(all, fmt.Sprintf("an MPS server runs on it, %s, through which programs share the device: "+
				"nothing is measured there until it has ended (echo quit | nvidia-cuda-mps-control)", p))
		}
	}
	if s.has("nvmlDeviceGetPersistenceMode") {
		if mode, ret := h.GetPersistenceMode(); ret == nvml.SUCCESS && mode == nvml.FEATURE_DISABLED {
			all = append(all, "persistence mode is off, so that the driver starts the device anew for each "+
				"program (nvidia-smi -pm 1, or the service nvidia-persistenced)")
		}
	}
	if s.has("nvmlDeviceGetGpuFabricInfo") {
		if fabric, ret := h.GetGpuFabricInfo(); ret == nvml.SUCCESS &&
			(fabric.State == nvml.GPU_FABRIC_STATE_NOT_STARTED || fabric.State == nvml.GPU_FABRIC_STATE_IN_PROGRESS) {
			all = append(all, "not part of the fabric of NVSwitches, so that CUDA may answer with error 802 "+
				"(start the service nvidia-fabricmanager, of the same version as the driver)")
		}
	}
	return all, nil
}

// processes returns the processes that use the device for computing or graphics, each once.
func (s *nvmlSource) processes(h nvml.Device, all []process.Process) []process.Process {
	seen := map[uint32]bool{}
	take := func(infos []nvml.ProcessInfo, ret nvml.Return) {
		for i := 0; ret == nvml.SUCCESS && i < len(infos); i++ {
			p := infos[i]
			if seen[p.Pid] {
				continue
			}
			seen[p.Pid] = true
			used := int64(p.UsedGpuMemory)
			all = append(all, process.Process{PID: int(p.Pid), Used: max(used, 0)}) // if unknown, all bits are set
		}
	}
	const compute, graphics = "nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"
	if s.has(compute, compute+"_v2", compute+"_v3") {
		take(h.GetComputeRunningProcesses())
	}
	if s.has(graphics, graphics+"_v2", graphics+"_v3") {
		take(h.GetGraphicsRunningProcesses())
	}
	if s.has("nvmlDeviceGetMPSComputeRunningProcesses_v3") { // clients of MPS
		take(h.GetMPSComputeRunningProcesses())
	}
	return all
}
