package cache

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// errIrregular is wrapped by the error for what should be a file and is a link, a directory, a pipe or a device.
var errIrregular = errors.New("it is no regular file")

// errForeign is wrapped by the error for a file that somebody else may have written.
var errForeign = errors.New("it cannot be trusted")

// OpenRegular opens a file to be read. It follows no link and does not wait for what is no file, as a pipe would make
// it.
func OpenRegular(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) { // a link, a socket
		return nil, nil, fmt.Errorf("%s: %w", path, errIrregular)
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", path, errIrregular)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// openOwn opens a file of ours to be read and written, and makes it if it is not there. The error for what somebody
// else put in its place says what to do.
func openOwn(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK|unix.O_NOFOLLOW|flags, 0o644)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) {
		return nil, fmt.Errorf("%s: %w: move it away", path, errIrregular)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w: move it away", path, errIrregular)
	}
	if err == nil {
		if err = owned(info); err != nil {
			err = fmt.Errorf("%s: %w: move it away, or make it yours alone", path, err)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OpenOwn opens, to be read, a regular file that nobody else can have written.
func OpenOwn(path string) (*os.File, fs.FileInfo, error) {
	f, info, err := OpenRegular(path)
	if err != nil {
		return nil, nil, err
	}
	if err := owned(info); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w: %w", path, errForeign, err)
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

// owned says why somebody else may have written what info is of.
func owned(info fs.FileInfo) error {
	return ownedBy(int(info.Sys().(*syscall.Stat_t).Uid), info.Mode().Perm())
}

// ownedBy is owned for a file of a user, with permissions.
func ownedBy(uid int, perm fs.FileMode) error {
	if me := os.Geteuid(); uid != me {
		return fmt.Errorf("it belongs to user %d, not to you (%d)", uid, me)
	}
	if perm&0o022 != 0 {
		return fmt.Errorf("others can write to it (mode %04o)", perm)
	}
	return nil
}

// seal puts a line before body that says what it is and, by a checksum, whether it is whole.
func seal(magic string, body []byte) []byte {
	return append(fmt.Appendf(nil, "%s%08x\n", magic, checksum(body)), body...)
}

// unseal is the body of what seal made, or an error when it is of another kind or not whole.
func unseal(magic string, data []byte) (body []byte, err error) {
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return nil, errors.New("it does not begin as it should")
	}
	sum, body, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || string(sum) != fmt.Sprintf("%08x", checksum(body)) {
		return nil, errors.New("its checksum is wrong")
	}
	return body, nil
}

// checksum tells damage from what was written. Against malice, which could make a SHA-256 as well, it is of no use.
func checksum(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }
