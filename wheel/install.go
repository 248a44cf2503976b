package wheel

import (
	"archive/zip"
	"bufio"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Wheel is an open wheel whose files have all been compared with its RECORD.
type Wheel struct {
	Name    string // of the distribution, in its own spelling
	Version string
	Info    string // its .dist-info directory
	Pure    bool   // it has no machine code, and is installed as pure Python
	Files   []File

	file *os.File
}

// File is one file of a wheel.
type File struct {
	Name string // slash-separated, in the wheel
	// directory of the installation: lib, scripts, data or headers, or purelib or platlib if the wheel names one
	Scheme     string
	Path       string // slash-separated, below the scheme's directory
	SHA256     string // 64 hexadecimal digits
	Size       int64
	Executable bool

	entry *zip.File
}

// Open opens the file's content.
func (f File) Open() (io.ReadCloser, error) { return f.entry.Open() }

// Open opens and checks a wheel. It returns an error for a wheel that no installer should accept: one with entries
// that lead out of it, that its RECORD does not list, or that differ from the RECORD.
func Open(name string) (w *Wheel, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("wheel %s: %w", path.Base(name), err), f.Close())
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	a, err := readArchive(f, info.Size())
	if err != nil {
		return nil, err
	}
	w = &Wheel{Info: path.Dir(a.record), file: f}
	if err := w.identify(a); err != nil {
		return nil, err
	}
	return w, w.prove(a)
}

// Close closes the wheel.
func (w *Wheel) Close() error { return w.file.Close() }

// identify reads the wheel's name, version and kind.
func (w *Wheel) identify(a *archive) error {
	metadata, err := a.headers(w.Info + "/METADATA")
	if err != nil {
		return err
	}
	w.Name, w.Version = metadata["name"], metadata["version"]
	if w.Name == "" || w.Version == "" {
		return fmt.Errorf("entry %q: no name or no version", w.Info+"/METADATA")
	}
	if name, _, ok := strings.Cut(strings.TrimSuffix(w.Info, ".dist-info"), "-"); !ok ||
		NormalName(name) != NormalName(w.Name) {
		return fmt.Errorf("directory %q: METADATA says that it is %s %s", w.Info, w.Name, w.Version)
	}
	kind, err := a.headers(w.Info + "/WHEEL")
	w.Pure = kind["root-is-purelib"] == "true"
	return err
}

// headers reads the header lines of an entry. The keys are in lower case.
func (a *archive) headers(name string) (map[string]string, error) {
	f := a.files[name]
	if f == nil {
		return nil, fmt.Errorf("no %s: not a wheel", name)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("entry %q: %w", name, err)
	}
	defer r.Close()
	all := map[string]string{}
	lines := bufio.NewScanner(io.LimitReader(r, maxSourceFile))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.TrimSpace(line) == "" {
			break // the description follows
		}
		if key, value, ok := strings.Cut(line, ":"); ok && line[0] != ' ' {
			if key = strings.ToLower(key); all[key] == "" {
				all[key] = strings.TrimSpace(value)
			}
		}
	}
	return all, lines.Err()
}

// prove compares every entry with the RECORD.
func (w *Wheel) prove(a *archive) error {
	listed := map[string]row{}
	for _, r := range a.listing {
		listed[r.name] = r
	}
	for _, name := range a.names {
		f := File{Name: name, entry: a.files[name], Executable: a.files[name].Mode()&0o111 != 0}
		f.Scheme, f.Path = scheme(name)
		r, known := listed[name]
		delete(listed, name)
		if unlisted := name == a.record || name == a.signed; !known && !unlisted {
			return fmt.Errorf("entry %q: its RECORD does not list it", name)
		} else if err := f.prove(r, unlisted); err != nil {
			return fmt.Errorf("entry %q: %w", name, err)
		}
		w.Files = append(w.Files, f)
	}
	for name := range listed {
		return fmt.Errorf("RECORD lists %q, which is not in it", name)
	}
	return nil
}

// prove compares the file with its row in the RECORD, unless the file needs none.
func (f *File) prove(r row, unlisted bool) error {
	sum := sha256.New()
	also, err := hashOf(r.hash)
	if err != nil && !unlisted {
		return err
	}
	content, err := f.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	if strings.HasPrefix(r.hash, "sha256=") {
		also = sum // the usual hash
	}
	out := io.Writer(sum)
	if also != nil && also != sum {
		out = io.MultiWriter(sum, also)
	}
	if f.Size, err = io.Copy(out, content); err != nil {
		return err
	}
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	_, want, _ := strings.Cut(r.hash, "=")
	if also != nil && base64.RawURLEncoding.EncodeToString(also.Sum(nil)) != strings.TrimRight(want, "=") {
		return errors.New("is not what its RECORD says: the hash is another one")
	}
	if r.size != "" && r.size != fmt.Sprint(f.Size) {
		return fmt.Errorf("is not what its RECORD says: it has %d bytes, not %s", f.Size, r.size)
	}
	return nil
}

// hashOf returns the hash function of a hash in a RECORD.
func hashOf(text string) (hash.Hash, error) {
	name, _, _ := strings.Cut(text, "=")
	switch name {
	case "sha256":
		return sha256.New(), nil
	case "sha384":
		return sha512.New384(), nil
	case "sha512":
		return sha512.New(), nil
	}
	return nil, fmt.Errorf("its RECORD has no hash of it that counts (%q)", name)
}

// scheme returns the directory of an installation to which an entry belongs, and its path there.
func scheme(name string) (string, string) {
	top, rest, ok := strings.Cut(name, "/")
	if ok && strings.HasSuffix(top, ".data") {
		if kind, below, ok := strings.Cut(rest, "/"); ok &&
			slices.Contains([]string{"purelib", "platlib", "scripts", "data", "headers"}, kind) {
			return kind, below
		}
	}
	return "lib", name
}

// NormalName returns the normalized name of a distribution, by which names are compared.
func NormalName(name string) string {
	return strings.ToLower(separators().ReplaceAllString(name, "-"))
}

var separators = lazyregexp.New(`[-_.]+`)
