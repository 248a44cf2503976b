package fs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// Replace writes a file that holds the parts, one after the other, with the mode 0644. A reader finds the old content
// or the new content, also after a crash: Replace writes a temporary file in the same directory, syncs and renames the
// file, and syncs the directory. After an error the file has its old content.
func Replace(path string, parts ...[]byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err == nil {
			_, err = f.Write(part)
		}
	}
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err == nil {
		err = Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return Sync(dir)
}

// Rename gives a file another name, which the error tells alone. Where a directory has that name, the error is EISDIR;
// that of os.Rename says only that something is there.
func Rename(old, path string) error {
	err := os.Rename(old, path)
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		if err = link.Err; err == syscall.EEXIST {
			err = syscall.EISDIR
		}
		return &os.PathError{Op: "rename", Path: path, Err: err}
	}
	return err
}

// Sync writes the content of a file, or the names in a directory, to the disk.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
