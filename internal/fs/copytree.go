package fs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// CopyTree copies the content of src into dst, which need not exist. It copies instead of linking: commands may write
// to their input, and stored files must never change.
func CopyTree(dst, src string) error {
	return filepath.WalkDir(src, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, name)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(to, 0o755)
		case d.Type() == os.ModeSymlink:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			return os.Symlink(target, to)
		}
		return CopyFile(to, name)
	})
}

// CopyFile copies a regular file to a new file, with its executable bits.
func CopyFile(dst, src string) error { return CopyTo(dst, src, nil) }

// CopyTo is CopyFile; it also writes the content to also, unless that is nil.
func CopyTo(dst, src string, also io.Writer) error {
	in, info, err := openRegular(src, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return err
	}
	executable := info.Mode().Perm() & 0o111
	if executable != 0 {
		// If another goroutine forks while the program is open for writing, the child holds the program open until
		// its own exec, and until then the program cannot be executed ("text file busy").
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
	}
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644|executable)
	if err != nil {
		return err
	}
	if also == nil {
		_, err = io.Copy(out, in)
	} else {
		buf := make([]byte, min(max(info.Size(), 1<<9), 128<<10))
		_, err = io.CopyBuffer(io.MultiWriter(out, also), struct{ io.Reader }{in}, buf)
	}
	return errors.Join(err, out.Close())
}
