//go:build unix

package device

import (
	"fmt"

	"github.com/benchgraph/benchgraph/internal/printable"
	"golang.org/x/sys/unix"
)

// Disk is the file system on which nodes work. The zero value is unknown and never short.
type Disk struct {
	Dir  string // a directory on it
	Size int64  // usable bytes; 0: not known
	Free int64  // free bytes
}

// DiskOf returns a function that returns the current state of a directory's file system.
func DiskOf(dir string) func() Disk {
	return func() Disk {
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err != nil {
			return Disk{}
		}
		block := int64(fs.Bsize)
		free := int64(fs.Bavail) * block
		// root's reserve is not usable
		return Disk{Dir: dir, Size: (int64(fs.Blocks)-int64(fs.Bfree))*block + free, Free: free}
	}
}

// disk returns the state of the disk. It asks only if disk space is needed.
func (p *LocalPool) disk(needed int64) Disk {
	if needed <= 0 || p.total.Disk == nil {
		return Disk{}
	}
	return p.total.Disk()
}

// diskFits returns an error if the whole disk is smaller than needed.
func (p *LocalPool) diskFits(needed int64) error {
	if d := p.disk(needed); d.Size > 0 && needed > d.Size {
		return fmt.Errorf("needs %s of disk; the file system of %s has %s", printable.Bytes(needed), d.Dir,
			printable.Bytes(d.Size))
	}
	return nil
}

// diskWaits refuses a request for which there is no room now. The files that a lease has already written count twice,
// as used and as reserved: their size is not known, and a full disk would break everything.
func (p *LocalPool) diskWaits(needed int64) *Refusal {
	d := p.disk(needed)
	kept := p.diskKept()
	if d.Size == 0 || needed <= d.Free-kept {
		return nil
	}
	text := fmt.Sprintf("%s of disk (%s of %s are free", printable.Bytes(needed), printable.Bytes(d.Free),
		printable.Bytes(d.Size))
	if kept > 0 {
		text += fmt.Sprintf(", and %s are kept for what runs", printable.Bytes(kept))
	}
	return &Refusal{WaitsFor: text + ")", Outside: kept == 0, Disk: true}
}

// diskKept returns the bytes that are reserved for the leases.
func (p *LocalPool) diskKept() (kept int64) {
	for _, h := range p.leases {
		kept += h.disk
	}
	return kept
}
