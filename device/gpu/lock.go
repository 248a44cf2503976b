package gpu

import (
	"errors"
	"fmt"
)

// locker is a source that can lock SM clocks.
type locker interface {
	lock(d Device, mhz int) error
	reset(d Device) error
	cannotLock() string // why it can lock no clock; empty: no known reason
}

// errNoLock is the error for a device whose clock cannot be locked at all.
var errNoLock = errors.New("its clocks cannot be locked")

// ClockStep is the tolerance in MHz: drivers choose the nearest supported clock.
const ClockStep = 20

// CannotLock returns why the SM clock of none of the devices can be locked, without trying it; empty: no known
// reason.
func (d *Driver) CannotLock(devices []Device, mhz int) string {
	l, ok := d.opened().(locker)
	if !ok {
		return "the clocks of devices can only be locked through NVML, and this is " + d.Provider
	}
	if why := l.cannotLock(); why != "" {
		return why
	}
	why := ""
	for _, dev := range devices {
		if why = d.cannotReach(dev, mhz); why == "" {
			return ""
		}
	}
	return why
}

func (d *Driver) cannotReach(dev Device, mhz int) string {
	if dev.Parent != "" {
		return fmt.Sprintf("device %d is partitioned (MIG), and its instances share one clock", dev.Index)
	}
	if r, err := d.Read(dev); err == nil && r.MaxSMClock != nil && mhz > *r.MaxSMClock+ClockStep {
		return fmt.Sprintf("the SM clock of device %d reaches %d MHz", dev.Index, *r.MaxSMClock)
	}
	return ""
}

// locker returns the driver's source if it can lock clocks.
func (d *Driver) locker() (locker, error) {
	if l, ok := d.opened().(locker); ok {
		return l, nil
	}
	return nil, fmt.Errorf("NVML is needed: %s", d.Reason)
}

// LockClock locks the SM clock of a device.
func (d *Driver) LockClock(of Device, mhz int) error {
	l, err := d.locker()
	if err != nil {
		return err
	}
	return l.lock(of, mhz)
}

// ResetClock unlocks the SM clock of a device. It succeeds for a device that is gone, or whose clock cannot be
// locked.
func (d *Driver) ResetClock(uuid string) error {
	l, err := d.locker()
	if err == nil {
		err = l.reset(Device{UUID: uuid})
	}
	if errors.Is(err, ErrGone) || errors.Is(err, errNoLock) {
		return nil
	}
	return err
}
