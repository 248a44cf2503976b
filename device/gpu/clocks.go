package gpu

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// The SM clock of a GPU can be locked: then it neither boosts nor idles. Only root can lock it, the lock outlives the
// process, and the driver does not report it. So the locked devices stand in a record, a file with one UUID a line,
// from before the lock until the reset. Whoever finds that the owner is gone resets the devices of the record. A record
// is not synced: no lock outlives a reboot.

// locker is a source that can lock SM clocks.
type locker interface {
	lock(d Device, mhz int) error
	reset(d Device) error
	cannotLock() string // why it can lock none; empty: nothing is known against it
}

// errNoLock is why a device's clock was neither locked nor reset: there is no such thing.
var errNoLock = errors.New("its clocks cannot be locked")

// clockStep is the tolerance in MHz: drivers choose the nearest clock that a device has.
const clockStep = 20

// CannotLock says why the SM clock of none of the devices can be locked, as far as that is known without trying it;
// empty: nothing is known against it.
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
	if r, err := d.Read(dev); err == nil && r.MaxSMClock != nil && mhz > *r.MaxSMClock+clockStep {
		return fmt.Sprintf("the SM clock of device %d reaches %d MHz", dev.Index, *r.MaxSMClock)
	}
	return ""
}

// Clocks locks the SM clocks of leased devices.
type Clocks struct {
	Driver  *Driver
	Records string // directory
	// Guard starts what resets the clocks of a record, and removes it, once this process is gone without having done
	// so. It keeps the files open until then: they are the locks of the devices. done tells it that there is nothing
	// left to do.
	Guard func(record string, locks []*os.File) (done func() error, err error)
}

// LockedClocks are the clocks of some devices until they are reset.
type LockedClocks struct {
	driver  *Driver
	devices []Device
	record  string
	done    func() error
	reset   sync.Once
}

// Lock locks the SM clocks of leased devices at mhz. locks are the files of the lease. With an error, no clock is
// locked.
func (c *Clocks) Lock(ctx context.Context, devices []Device, locks []*os.File, mhz int) (*LockedClocks, error) {
	for i := range devices {
		if why := c.Driver.CannotLock(devices[i:i+1], mhz); why != "" {
			return nil, errors.New(why)
		}
	}
	if err := os.MkdirAll(c.Records, 0o755); err != nil {
		return nil, err
	}
	record, err := newRecord(c.Records, devices)
	if err != nil {
		return nil, fmt.Errorf("record of locked clocks: %w", err)
	}
	done, err := c.Guard(record, locks)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("nobody would reset the clocks if this process were killed: %w", err),
			os.Remove(record))
	}
	locked := &LockedClocks{driver: c.Driver, devices: devices, record: record, done: done}
	if err := locked.lock(ctx, mhz); err != nil {
		return nil, errors.Join(err, locked.Reset())
	}
	return locked, nil
}

// newRecord makes a record with a name of its own.
func newRecord(dir string, devices []Device) (string, error) {
	record := filepath.Join(dir, rand.Text())
	return record, writeRecord(record, devices)
}

// writeRecord replaces the record by one of these devices, atomically; without devices, it removes the record.
func writeRecord(record string, devices []Device) error {
	if len(devices) == 0 {
		return os.Remove(record)
	}
	var text bytes.Buffer
	for _, d := range devices {
		fmt.Fprintln(&text, d.UUID)
	}
	return fs.Replace(record, text.Bytes())
}

// clockPatience is how long a device may take to get to the clock that it was locked at.
const clockPatience = 3 * time.Second

func (l *LockedClocks) lock(ctx context.Context, mhz int) error {
	for i, d := range l.devices {
		if err := l.driver.source.(locker).lock(d, mhz); err != nil {
			// A device that refuses the lock refuses the reset, too: only the locked devices stay in the record.
			return errors.Join(fmt.Errorf("device %d: %w", d.Index, err), writeRecord(l.record, l.devices[:i]))
		}
	}
	end := time.Now().Add(clockPatience)
	for _, d := range l.devices {
		for {
			r, err := l.driver.Read(d)
			if err != nil {
				return err
			}
			if r.SMClock == nil || *r.SMClock <= mhz+clockStep {
				break
			}
			if !time.Now().Before(end) {
				return fmt.Errorf("device %d: the driver locked the SM clock at %d MHz, and it is %d MHz", d.Index, mhz,
					*r.SMClock)
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(watchEvery / 10):
			}
		}
	}
	return nil
}

