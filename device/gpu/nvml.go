//go:build linux && cgo

package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/benchgraph/benchgraph/device/gpu/link"
	"github.com/benchgraph/benchgraph/device/gpu/xid"
	"github.com/benchgraph/benchgraph/device/process"
)

// nvmlSource queries NVML, NVIDIA's management library, which comes with the driver.
type nvmlSource struct {
	lib   nvml.Interface
	links links
	xids  xid.Log

	mu   sync.Mutex // protects have; the library itself is thread-safe
	have map[string]bool
}

var errNoLibrary = errors.New("NVML (libnvidia-ml.so.1) cannot be loaded: there is no NVIDIA driver, or it is " +
	"installed elsewhere")

// openNVML loads the library and lists the devices. It returns an error if there is no usable driver. Each call may
// take at most patience.
func openNVML(ctx context.Context, library string, patience time.Duration) (answer, error) {
	var options []nvml.LibraryOption
	if library != "" {
		options = append(options, nvml.WithLibraryPath(library))
	}
	s := &nvmlSource{lib: nvml.New(options...), have: map[string]bool{}}
	s.xids.Lib, s.xids.Has = s.lib, s.has
	ret, err := within(ctx, patience, s.lib.Init)
	if err != nil {
		return answer{}, fmt.Errorf("NVML: %w", err)
	}
	switch ret {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return answer{}, errNoLibrary
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return answer{}, errors.New("NVML: the NVIDIA driver is not loaded (try: modprobe nvidia)")
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return answer{}, errors.New("NVML: driver and library are of different versions: the driver was updated; " +
			"reboot or reload it")
	default:
		return answer{}, fmt.Errorf("NVML: %v", ret)
	}
	for _, names := range required {
		if !s.has(names...) {
			return answer{}, fmt.Errorf("NVML: the library lacks %s", names[0])
		}
	}
	d, err := within(ctx, patience, s.about)
	if err != nil {
		return answer{}, fmt.Errorf("NVML: %w", err)
	}
	if err := s.list(ctx, &d, patience); err != nil {
		// the library stays open: closing it might wait for a hanging call
		return answer{}, fmt.Errorf("NVML: %w", err)
	}
	return d, nil
}

// about returns the driver's description of itself.
func (s *nvmlSource) about() answer {
	d := answer{Provider: ProviderNVML, source: s}
	if s.has("nvmlSystemGetDriverVersion") {
		if version, ret := s.lib.SystemGetDriverVersion(); ret == nvml.SUCCESS {
			d.Version = version
		}
	}
	if s.has("nvmlSystemGetCudaDriverVersion_v2") {
		if v, ret := s.lib.SystemGetCudaDriverVersion_v2(); ret == nvml.SUCCESS {
			d.CUDA = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
		}
	}
	return d
}

// required are the functions without which no device is known, each with the names of its versions.
var required = [][]string{
	{"nvmlDeviceGetCount", "nvmlDeviceGetCount_v2"},
	{"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByIndex_v2"},
	{"nvmlDeviceGetHandleByUUID"}, {"nvmlDeviceGetUUID"}, {"nvmlDeviceGetName"}, {"nvmlDeviceGetMemoryInfo"},
}

// has reports whether the library has a function, in one of some versions. A call of a missing function would end this
// process.
func (s *nvmlSource) has(names ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(names, func(name string) bool {
		known, ok := s.have[name]
		if !ok {
			known = s.lib.Extensions().LookupSymbol(name) == nil
			s.have[name] = known
		}
		return known
	})
}

// close waits at most a second: the driver may hang, and the process ends anyway.
func (s *nvmlSource) close(busy bool) {
	if busy { // closing might wait for the hanging call
		return
	}
	_, _ = within(context.Background(), time.Second, func() nvml.Return {
		s.xids.Close()
		if !s.has("nvmlShutdown") {
			return nvml.ERROR_FUNCTION_NOT_FOUND
		}
		return s.lib.Shutdown()
	})
}

// found is a device with its handle.
type found struct {
	Device
	handle nvml.Device
	parts  []Device // MIG instances; nil: not partitioned
}

