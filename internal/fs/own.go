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

// ErrIrregular is wrapped by the error for a link, a directory, a pipe or a device in the place of a file.
var ErrIrregular = errors.New("it is no regular file")

// ErrForeign is wrapped by the error for a file that another user may have written.
var ErrForeign = errors.New("it cannot be trusted")

// MakeOwn opens this user's file for reading and writing, and creates it if necessary. If another user's file is in
// its place, the error says what to do.
func MakeOwn(path string, flags int) (*os.File, error) {
	f, info, err := openRegular(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|flags)
	if errors.Is(err, ErrIrregular) {
		return nil, fmt.Errorf("%w: move it away", err)
	}
	if err != nil {
		return nil, err
	}
	if err := Owned(info); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w: move it away, or make it yours alone", path, err)
	}
	return f, nil
}

// MakeOrReadOwn is MakeOwn; on a read-only file system, it opens the file only for reading.
func MakeOrReadOwn(path string, flags int) (*os.File, error) {
	f, err := MakeOwn(path, flags)
	if errors.Is(err, unix.EROFS) {
		if own, _, err := OpenOwn(path); err == nil {
			return own, nil
		}
	}
	return f, err
}

// OpenOwn opens a regular file for reading that no other user can have written.
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

// ReadOwn returns the content of a file that OpenOwn accepts.
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

// Owned returns an error if another user may have written the file of info.
func Owned(info os.FileInfo) error {
	return OwnedBy(int(info.Sys().(*syscall.Stat_t).Uid), info.Mode().Perm())
}

// OwnedBy is Owned for a file with this owner and these permissions.
func OwnedBy(uid int, perm os.FileMode) error {
	if me := os.Geteuid(); uid != me {
		return fmt.Errorf("it belongs to user %d, not to you (%d)", uid, me)
	}
	if perm&0o022 != 0 {
		return fmt.Errorf("others can write to it (mode %04o)", perm)
	}
	return nil
}

// CheckOwner returns an error if anybody but this user can have written to a directory, or if it is a link: programs
// in such directories are run. The error names the remedy.
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
