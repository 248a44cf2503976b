//go:build linux && cgo

package device

import (
	"errors"
	"fmt"
	"os"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// cannotLock knows of drivers that have no such function, and that the kernel's part of the driver does it for root
// alone.
func (s *nvmlSource) cannotLock() string {
	if !s.has("nvmlDeviceSetGpuLockedClocks") || !s.has("nvmlDeviceResetGpuLockedClocks") {
		return "this driver cannot lock clocks: it is too old"
	}
	if !(machine{os.DirFS("/")}).mayLockClocks() {
		return errNotRoot.Error()
	}
	return ""
}

func (s *nvmlSource) lock(d Device, mhz int) error {
	h, err := s.handle(d.UUID)
	if err != nil {
		return err
	}
	return clockError(h.SetGpuLockedClocks(uint32(mhz), uint32(mhz)))
}

func (s *nvmlSource) reset(d Device) error {
	h, err := s.handle(d.UUID)
	if err != nil {
		return err
	}
	return clockError(h.ResetGpuLockedClocks())
}

func clockError(ret nvml.Return) error {
	switch ret {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_NO_PERMISSION:
		return errNotRoot
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND:
		return errNoLock
	case nvml.ERROR_INVALID_ARGUMENT:
		return errors.New("it has no such clock")
	}
	return fmt.Errorf("clocks: %w", failed(ret))
}