// list finds the devices and their connections. It leaves out devices that do not answer, and reports them.
func (s *nvmlSource) list(ctx context.Context, d *answer, patience time.Duration) error {
	type number struct {
		n   int
		ret nvml.Return
	}
	count, err := within(ctx, patience, func() number { n, ret := s.lib.DeviceGetCount(); return number{n, ret} })
	if err == nil && count.ret != nvml.SUCCESS {
		err = failed(count.ret)
	}
	if err != nil {
		return fmt.Errorf("number of devices: %w", err)
	}
	// In parallel, so that a hanging device does not delay the others.
	all, errs := make([]found, count.n), make([]error, count.n)
	var asked sync.WaitGroup
	for i := range count.n {
		asked.Go(func() { all[i], errs[i] = s.find(ctx, i, patience) })
	}
	asked.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var whole []found
	for i, f := range all {
		switch err := errs[i]; {
		case err != nil:
			d.Hangs = d.Hangs || errors.Is(err, errSilent)
			d.Odd = append(d.Odd, fmt.Sprintf("device %d: %v", i, err))
		case f.parts != nil:
			d.devices = append(d.devices, f.parts...)
		default:
			d.devices, whole = append(d.devices, f.Device), append(whole, f)
		}
	}
	if s.links, err = within(ctx, patience, func() links { return s.connect(whole) }); err != nil {
		d.Hangs = true
		d.Odd = append(d.Odd, fmt.Sprintf("how the devices are connected: %v", err))
	}
	return nil
}

// find reads one device.
func (s *nvmlSource) find(ctx context.Context, index int, patience time.Duration) (found, error) {
	type reply struct {
		found
		err error
	}
	a, err := within(ctx, patience, func() (a reply) {
		var ret nvml.Return
		if a.handle, ret = s.lib.DeviceGetHandleByIndex(index); ret != nvml.SUCCESS {
			a.err = failed(ret)
			return a
		}
		if a.Device, a.err = s.describe(a.handle, index); a.err == nil {
			a.parts, a.err = s.instances(a.handle, a.Device)
		}
		if a.err == nil && a.parts == nil {
			a.Warnings, a.err = s.warnings(a.handle)
		}
		return a
	})
	return a.found, cmp.Or(err, a.err)
}

func (s *nvmlSource) describe(h nvml.Device, index int) (Device, error) {
	dev := Device{Index: index, NUMA: -1}
	var ret nvml.Return
	if dev.UUID, ret = h.GetUUID(); ret != nvml.SUCCESS {
		return dev, fmt.Errorf("UUID: %w", failed(ret))
	}
	if dev.Name, ret = h.GetName(); ret != nvml.SUCCESS {
		return dev, fmt.Errorf("name: %w", failed(ret))
	}
	memory, ret := h.GetMemoryInfo()
	if ret != nvml.SUCCESS {
		return dev, fmt.Errorf("memory: %w", failed(ret))
	}
	dev.Memory, dev.Used = int64(memory.Total), int64(memory.Used)
	if s.has("nvmlDeviceGetEnforcedPowerLimit") {
		if limit, ret := h.GetEnforcedPowerLimit(); ret == nvml.SUCCESS {
			dev.PowerLimit = float64(limit) / 1000
		}
	}
	if s.has("nvmlDeviceGetBrand") {
		if n, ret := h.GetBrand(); ret == nvml.SUCCESS && n >= 0 && int(n) < len(brands) {
			dev.Brand = brands[n]
		}
	}
	if s.has("nvmlDeviceGetPciInfo", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo_v3") {
		if info, ret := h.GetPciInfo(); ret == nvml.SUCCESS {
			dev.PCI = text(info.BusId[:])
			dev.NUMA = link.NUMA(dev.PCI)
		}
	}
	return dev, nil
}

// brands are NVML's brands, in its order, in the spelling of NVIDIA's container tools.
var brands = strings.Fields("unknown quadro tesla nvs grid geforce titan vapps vpc vcs vws cloudgaming quadrortx " +
	"nvidiartx nvidia geforcertx titanrtx")

// instances returns the MIG instances of a device; nil: the device is not partitioned. It returns an error if a
// partitioned device has no usable instance.
func (s *nvmlSource) instances(h nvml.Device, whole Device) (parts []Device, err error) {
	if !s.has("nvmlDeviceGetMigMode") || !s.has("nvmlDeviceGetMaxMigDeviceCount") ||
		!s.has("nvmlDeviceGetMigDeviceHandleByIndex") {
		return nil, nil
	}
	mode, _, ret := h.GetMigMode()
	if ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return nil, nil
	}
	err = fmt.Errorf("it is in MIG mode without an instance, and no program can use it (nvidia-smi mig -i %d -cgi "+
		"PROFILE -C makes one, nvidia-smi -i %[1]d -mig 0 ends the mode)", whole.Index)
	n, ret := h.GetMaxMigDeviceCount()
	for i := 0; ret == nvml.SUCCESS && i < n; i++ {
		part, ret := h.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue // not every slot is used
		}
		dev, unknown := s.describe(part, whole.Index)
		if unknown != nil {
			err = fmt.Errorf("its instance %d: %w", i, unknown)
			continue
		}
		dev.Parent, dev.PCI, dev.NUMA, dev.PowerLimit = whole.UUID, whole.PCI, whole.NUMA, whole.PowerLimit
		parts = append(parts, dev)
	}
	if len(parts) > 0 {
		err = nil
	}
	return parts, err
}

