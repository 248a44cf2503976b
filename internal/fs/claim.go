package fs

import (
	"encoding/binary"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Claims are of those who make things, each known by a digest, and are kept in a file of a path that stays empty. Who
// makes a thing locks the byte that the digest stands for. The kernel releases the lock when the process ends, however
// it ends.
type Claims struct {
	Path string

	mu   sync.Mutex
	file *os.File // nil until something is claimed
	held map[[32]byte]bool
}

// Claim says that the caller makes a thing, until release is called; ok is false while another one does, here or in
// another process. On a file system without locks processes do not see each other's claims, so that the work may be
// done twice; nor do, on other systems than Linux, two Claims of one process.
func (c *Claims) Claim(digest [32]byte) (release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[digest] {
		return nil, false
	}
	err := c.open()
	if err == nil {
		err = c.lock(digest, unix.F_WRLCK)
	}
	if errors.Is(err, unix.EAGAIN) {
		return nil, false
	}
	if c.held == nil {
		c.held = map[[32]byte]bool{}
	}
	c.held[digest] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.held, digest)
		if err == nil {
			_ = c.lock(digest, unix.F_UNLCK) // it fails only where a lock would
		}
	}, true
}

// open opens the file, once. The caller has locked mu.
func (c *Claims) open() (err error) {
	if c.file == nil {
		c.file, err = os.OpenFile(c.Path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
		if err != nil {
			c.file = nil
		}
	}
	return err
}

// Close gives all claims up.
func (c *Claims) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// lock locks or unlocks the byte of a digest, without waiting. Two digests with one byte are as rare as digests of 62
// bits that are equal, and would only wait for each other.
func (c *Claims) lock(digest [32]byte, how int16) error {
	lock := unix.Flock_t{Type: how, Start: int64(binary.BigEndian.Uint64(digest[:8]) >> 2), Len: 1}
	for {
		if err := unix.FcntlFlock(c.file.Fd(), setLock, &lock); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
