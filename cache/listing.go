package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// LongestPath bounds the depth of trees, in bytes, since a hostile task could make them as deep as it likes. A longer
// path could not be opened in one call anyway.
const LongestPath = 3500

// The modes of files: a result records only whether a file can be executed.
const (
	ModePlain      = 0o644
	ModeExecutable = 0o755
)

// buffers are for reading files. Most files are much smaller.
var buffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// HashReader returns the SHA-256 of all bytes of r, in hexadecimal digits, and their number.
func HashReader(ctx context.Context, r io.Reader) (sum string, size int64, err error) {
	h := sha256.New()
	buffer := buffers.Get().(*[128 << 10]byte)
	defer buffers.Put(buffer)
	buf := buffer[:]
	for {
		if ctx.Err() != nil {
			return "", 0, context.Cause(ctx)
		}
		n, err := r.Read(buf)
		h.Write(buf[:n])
		size += int64(n)
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), size, nil
		}
		if err != nil {
			return "", 0, err
		}
	}
}

// listing returns the canonical list of files, one a line: the quoted path; x, - or l; the size; the SHA-256 or the
// quoted target of a link. Digest is made from the list, and meta files keep it.
func listing(files []File) string {
	var b strings.Builder
	for _, f := range files {
		switch {
		case f.Link != "":
			fmt.Fprintf(&b, "%q l 0 %q\n", f.Path, f.Link)
		case f.Mode&0o100 != 0:
			fmt.Fprintf(&b, "%q x %d %s\n", f.Path, f.Size, f.SHA256)
		default:
			fmt.Fprintf(&b, "%q - %d %s\n", f.Path, f.Size, f.SHA256)
		}
	}
	return b.String()
}

// Digest returns the SHA-256 over the list of files, in hexadecimal digits.
func Digest(files []File) string {
	sum := sha256.Sum256([]byte("benchgraph files 1\n" + listing(files)))
	return hex.EncodeToString(sum[:])
}

// Lists reports whether the Digest of m is that of its Files.
func (m *Meta) Lists() bool { return m.Digest == Digest(m.Files) }

// parseListing reads the output of listing.
func parseListing(text string) ([]File, error) {
	var files []File
	for line := range strings.Lines(text) {
		file, err := parseFile(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("list of files: line %d: %w", len(files)+1, err)
		}
		files = append(files, file)
	}
	return files, nil
}

func parseFile(line string) (File, error) {
	name, rest, err := cutQuoted(line)
	if err != nil {
		return File{}, err
	}
	fields, ok := strings.CutPrefix(rest, " ")
	kind, fields, _ := strings.Cut(fields, " ")
	size, last, complete := strings.Cut(fields, " ")
	if !ok || !complete || !filepath.IsLocal(name) {
		return File{}, fmt.Errorf("%.80q is no file", line)
	}
	file := File{Path: name, Mode: ModePlain, SHA256: last}
	if file.Size, err = strconv.ParseInt(size, 10, 64); err != nil {
		return File{}, err
	}
	switch kind {
	case "-":
	case "x":
		file.Mode = ModeExecutable
	case "l":
		file.SHA256 = ""
		file.Link, _, err = cutQuoted(last)
	default:
		err = fmt.Errorf("%.80q is no file", line)
	}
	return file, err
}

// Difference returns the first difference between the files found and those recorded; "" if there is none.
func Difference(found, recorded []File) string {
	for i := 0; i < len(found) || i < len(recorded); i++ {
		switch {
		case i == len(found) || i < len(recorded) && recorded[i].Path < found[i].Path:
			return recorded[i].Path + " is missing"
		case i == len(recorded) || found[i].Path < recorded[i].Path:
			return found[i].Path + " was added"
		case found[i].Size != recorded[i].Size:
			return fmt.Sprintf("%s has %d bytes instead of %d", found[i].Path, found[i].Size, recorded[i].Size)
		case found[i].SHA256 != recorded[i].SHA256:
			return found[i].Path + " has other contents than were stored"
		case found[i] != recorded[i]:
			return found[i].Path + " has another mode or target than was stored"
		}
	}
	return ""
}
