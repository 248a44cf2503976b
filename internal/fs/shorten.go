package fs

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Shorten replaces the middle of a text file by a line that tells its size. The beginning and the end of the file stay,
// so many bytes of each, in whole lines if there are any. A file that is not longer stays as it is. Others may append
// to the file only if they wait meanwhile.
func Shorten(name string, keep int64) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() <= 2*keep {
		return err
	}
	head, tail := make([]byte, keep), make([]byte, keep)
	if _, err := f.ReadAt(head, 0); err != nil {
		return err
	}
	if _, err := f.ReadAt(tail, info.Size()-keep); err != nil && err != io.EOF {
		return err
	}
	if i := bytes.LastIndexByte(head, '\n'); i >= 0 {
		head = head[:i]
	}
	if _, line, ok := bytes.Cut(tail, []byte("\n")); ok && len(line) > 0 {
		tail = line
	}
	if err := f.Truncate(int64(len(head))); err != nil {
		return err
	}
	left := info.Size() - int64(len(head)+len(tail))
	_, err = f.WriteAt(fmt.Appendf(nil, "\nbenchgraph: %d bytes are left out here\n%s", left, tail), int64(len(head)))
	return err
}
