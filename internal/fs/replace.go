package fs

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Replace atomically replaces a file by one with the concatenated parts. See Draft.
func Replace(path string, parts ...[]byte) error { return replace(path, true, parts) }

// ReplaceSoon is Replace without syncing to disk: after a loss of power, the file may have any content. It is for
// files whose reader recognizes a damaged file and does without it.
func ReplaceSoon(path string, parts ...[]byte) error { return replace(path, false, parts) }

func replace(path string, durably bool, parts [][]byte) error {
	d, err := Begin(path)
	if err != nil {
		return err
	}
	defer d.Drop()
	w := bufio.NewWriterSize(d, 1<<16) // there may be thousands of parts
	for _, part := range parts {
		_, _ = w.Write(part) // Flush returns the first error
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return d.publish(durably)
}

// Draft is a temporary file that will replace the file at a path. A reader of the path finds the old or the new
// content, also after a crash. If the path is a link, its target is replaced. If the path is no regular file, such as
// /dev/null or a pipe, the content is written to it.
type Draft struct {
	*os.File
	path    string
	special *os.File // open if the path is no regular file; nil otherwise
}

// Begin makes a draft. The caller must call Drop.
func Begin(path string) (*Draft, error) {
	path, special, err := target(path)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if special != nil {
		dir = "" // the directory for temporary files
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	d := &Draft{f, path, special}
	if err != nil {
		d.Drop()
		return nil, err
	}
	return d, nil
}

// target returns the path to replace: path, or the target of a link. If that is no regular file, target opens it for
// writing.
func target(path string) (file string, special *os.File, err error) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().IsRegular() {
		return path, nil, nil
	}
	// The kernel refuses to follow links of other users in a directory like /tmp.
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return path, nil, nil // a broken link is replaced
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

// Publish gives the path the content of the draft, and syncs it to disk; a file gets mode 0644. After an error, a
// regular file has its old content.
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

// Drop removes the temporary file of an unpublished draft.
func (d *Draft) Drop() {
	_ = d.special.Close() // for nil, this does nothing and returns an error
	if d.File != nil {
		_ = d.Close()
		_ = os.Remove(d.Name())
	}
}

// Sync syncs the content of a file, or the names in a directory, to disk.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
