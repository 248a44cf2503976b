// Package clocks locks the SM clocks of leased devices, and guarantees that they are reset.
package clocks

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

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/watch"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// A GPU with a locked SM clock neither boosts nor idles. Only root can lock it; the lock outlives the process, and
// the driver does not report it. So a record, a file with one UUID a line, names the locked devices from before the
// lock until the reset. Whoever finds a record without a living owner resets the devices in it. A record is not
// synced: no lock outlives a reboot.

// Locker locks the SM clocks of leased devices.
type Locker struct {
	Driver  *gpu.Driver
	Records string // directory of records
	// Guard starts a process that resets the clocks of a record and removes the record if this process ends without
	// having done so. Until then the process keeps the lease's files open, because they are the locks of the devices.
	// done tells the process that nothing is left to do.
	Guard func(record string, locks []*os.File) (done func() error, err error)
}

// Locked is a set of devices with locked clocks.
type Locked struct {
	driver  *gpu.Driver
	devices []gpu.Device
	record  string
	done    func() error
	reset   sync.Once
}

// Lock locks the SM clocks of leased devices at mhz. locks are the files of the lease. If Lock fails, no clock stays
// locked.
func (c *Locker) Lock(ctx context.Context, devices []gpu.Device, locks []*os.File, mhz int) (*Locked, error) {
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
	locked := &Locked{driver: c.Driver, devices: devices, record: record, done: done}
	if err := locked.lock(ctx, mhz); err != nil {
		return nil, errors.Join(err, locked.Reset())
	}
	return locked, nil
}

// newRecord writes a record with a new name.
func newRecord(dir string, devices []gpu.Device) (string, error) {
	record := filepath.Join(dir, rand.Text())
	return record, writeRecord(record, devices)
}

// writeRecord atomically replaces the record with one for these devices. Without devices, it removes the record.
func writeRecord(record string, devices []gpu.Device) error {
	if len(devices) == 0 {
		return os.Remove(record)
	}
	var text bytes.Buffer
	for _, d := range devices {
		fmt.Fprintln(&text, d.UUID)
	}
	return fs.Replace(record, text.Bytes())
}

// patience is how long a device may take to reach the locked clock.
const (
	patience = 3 * time.Second
	pause    = 100 * time.Millisecond // between two readings
)

func (l *Locked) lock(ctx context.Context, mhz int) error {
	for i, d := range l.devices {
		if err := l.driver.LockClock(d, mhz); err != nil {
			// A device that refuses the lock refuses the reset, too: only the locked devices stay in the record.
			return errors.Join(fmt.Errorf("device %d: %w", d.Index, err), writeRecord(l.record, l.devices[:i]))
		}
	}
	end := time.Now().Add(patience)
	for _, d := range l.devices {
		for {
			r, err := l.driver.Read(d)
			if err != nil {
				return err
			}
			if r.SMClock == nil || *r.SMClock <= mhz+gpu.ClockStep {
				break
			}
			if !time.Now().Before(end) {
				return fmt.Errorf("device %d: the driver locked the SM clock at %d MHz, and it is %d MHz", d.Index, mhz,
					*r.SMClock)
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(pause):
			}
		}
	}
	return nil
}

// Reset unlocks the clocks. A device for which that fails is left out from now on. A second call does nothing.
func (l *Locked) Reset() (err error) {
	l.reset.Do(func() {
		err = resetRecord(l.driver, l.record)
		err = errors.Join(err, l.done())
	})
	return err
}

// resetRecord resets the clocks of a record and removes the record. A missing device counts as reset. A device that
// is still locked is quarantined: otherwise it would be measured as if its clock were free.
func resetRecord(d *gpu.Driver, record string) error {
	text, err := os.ReadFile(record)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, uuid := range strings.Fields(string(text)) {
		if resetErr := d.ResetClock(uuid); resetErr != nil {
			err = errors.Join(err, stillLocked(d, []string{uuid}, resetErr))
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

// stillLocked leaves out devices whose clocks could not be reset, and returns an error.
func stillLocked(d *gpu.Driver, uuids []string, why error) error {
	for _, dev := range d.Devices() {
		if slices.Contains(uuids, dev.UUID) {
			d.Lose(dev, fmt.Sprintf("its clock is still locked: %v", why))
		}
	}
	return fmt.Errorf("left out from now on, with a clock that is still locked: %s: %w", strings.Join(uuids, ", "), why)
}

// Guard waits for the end of alive, which ends with the process that locked the clocks of a record, and resets the
// clocks that are still locked.
func Guard(ctx context.Context, alive io.Reader, record, library string) error {
	_, _ = io.Copy(io.Discard, alive) // a broken pipe has ended, too
	if _, err := os.Stat(record); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	d := gpu.OpenDriver(ctx, gpu.Options{Library: library})
	defer d.Close()
	return resetRecord(d, record)
}

// ResetLeft resets clocks that were left locked by processes which were killed together with their guards. Their
// records are in a directory; nobody may lock clocks with records there meanwhile. lease leases a device by its UUID,
// with some patience, until release is called. ResetLeft returns the errors of the clocks that it could not reset,
// such as those of a device that another benchgraph has leased. Their records stay for the next call, and their
// devices are left out.
func ResetLeft(d *gpu.Driver, records string, lease func(uuid string) (release func(), err error)) (left []error) {
	files, err := os.ReadDir(records)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []error{err}
	}
	for _, f := range files {
		path := filepath.Join(records, f.Name())
		if strings.HasPrefix(f.Name(), ".") { // incomplete: no clock was locked yet
			_ = os.Remove(path)
		} else if err := resetLeft(d, path, lease); err != nil {
			left = append(left,
				fmt.Errorf("%w; apply as root, or reset it with nvidia-smi --reset-gpu-clocks and remove %s", err,
					path))
		}
	}
	return left
}

func resetLeft(d *gpu.Driver, record string, lease func(uuid string) (release func(), err error)) error {
	text, err := os.ReadFile(record)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a guard has just removed it
	}
	if err != nil {
		return err
	}
	uuids := strings.Fields(string(text))
	for _, uuid := range uuids {
		release, err := lease(uuid)
		if err != nil {
			return stillLocked(d, uuids,
				fmt.Errorf("an earlier apply locked it, and it is reset once nobody has leased %s: %w", uuid, err))
		}
		defer release()
	}
	return resetRecord(d, record)
}

// OffClock returns a text about clocks above the lock at mhz while a program ran; empty: none. It flags devices that
// never reached mhz, such as devices at their power limit.
func OffClock(sums []watch.Summary, mhz int) string {
	var odd []string
	for i := range sums {
		s := &sums[i]
		switch {
		case s.SMClock == nil:
		case s.SMClock.Max > float64(mhz+gpu.ClockStep):
			odd = append(odd, fmt.Sprintf("%s: SM clock of %.0f MHz, locked at %d", s.UUID, s.SMClock.Max, mhz))
		case s.SMClock.Max < float64(mhz-gpu.ClockStep):
			s.Flags = append(s.Flags, BelowLockedClock)
		}
	}
	return strings.Join(odd, "; ")
}

// BelowLockedClock is the flag of a device that never reached its locked SM clock.
const BelowLockedClock = "below_locked_clock"
