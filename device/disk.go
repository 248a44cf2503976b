//go:build unix

package device

import (
	"fmt"

	"github.com/benchgraph/benchgraph/internal/printable"
	"golang.org/x/sys/unix"
)

// Disk is the file system on which nodes work. The zero value is one that nothing is known of, and that is never short.
type Disk struct {
	Dir  string // a directory on it
	Size int64  // bytes that may be used in all; 0: not known
	Free int64  // bytes that nobody uses at the moment
}

// DiskOf tells of the file system of a directory, at the moment of each call.
func DiskOf(dir string) func() Disk {
	return func() Disk {
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err != nil {
			return Disk{}
		}
		block := int64(fs.Bsize)
		free := int64(fs.Bavail) * block
		// some is kept for root
		return Disk{Dir: dir, Size: (int64(fs.Blocks)-int64(fs.Bfree))*block + free, Free: free}
	}
}

// disk is what is known of the disk, which is asked for only where some is needed.
func (p *LocalPool) disk(needed int64) Disk {
	if needed <= 0 || p.total.Disk == nil {
		return Disk{}
	}
	return p.total.Disk()
}

// diskFits says why so much room can never be granted, whatever is tidied up.
func (p *LocalPool) diskFits(needed int64) error {
	if d := p.disk(needed); d.Size > 0 && needed > d.Size {
		return fmt.Errorf("needs %s of disk; the file system of %s has %s", printable.Bytes(needed), d.Dir,
			printable.Bytes(d.Size))
	}
	return nil
}

// diskWaits refuses what there is no room for now. What a lease has already filled of its room counts twice, as used
// and as kept: how much that is nobody knows, and a disk that is full breaks everything.
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

// diskKept is the room that is kept for the leases.
func (p *LocalPool) diskKept() (kept int64) {
	for _, h := range p.leases {
		kept += h.disk
	}
	return kept
}
