package gpu

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/benchgraph/benchgraph/device/gpu/xid"
)

// Quarantine is a device that is not granted any more, and why.
type Quarantine struct {
	Index   int    `json:"index"`
	UUID    string `json:"uuid"`
	Why     string `json:"reason"`
	Lasting bool   `json:"lasting"` // as long as the Driver is open; otherwise until the device is free
}

func (q Quarantine) String() string {
	until := "until it is free"
	if q.Lasting {
		until = "from now on"
	}
	return fmt.Sprintf("device %d (%s) is left out %s: %s", q.Index, q.UUID, until, q.Why)
}

// Tell sets a function that is called once for each later Quarantine, from any goroutine.
func (d *Driver) Tell(tell func(Quarantine)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tell = tell
}

// LeaveOut reports that a device is left out until it is free; watch.Ready decides when that is.
func (d *Driver) LeaveOut(of Device, why string) { d.leaveOut(of, why, false) }

// Lose leaves a device out from now on.
func (d *Driver) Lose(of Device, why string) { d.leaveOut(of, why, true) }

func (d *Driver) leaveOut(of Device, why string, lasting bool) {
	d.mu.Lock()
	before, known := d.left[of.UUID]
	if known && (before.Lasting || !lasting) {
		d.mu.Unlock()
		return
	}
	if d.left == nil {
		d.left = map[string]Quarantine{}
	}
	q := Quarantine{Index: of.Index, UUID: of.UUID, Why: why, Lasting: lasting}
	d.left[of.UUID] = q
	tell := d.tell
	d.mu.Unlock()
	if tell != nil {
		tell(q)
	}
}

// Quarantined returns the devices that have been left out so far, including those that are free again.
func (d *Driver) Quarantined() []Quarantine {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := slices.AppendSeq([]Quarantine{}, maps.Values(d.left))
	slices.SortFunc(all, func(a, b Quarantine) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.UUID, b.UUID))
	})
	return all
}

// Lost returns why a device is not granted any more; empty: it may be granted. It serves as Options.Lost of a pool.
func (d *Driver) Lost(of Device) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if q := d.left[of.UUID]; q.Lasting {
		return q.Why
	}
	return ""
}

// doubtful is the number of successive blocks that must be void because of a device's speed before other devices are
// preferred.
const doubtful = 2

// Doubt records that a block on these devices was void because they had become slower. It returns the devices that
// have just become doubtful.
func (d *Driver) Doubt(devices []Device) (fresh []Device) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.doubts == nil {
		d.doubts = map[string]int{}
	}
	for _, dev := range devices {
		if d.doubts[dev.UUID]++; d.doubts[dev.UUID] == doubtful {
			fresh = append(fresh, dev)
		}
	}
	return fresh
}

// Trust records that a block on these devices was valid.
func (d *Driver) Trust(devices []Device) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dev := range devices {
		delete(d.doubts, dev.UUID)
	}
}

// Doubtful reports whether other devices are granted before this one. It serves as Options.Last of a pool.
func (d *Driver) Doubtful(of Device) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.doubts[of.UUID] >= doubtful
}

// judge loses a device if a reading or its error shows that the device is broken.
func (d *Driver) judge(of Device, r Reading, err error) {
	if errors.Is(err, ErrGone) {
		d.Lose(of, err.Error())
	}
	for _, code := range r.Xids {
		if text, blamed := xid.Explain(code); blamed {
			d.Lose(of, text)
		}
	}
}
