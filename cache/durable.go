package cache

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// writeFile makes path hold data, whole or not at all: written beside its place, synced and renamed.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// seal puts a line before body that says what it is and, by a checksum, whether it is whole.
func seal(magic string, body []byte) []byte {
	return append(fmt.Appendf(nil, "%s%08x\n", magic, checksum(body)), body...)
}

// unseal is the body of what seal made, or an error when it is of another kind or not whole.
func unseal(magic string, data []byte) (body []byte, err error) {
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return nil, errors.New("it does not begin as it should")
	}
	sum, body, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || string(sum) != fmt.Sprintf("%08x", checksum(body)) {
		return nil, errors.New("its checksum is wrong")
	}
	return body, nil
}

// checksum tells damage from what was written. Against malice, which could make a SHA-256 as well, it is of no use.
func checksum(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// flock takes a lock on an open file: unix.LOCK_SH or unix.LOCK_EX, perhaps with unix.LOCK_NB.
//
// The kernel gives it back when the process ends, however it ends, and it holds between containers that share a
// directory but not their process numbers; a recorded process number would do neither.
func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// flockWithin is flock with a limit to the waiting.
func flockWithin(f *os.File, how int, limit time.Duration) error {
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		err := flock(f, how|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			return err
		}
	}
}

// still says whether path still names the open file f.
func still(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, named)
}

// RemoveTree removes dir and all that is in it, also directories that are read-only (those of an entry, or of Go's
// module cache). That dir does not exist is no error.
func RemoveTree(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil // what cannot be opened up is reported by the removal
	})
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}
