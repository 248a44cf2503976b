//go:build linux && cgo

package device

import (
	"errors"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// warnings are the settings of a whole device that its owner should change. An error says why no program can use it.
func (s *nvmlSource) warnings(h nvml.Device) (all []string, err error) {
	if s.has("nvmlDeviceGetComputeMode") {
		if mode, ret := h.GetComputeMode(); ret == nvml.SUCCESS && mode == nvml.COMPUTEMODE_PROHIBITED {
			return nil, errors.New("its compute mode lets no program use it (nvidia-smi -c DEFAULT)")
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
