package fs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Replace writes a file that holds the parts, one after the other. See Draft.
func Replace(path string, parts ...[]byte) error {
	d, err := Begin(path)
	if err != nil {
		return err
	}
	defer d.Drop()
	for _, part := range parts {
		if _, err := d.Write(part); err != nil {
			return err
		}
	}
	return d.Publish()
}

// Draft is a temporary file that is to become the file of a path. A reader of the path finds the old content or the new
// content, also after a crash. Of a link, the file is meant that the link leads to. What is no regular file, such as
// /dev/null or a pipe, is written to and stays.
type Draft struct {
	*os.File
	path    string
	special *os.File // what is no regular file; nil: the path names a regular file, or nothing
}

// Begin makes a draft. The caller ends it by Drop.
func Begin(path string) (*Draft, error) {
	d := &Draft{path: path}
	dir, name := filepath.Dir(path), "."+filepath.Base(path)+"-*"
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		// The kernel refuses links that others have laid in a directory like /tmp.
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		switch {
		case err == nil:
			if info, err = f.Stat(); err == nil && info.Mode().IsRegular() {
				d.path, err = filepath.EvalSymlinks(path)
				dir = filepath.Dir(d.path)
				err = errors.Join(err, f.Close())
			} else {
				d.special, dir = f, ""
			}
			if err != nil {
				return nil, err
			}
		case !errors.Is(err, os.ErrNotExist): // a link that leads nowhere is replaced
			return nil, err
		}
	}
	f, err := os.CreateTemp(dir, name)
	if err != nil {
		if d.special != nil {
			err = errors.Join(err, d.special.Close())
		}
		return nil, err
	}
	d.File = f
	return d, nil
}

// Publish gives the path the content of the draft, durably and, as a file, with the mode 0644. After an error a regular
// file has its old content.
func (d *Draft) Publish() error {
	if d.special != nil {
		_, err := d.Seek(0, io.SeekStart)
		if err == nil {
			_, err = io.Copy(d.special, d.File)
		}
		return err
	}
	if err := errors.Join(d.Chmod(0o644), d.Sync(), d.Close()); err != nil {
		return err
	}
	if err := os.Rename(d.Name(), d.path); err != nil {
		return err
	}
	return Sync(filepath.Dir(d.path))
}

// Drop removes the temporary file of a draft that was not published.
func (d *Draft) Drop() {
	_ = d.Close()
	_ = os.Remove(d.Name())
	if d.special != nil {
		_ = d.special.Close()
	}
}

// Sync writes the content of a file, or the names in a directory, to the disk.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