// Reset gives the devices their own clocks back. One for which that fails is left out from now on. A second call does
// nothing.
func (l *LockedClocks) Reset() (err error) {
	l.reset.Do(func() {
		err = resetRecord(l.driver, l.record)
		err = errors.Join(err, l.done())
	})
	return err
}

// resetRecord resets the clocks of a record and removes it. A missing device is done. A device that is still locked is
// quarantined: it would be measured as if its clock were free.
func resetRecord(d *Driver, record string) error {
	text, err := os.ReadFile(record)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	l, ok := d.opened().(locker)
	if !ok {
		return d.stillLocked(strings.Fields(string(text)), fmt.Errorf("NVML is needed: %s", d.Reason))
	}
	for _, uuid := range strings.Fields(string(text)) {
		resetErr := l.reset(Device{UUID: uuid})
		if resetErr != nil && !errors.Is(resetErr, ErrGone) && !errors.Is(resetErr, errNoLock) {
			err = errors.Join(err, d.stillLocked([]string{uuid}, resetErr))
		}
	}
	if err != nil {
		return err
	}
	if err := os.Remove(record); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// stillLocked leaves out devices whose clocks could not be reset, and says so.
func (d *Driver) stillLocked(uuids []string, why error) error {
	for _, dev := range d.Devices() {
		if slices.Contains(uuids, dev.UUID) {
			d.lose(dev, fmt.Sprintf("its clock is still locked: %v", why))
		}
	}
	return fmt.Errorf("left out from now on, with a clock that is still locked: %s: %w", strings.Join(uuids, ", "), why)
}

// GuardClocks waits for the end of alive, which is the end of the process that locked the clocks of a record, and
// resets the clocks that remain locked.
func GuardClocks(ctx context.Context, alive io.Reader, record, library string) error {
	_, _ = io.Copy(io.Discard, alive) // a pipe that breaks has ended, too
	if _, err := os.Stat(record); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	d := OpenDriver(ctx, Options{Library: library})
	defer d.Close()
	return resetRecord(d, record)
}

// ResetLeft resets the clocks that are still locked by processes which were killed together with what guarded them.
// Their records are in a directory, by which nobody may lock clocks meanwhile. lease leases a device by its UUID, for
// which it waits a while, until release is called. ResetLeft returns why it could not reset some of them, such as those
// whose device another benchgraph has leased: they stay for later, and their devices are left out.
func ResetLeft(d *Driver, records string, lease func(uuid string) (release func(), err error)) (left []error) {
	files, err := os.ReadDir(records)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []error{err}
	}
	for _, f := range files {
		path := filepath.Join(records, f.Name())
		if strings.HasPrefix(f.Name(), ".") { // unfinished: no clock was locked yet
			_ = os.Remove(path)
		} else if err := resetLeft(d, path, lease); err != nil {
			left = append(left,
				fmt.Errorf("%w; apply as root, or reset it with nvidia-smi --reset-gpu-clocks and remove %s", err,
					path))
		}
	}
	return left
}

func resetLeft(d *Driver, record string, lease func(uuid string) (release func(), err error)) error {
	text, err := os.ReadFile(record)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a guard was just about it
	}
	if err != nil {
		return err
	}
	uuids := strings.Fields(string(text))
	for _, uuid := range uuids {
		release, err := lease(uuid)
		if err != nil {
			return d.stillLocked(uuids,
				fmt.Errorf("an earlier apply locked it, and it is reset once nobody has leased %s: %w", uuid, err))
		}
		defer release()
	}
	return resetRecord(d, record)
}

// OffClock reports clocks that contradict a lock at mhz while something ran. A device that never reached mhz, such as
// at its power limit, is flagged.
func OffClock(sums []Summary, mhz int) string {
	var odd []string
	for i := range sums {
		s := &sums[i]
		switch {
		case s.SMClock == nil:
		case s.SMClock.Max > float64(mhz+clockStep):
			odd = append(odd, fmt.Sprintf("%s: SM clock of %.0f MHz, locked at %d", s.UUID, s.SMClock.Max, mhz))
		case s.SMClock.Max < float64(mhz-clockStep):
			s.Flags = append(s.Flags, BelowLockedClock)
		}
	}
	return strings.Join(odd, "; ")
}

// BelowLockedClock is the flag of a device that was never as fast as its SM clock was locked at.
const BelowLockedClock = "below_locked_clock"
