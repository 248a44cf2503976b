package cache

import (
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// claimsFile is a file that stays empty. A process that makes an entry locks the byte that the key stands for. The
// kernel releases the lock when the process ends, however it ends.
const claimsFile = "claims"

// Claim says that the caller makes the entry of a key, until release is called; ok is false while another one does,
// here or in another process. On a file system without locks processes do not see each other's claims, so that the work
// may be done twice; nor do, on other systems than Linux, two Disks of one process.
func (d *Disk) Claim(key Key) (release func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.claimed[key] {
		return nil, false
	}
	f, err := d.openClaims()
	if err == nil {
		err = lockByte(f, key, unix.F_WRLCK)
	}
	if errors.Is(err, unix.EAGAIN) {
		return nil, false
	}
	if d.claimed == nil {
		d.claimed = map[Key]bool{}
	}
	d.claimed[key] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.claimed, key)
		if err == nil {
			_ = lockByte(f, key, unix.F_UNLCK) // it fails only where a lock would
		}
	}, true
}

// openClaims opens the file of claims, once. The caller has locked mu.
func (d *Disk) openClaims() (*os.File, error) {
	if d.claims == nil {
		f, err := os.OpenFile(d.path(claimsFile), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
		if err != nil {
			return nil, err
		}
		d.claims = f
	}
	return d.claims, nil
}

// lockByte locks or unlocks a key's byte, without waiting. Two keys with one byte are as rare as digests of 62 bits
// that are equal, and would only wait for each other.
func lockByte(f *os.File, key Key, how int16) error {
	lock := unix.Flock_t{Type: how, Start: int64(binary.BigEndian.Uint64(key[:8]) >> 2), Len: 1}
	for {
		if err := unix.FcntlFlock(f.Fd(), setLock, &lock); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
