package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// File is a file for a bundle.
type File struct {
	Name string // Fits must be true
	Size int64
	Open func() (io.ReadCloser, error)
}

// Text returns a file with this content.
func Text(name string, content []byte) File {
	return File{name, int64(len(content)), func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}
}

// longestName bounds the bytes of a file's name.
const longestName = 4096

// Fits reports whether a name can be that of a file in a bundle: slash-separated, in its shortest form, inside the
// bundle, and printable, so that it means the same everywhere.
func Fits(name string) bool {
	return len(name) <= longestName && utf8.ValidString(name) && path.Clean(name) == name && filepath.IsLocal(name) &&
		name != "." &&
		!strings.ContainsRune(name, '\\') && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsPrint(r)
	})
}

// Write writes a bundle of files in the order of their names, with a statement about them. It returns an error if two
// files have one name, or if a file is shorter than its Size.
func Write(w io.Writer, files []File, p Predicate) error {
	files = slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	z := gzip.NewWriter(w)
	out := tar.NewWriter(z)
	digests := make(map[string]string, len(files))
	for _, f := range files {
		if !Fits(f.Name) || f.Name >= StatementFile || digests[f.Name] != "" {
			return fmt.Errorf("%q cannot be a file of a bundle, or is one already", f.Name)
		}
		digest, err := add(out, f)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		digests[f.Name] = digest
	}
	text, err := encode(digests, p)
	if err == nil {
		_, err = add(out, Text(StatementFile, text))
	}
	return errors.Join(err, out.Close(), z.Close())
}

// add writes one file and returns the SHA-256 of its bytes.
func add(out *tar.Writer, f File) (string, error) {
	r, err := f.Open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Size: f.Size, Mode: 0o644, ModTime: time.Unix(0, 0)}
	if err := out.WriteHeader(header); err != nil {
		return "", err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(r, f.Size))
	if err == nil && n < f.Size {
		err = fmt.Errorf("it has %d bytes instead of %d", n, f.Size)
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}
