package fs

import (
	"encoding/binary"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Claims coordinates processes that make things, each identified by a digest. The process that makes a thing locks
// one byte, derived from the digest, in a file that stays empty. The kernel releases the lock when the process ends.
type Claims struct {
	Path string

	mu   sync.Mutex
	file *os.File // nil until the first claim
	held map[[32]byte]bool
}

// Claim reserves the work on a thing until release is called; ok is false while another caller has it, in this
// process or another. On a file system without locks, processes do not see each other's claims, so the work may be
// done twice. On systems other than Linux, the same holds for two Claims of one process.
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
			_ = c.lock(digest, unix.F_UNLCK) // cannot fail if the lock succeeded
		}
	}, true
}

// open opens the file once. The caller must hold mu.
func (c *Claims) open() (err error) {
	if c.file == nil {
		c.file, err = os.OpenFile(c.Path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
		if err != nil {
			c.file = nil
		}
	}
	return err
}

// Close releases all claims.
func (c *Claims) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// lock locks or unlocks the byte of a digest without waiting. Two digests share a byte only if 62 of their bits are
// equal; their makers would then only exclude each other.
func (c *Claims) lock(digest [32]byte, how int16) error {
	lock := unix.Flock_t{Type: how, Start: int64(binary.BigEndian.Uint64(digest[:8]) >> 2), Len: 1}
	for {
		if err := unix.FcntlFlock(c.file.Fd(), setLock, &lock); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
