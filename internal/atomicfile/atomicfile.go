// Package atomicfile replaces files whole: a reader, and whoever looks after a crash, finds the old content or the new one.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write makes the file at path hold the parts, one after the other, with the mode 0644. It writes beside the path, syncs, renames, and
// syncs the directory. When Write fails, the file is as it was before.
func Write(path string, parts ...[]byte) error {
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
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
