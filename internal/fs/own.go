package fs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrIrregular is wrapped by the error for what should be a file and is a link, a directory, a pipe or a device.
var ErrIrregular = errors.New("it is no regular file")

// ErrForeign is wrapped by the error for a file that somebody else may have written.
var ErrForeign = errors.New("it cannot be trusted")

// OpenRegular opens a file to be read. It follows no link and does not wait for what is no file, as a pipe would make
// it.
func OpenRegular(path string) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) { // a link, a socket
		return nil, nil, fmt.Errorf("%s: %w", path, ErrIrregular)
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", path, ErrIrregular)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// MakeOwn opens a file of ours to be read and written, and makes it if it is not there. The error for what somebody
// else put in its place says what to do.
func MakeOwn(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK|unix.O_NOFOLLOW|flags, 0o644)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) {
		return nil, fmt.Errorf("%s: %w: move it away", path, ErrIrregular)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w: move it away", path, ErrIrregular)
	}
	if err == nil {
		if err = Owned(info); err != nil {
			err = fmt.Errorf("%s: %w: move it away, or make it yours alone", path, err)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// MakeOrReadOwn is MakeOwn. On a file system that can only be read, the file is opened to be read.
func MakeOrReadOwn(path string, flags int) (*os.File, error) {
	f, err := MakeOwn(path, flags)
	if errors.Is(err, unix.EROFS) {
		if own, _, err := OpenOwn(path); err == nil {
			return own, nil
		}
	}
	return f, err
}

// OpenOwn opens, to be read, a regular file that nobody else can have written.
func OpenOwn(path string) (*os.File, os.FileInfo, error) {
	f, info, err := OpenRegular(path)
	if err != nil {
		return nil, nil, err
	}
	if err := Owned(info); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w: %w", path, ErrForeign, err)
	}
	return f, info, nil
}

// ReadOwn is the content of what OpenOwn opens.
func ReadOwn(path string) ([]byte, error) {
	f, info, err := OpenOwn(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var text bytes.Buffer
	text.Grow(int(info.Size()) + bytes.MinRead)
	_, err = text.ReadFrom(f)
	return text.Bytes(), err
}

// Owned says why somebody else may have written what info is of.
func Owned(info os.FileInfo) error {
	return OwnedBy(int(info.Sys().(*syscall.Stat_t).Uid), info.Mode().Perm())
}

// OwnedBy is Owned for a file of a user, with permissions.
func OwnedBy(uid int, perm os.FileMode) error {
	if me := os.Geteuid(); uid != me {
		return fmt.Errorf("it belongs to user %d, not to you (%d)", uid, me)
	}
	if perm&0o022 != 0 {
		return fmt.Errorf("others can write to it (mode %04o)", perm)
	}
	return nil
}

// CheckOwner makes sure that only this user can have put anything into a directory, which is no link: what lies there
// is run and believed. The error says what to do about it.
func CheckOwner(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no directory, but something (%s) in its place: move it away", strconv.Quote(dir),
			info.Mode().Type())
	}
	if err := Owned(info); err != nil {
		name := strconv.Quote(dir)
		return fmt.Errorf("%w, so what is in %s cannot be trusted: choose another directory. If nobody else uses it, "+
			"chown -R %d %[2]s and chmod -R go-w %[2]s make it yours", err, name, os.Geteuid())
	}
	return nil
}
