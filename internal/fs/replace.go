package fs

import (
	"errors"
	"os"
	"path/filepath"
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

// Rename gives a new file its name, in place of a regular file or of a link to one. What else has the name stays: as
// root, os.Rename would make a regular file of /dev/null, or of the link /dev/stdout.
func Rename(from, to string) error {
	if info, err := os.Stat(to); err == nil && !info.Mode().IsRegular() {
		return &os.PathError{Op: "replace", Path: to, Err: errNotRegular}
	}
	return os.Rename(from, to)
}

var errNotRegular = errors.New("it is there, and is no regular file")

// Sync writes the content of a file, or the names in a directory, to the disk.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
