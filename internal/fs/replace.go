package fs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Replace writes a file that holds the parts, one after the other. See Draft.
func Replace(path string, parts ...[]byte) error { return replace(path, true, parts) }

// ReplaceSoon is Replace for a file whose reader recognises a damaged one and does without it: nobody waits for the
// disk, and a loss of power may leave anything in the file.
func ReplaceSoon(path string, parts ...[]byte) error { return replace(path, false, parts) }

func replace(path string, durably bool, parts [][]byte) error {
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
	return d.publish(durably)
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
	path, special, err := target(path)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if special != nil {
		dir = "" // that of temporary files
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	d := &Draft{f, path, special}
	if err != nil {
		d.Drop()
		return nil, err
	}
	return d, nil
}

// target returns the path of the file that a path means: of a link, that of the file that the link leads to. What is no
// regular file is opened for writing, too.
func target(path string) (file string, special *os.File, err error) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().IsRegular() {
		return path, nil, nil
	}
	// The kernel refuses links that others have laid in a directory like /tmp.
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return path, nil, nil // a link that leads nowhere is replaced
	}
	if err != nil {
		return "", nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		return path, f, nil
	}
	file, resolved := filepath.EvalSymlinks(path)
	return file, nil, errors.Join(err, resolved, f.Close())
}

// Publish gives the path the content of the draft, durably and, as a file, with the mode 0644. After an error a regular
// file has its old content.
func (d *Draft) Publish() error { return d.publish(true) }

func (d *Draft) publish(durably bool) error {
	if d.special != nil {
		_, err := d.Seek(0, io.SeekStart)
		if err == nil {
			_, err = io.Copy(d.special, d.File)
		}
		return err
	}
	err := d.Chmod(0o644)
	if durably {
		err = errors.Join(err, d.Sync())
	}
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	if err := os.Rename(d.Name(), d.path); err != nil || !durably {
		return err
	}
	return Sync(filepath.Dir(d.path))
}

// Drop removes the temporary file of a draft that was not published.
func (d *Draft) Drop() {
	_ = d.special.Close() // where there is none, that is an error and does nothing
	if d.File != nil {
		_ = d.Close()
		_ = os.Remove(d.Name())
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