// failed returns the error of a call.
func failed(ret nvml.Return) error {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_NOT_FOUND, nvml.ERROR_RESET_REQUIRED:
		return fmt.Errorf("%w: %v", ErrGone, ret)
	}
	return fmt.Errorf("NVML: %v", ret)
}

func (s *nvmlSource) handle(uuid string) (nvml.Device, error) {
	h, ret := s.lib.DeviceGetHandleByUUID(uuid)
	if ret != nvml.SUCCESS {
		return nil, failed(ret)
	}
	return h, nil
}

// read reads the state of a device. Only its memory is required; drivers report little more about MIG instances.
func (s *nvmlSource) read(d Device) (Reading, error) {
	r := Reading{Processes: []process.Process{}}
	h, err := s.handle(d.UUID)
	if err != nil {
		return r, err
	}
	memory, ret := h.GetMemoryInfo()
	if ret != nvml.SUCCESS {
		return r, failed(ret)
	}
	r.Used = int64(memory.Used)
	if s.has("nvmlDeviceGetUtilizationRates") {
		u, ret := h.GetUtilizationRates()
		r.Utilization = told(u.Gpu, ret)
	}
	if s.has("nvmlDeviceGetTemperature") {
		r.Temperature = told(h.GetTemperature(nvml.TEMPERATURE_GPU))
	}
	if s.has("nvmlDeviceGetPowerUsage") {
		r.Power = watts(h.GetPowerUsage())
	}
	if s.has("nvmlDeviceGetEnforcedPowerLimit") {
		r.PowerLimit = watts(h.GetEnforcedPowerLimit())
	}
	if s.has("nvmlDeviceGetClockInfo") {
		r.SMClock = told(h.GetClockInfo(nvml.CLOCK_SM))
		r.MemoryClock = told(h.GetClockInfo(nvml.CLOCK_MEM))
	}
	if s.has("nvmlDeviceGetMaxClockInfo") {
		r.MaxSMClock = told(h.GetMaxClockInfo(nvml.CLOCK_SM))
	}
	if s.has("nvmlDeviceGetTotalEccErrors") {
		n, ret := h.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
		if ret == nvml.SUCCESS {
			r.Uncorrected = &n
		}
	}
	r.Slowdowns = s.slowdowns(h)
	r.Xids = s.xids.Next(d.UUID, cmp.Or(d.Parent, d.UUID))
	r.Processes = s.processes(h, r.Processes)
	return r, nil
}

// told returns the value of a call; nil: the driver does not report it.
func told(n uint32, ret nvml.Return) *int {
	if ret != nvml.SUCCESS {
		return nil
	}
	i := int(n)
	return &i
}

// watts converts milliwatts; nil: the driver does not report them.
func watts(n uint32, ret nvml.Return) *float64 {
	if ret != nvml.SUCCESS {
		return nil
	}
	w := float64(n) / 1000
	return &w
}

func (s *nvmlSource) slowdowns(h nvml.Device) []string {
	var bits uint64
	ret := nvml.ERROR_NOT_SUPPORTED
	switch {
	case s.has("nvmlDeviceGetCurrentClocksEventReasons"):
		bits, ret = h.GetCurrentClocksEventReasons()
	case s.has("nvmlDeviceGetCurrentClocksThrottleReasons"):
		bits, ret = h.GetCurrentClocksThrottleReasons()
	}
	if ret != nvml.SUCCESS {
		return nil
	}
	var all []string
	for _, reason := range []struct {
		bit  uint64
		name string
	}{
		{nvml.ClocksThrottleReasonHwSlowdown, SlowHardware},
		{nvml.ClocksThrottleReasonHwThermalSlowdown, SlowThermal},
		{nvml.ClocksThrottleReasonHwPowerBrakeSlowdown, SlowPowerBrake},
		{nvml.ClocksEventReasonSwThermalSlowdown, SlowSWThermal},
		{nvml.ClocksEventReasonSwPowerCap, SlowPowerCap},
		{nvml.ClocksEventReasonApplicationsClocksSetting, SlowSettings},
		{nvml.ClocksEventReasonSyncBoost, SlowSyncBoost},
		{nvml.ClocksEventReasonDisplayClockSetting, SlowDisplay},
	} {
		if bits&reason.bit != 0 {
			all = append(all, reason.name)
		}
	}
	return all
}
