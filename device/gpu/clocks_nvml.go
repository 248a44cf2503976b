//go:build linux && cgo

package gpu

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// cannotLock returns a reason if the driver lacks the functions, or if this process lacks the privilege that NVIDIA's
// kernel driver requires.
func (s *nvmlSource) cannotLock() string {
	if !s.has("nvmlDeviceSetGpuLockedClocks") || !s.has("nvmlDeviceResetGpuLockedClocks") {
		return "this driver cannot lock clocks: it is too old"
	}
	if !mayLockClocks(os.DirFS("/")) {
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

// mayLockClocks reports whether this process may lock the clocks of GPUs. NVIDIA's kernel driver requires
// CAP_SYS_ADMIN. Without a visible kernel driver, the answer is yes, and the library's call decides.
func mayLockClocks(root fs.FS) bool {
	const sysAdmin = 21
	if _, err := fs.Stat(root, "proc/driver/nvidia"); err != nil {
		return true
	}
	status, err := fs.ReadFile(root, "proc/self/status")
	_, after, ok := strings.Cut("\n"+string(status), "\nCapEff:")
	line, _, _ := strings.Cut(after, "\n")
	capabilities, err2 := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return err != nil || !ok || err2 != nil || capabilities>>sysAdmin&1 == 1
}

// errNotRoot is the error for users who may not lock clocks.
var errNotRoot = errors.New("only root may lock the clocks of devices")
