package fs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// writtenAhead is how many bytes of a file are handed to the disk at once.
const writtenAhead = 8 << 20

// Ahead is a file whose beginning the kernel writes to the disk while the rest is still to come. The sync at the end
// then waits for the last bytes alone, and tells what went wrong before.
type Ahead struct {
	*os.File
	written, begun int64
}

// Write writes to the file.
func (a *Ahead) Write(b []byte) (int, error) {
	n, err := a.File.Write(b)
	if a.written += int64(n); a.written-a.begun >= writtenAhead {
		writeBack(a.File, a.begun, a.written-a.begun)
		a.begun = a.written
	}
	return n, err
}

// Settle has the kernel write to the disk now what lies below a directory, where that is more than some bytes, or some
// of it cannot be read: else it would do so later, beside whatever runs then.
func Settle(dir string, more int64) {
	err := filepath.WalkDir(dir, func(_ string, _ fs.DirEntry, err error) error { return err })
	if n, _ := Usage(dir); errors.Is(err, fs.ErrNotExist) || err == nil && n <= more {
		return
	}
	if f, err := os.Open(filepath.Dir(dir)); err == nil { // it may forbid to be opened itself
		_ = SyncAll(f) // whoever keeps the files syncs them again, and tells
		f.Close()
	}
}
