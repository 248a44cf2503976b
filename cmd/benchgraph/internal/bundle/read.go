package bundle

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// Bounds for reading a bundle.
const (
	maxFiles     = 1_000_000
	maxNames     = 256 << 20 // bytes of all names
	maxStatement = 256 << 20 // bytes
)

// Contents is an unpacked bundle.
type Contents struct {
	Statement   Statement
	Digest      string            // SHA-256 of the statement's file
	Files       map[string]string // SHA-256 by name, without the statement
	Differences []string          // between the statement and the files
}

// Unpack writes the files of a bundle below dir, which must be empty. maxBytes bounds the sum of their sizes. It
// returns an error if the file is no bundle, or is a bundle that nobody should open; files that it wrote before the
// error stay. It writes only regular files, and nothing outside dir.
func Unpack(r io.Reader, dir string, maxBytes int64) (*Contents, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	buffered := bufio.NewReader(r)
	z, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("it is no gzip: %w", err)
	}
	z.Multistream(false)
	u := unpacking{root: root, in: tar.NewReader(z), left: maxBytes, most: maxBytes,
		Contents: Contents{Files: map[string]string{}}}
	if err := u.unpackAll(); err != nil {
		return nil, err
	}
	// The checksum follows the last byte.
	if n, err := io.Copy(io.Discard, io.LimitReader(z, 1<<20)); err != nil || n == 1<<20 {
		return nil, errors.Join(errors.New("there is something behind its last file"), err)
	}
	if _, err := buffered.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something behind its end")
	}
	if u.Digest == "" {
		return nil, fmt.Errorf("it has no %s", StatementFile)
	}
	u.Differences = u.Statement.differences(u.Files)
	return &u.Contents, nil
}

// unpacking is the state of unpacking a bundle.
type unpacking struct {
	Contents
	root        *os.Root
	in          *tar.Reader
	left, most  int64 // bytes
	files, name int   // how many files, and the bytes of their names
}

func (u *unpacking) unpackAll() error {
	for {
		header, err := u.in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is damaged: %w", err)
		}
		if err := u.unpackFile(header); err != nil {
			return err
		}
	}
}

// unpackFile unpacks one file.
func (u *unpacking) unpackFile(h *tar.Header) error {
	u.files++
	u.name += len(h.Name)
	switch {
	case h.Typeflag != tar.TypeReg:
		return fmt.Errorf("%.80q is no regular file", h.Name)
	case !Fits(h.Name):
		return fmt.Errorf("%.80q is no name of a file in a bundle", h.Name)
	case u.files > maxFiles || u.name > maxNames:
		return fmt.Errorf("it has more than %d files, or very long names", maxFiles)
	case h.Name == StatementFile:
		return u.readStatement(h.Size)
	case h.Size > u.left:
		return &TooLargeError{u.most}
	}
	u.left -= h.Size
	if dir := path.Dir(h.Name); dir != "." {
		if err := u.root.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("%.80q: %w", h.Name, err)
		}
	}
	f, err := u.root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("%.80q: %w", h.Name, err)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), u.in)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%.80q: %w", h.Name, err)
	}
	u.Files[h.Name] = hex.EncodeToString(sum.Sum(nil))
	return nil
}

func (u *unpacking) readStatement(size int64) error {
	if size > maxStatement || u.Digest != "" {
		return fmt.Errorf("its %s is too large, or there are two", StatementFile)
	}
	text, err := io.ReadAll(u.in)
	if err != nil {
		return fmt.Errorf("%s: %w", StatementFile, err)
	}
	if err := json.Unmarshal(text, &u.Statement); err != nil {
		return fmt.Errorf("%s: %w", StatementFile, err)
	}
	sum := sha256.Sum256(text)
	u.Digest = hex.EncodeToString(sum[:])
	return nil
}

// TooLargeError reports that a bundle has more bytes than may be unpacked.
type TooLargeError struct{ Bytes int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("it has more than %d bytes when it is unpacked", e.Bytes)
}
