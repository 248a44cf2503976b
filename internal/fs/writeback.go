package fs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// writtenAhead is how many bytes of a file are written to disk at once.
const writtenAhead = 8 << 20

// Ahead is a file whose beginning the kernel writes to disk while the rest is still being written. The final sync
// then waits only for the last bytes, and returns earlier errors.
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

// Settle makes the kernel write the files below a directory to disk now, if they have more than so many bytes or some
// of them cannot be read. Otherwise the kernel would do it later, and disturb other programs.
func Settle(dir string, more int64) {
	used, err := Usage(false, dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !used.Hidden && used.Bytes <= more {
		return
	}
	if f, err := os.Open(filepath.Dir(dir)); err == nil { // dir itself may forbid to be opened
		_ = SyncAll(f) // the owner of the files syncs them again and gets the error
		f.Close()
	}
}
