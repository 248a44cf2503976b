package fs

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// TooLong is the error for content that has more bytes than its reader accepts.
type TooLong struct{ Most int64 }

func (e *TooLong) Error() string {
	if e.Most >= 1<<20 {
		return fmt.Sprintf("over %d MiB", e.Most>>20)
	}
	return fmt.Sprintf("over %d bytes", e.Most)
}

// ReadAll reads r until its end. If r has more than most bytes, the error is a *TooLong.
func ReadAll(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, &TooLong{most}
	}
	return text, err
}

// ReadFile reads a regular file of at most that many bytes, or the one to which a link leads. It does not block on a
// pipe. The error wraps ErrIrregular or a *TooLong.
func ReadFile(path string, most int64) (text []byte, err error) {
	f, _, err := openRegular(path, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if text, err = ReadAll(f, most); err != nil {
		err = fmt.Errorf("%s: %w", path, Cause(err))
	}
	return text, err
}

// OpenRegular opens a regular file for reading. It follows no link and does not block on a pipe.
func OpenRegular(path string) (*os.File, os.FileInfo, error) {
	return openRegular(path, unix.O_NOFOLLOW)
}

// openRegular opens a regular file, and creates it if the flags say so. The error for anything else wraps ErrIrregular.
func openRegular(path string, flags int) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(path, unix.O_NONBLOCK|flags, 0o644)
	// a link, a directory, a socket
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) {
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
