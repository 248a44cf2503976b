// Package project reads the files of one project and none outside it.
//
// Every name is slash-separated and relative to the project's directory. Names that lead out of it, by "..", by an
// absolute path or by a symbolic link, are refused.
package project

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// MaxFile is the size in bytes above which a file is refused.
const MaxFile = 64 << 20

// maxCached bounds the bytes of files that are kept for a second reading.
const maxCached = 64 << 20

// Dir is a project's directory. It is not safe for concurrent use.
type Dir struct {
	path    string // absolute
	home    string // absolute path of the project in absolute paths of its files
	root    *os.Root
	last    *os.Root // directory of the last call of statNear; nil: none
	lastDir string   // name of last, with a slash at the end
	cached  map[string][]byte
	bytes   int
	list    []string // every file that a pattern may name, sorted; nil before the first walk
	matched int      // names that were compared with patterns
	globs   map[string][]string
	reads   Reads

	absolute Absolute
}

// Reads records the parts of a project's directory that were read: while they stay the same, another reading finds the
// same. Names are relative to the directory.
type Reads struct {
	Began   time.Time                    // time before the first access
	Content map[string][sha256.Size]byte // SHA-256 of each file that was read
	// whether each name that was asked for is a regular file, with links followed
	Regular map[string]bool
	Listed  []string        // directories whose names were listed
	Matched map[string]bool // files that patterns matched, read or not
}

// Reads returns the record of what was read so far.
func (d *Dir) Reads() Reads { return d.reads }

// Open opens the directory. The error says that there is none. home is the absolute path of the original if dir is a
// copy; empty: dir is no copy.
func Open(dir, home string) (*Dir, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("project directory: %w", err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("project directory: %w", err)
	}
	home = cmp.Or(home, abs)
	return &Dir{
		path: abs, home: home, absolute: Absolute{home, map[string]bool{}}, root: root,
		cached: map[string][]byte{}, globs: map[string][]string{},
		reads: Reads{Began: time.Now(), Content: map[string][sha256.Size]byte{}, Regular: map[string]bool{},
			Matched: map[string]bool{}},
	}, nil
}

// Close releases the directory.
func (d *Dir) Close() error {
	if d.last != nil {
		d.last.Close()
	}
	return d.root.Close()
}

// statNear is Stat of the project's directory. It keeps the directory of a name open: the next name is often in the
// same directory, and then takes a third of the system calls.
func (d *Dir) statNear(clean string) (iofs.FileInfo, error) {
	dir, name := path.Split(clean)
	if dir == "" {
		return d.root.Stat(clean)
	}
	if d.last == nil || d.lastDir != dir {
		last, err := d.root.OpenRoot(path.Clean(dir))
		if err != nil {
			return d.root.Stat(clean)
		}
		if d.last != nil {
			d.last.Close()
		}
		d.last, d.lastDir = last, dir
	}
	info, err := d.last.Stat(name)
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return d.root.Stat(clean) // a link may lead out of its directory, and not out of the project
	}
	return info, err
}

// Named returns the paths in a text that a command would read, as far as they were made absolute by Absolute.
func (d *Dir) Named(text string) []string {
	if !d.absolute.Some() {
		return nil
	}
	made, _ := d.absolute.Named(text)
	return made
}

// MadeAbsolute returns the paths that were made absolute so far.
func (d *Dir) MadeAbsolute() Absolute { return Absolute{d.home, maps.Clone(d.absolute.Made)} }

// Path returns the absolute path of the directory.
func (d *Dir) Path() string { return d.path }

// Home returns the absolute path of the directory, or of its original if it is a copy.
func (d *Dir) Home() string { return d.home }

// Clean returns the shortest form of a name. The error says that the name leads out of the project.
func Clean(name string) (string, error) {
	if name == "" {
		return "", errors.New("an empty path names no file")
	}
	clean := path.Clean(filepath.ToSlash(name))
	if strings.ContainsRune(clean, 0) || !filepath.IsLocal(clean) {
		return "", fmt.Errorf("%q lies outside the project's directory", name)
	}
	return clean, nil
}

// Above returns a sentence about the nearest root file in a directory above, in the same repository of git; "" if there
// is none.
func (d *Dir) Above(roots []string) string {
	dir := d.path
	for up := ".."; filepath.Dir(dir) != dir; up = filepath.Join(up, "..") {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
		for _, name := range roots {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return fmt.Sprintf("%s is there: -chdir=%s reads it. ", filepath.Join(up, name), dir)
			}
		}
	}
	return ""
}

// Has reports whether there is a file, or anything else, with that name.
func (d *Dir) Has(name string) bool {
	clean, err := Clean(name)
	if err == nil {
		_, err = d.stat(clean)
	}
	return !errors.Is(err, iofs.ErrNotExist)
}

// Size returns the size in bytes of a regular, readable file. The error wraps iofs.ErrNotExist if there is none.
func (d *Dir) Size(name string) (int64, error) {
	f, size, err := d.open(name)
	if err != nil {
		return 0, err
	}
	return size, f.Close()
}

// Read returns the content of a regular file of at most MaxFile bytes. The caller must not change it.
func (d *Dir) Read(name string) ([]byte, error) {
	if data, ok := d.cached[name]; ok {
		return data, nil
	}
	f, size, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > MaxFile {
		return nil, fmt.Errorf("%q has %d bytes; files above 64 MiB are not read", name, size)
	}
	// A file may grow while it is read.
	data, err := fs.ReadAll(f, MaxFile)
	if err != nil {
		return nil, fmt.Errorf("%q cannot be read: %w", name, cause(err))
	}
	d.reads.Content[path.Clean(name)] = sha256.Sum256(data)
	if d.bytes+len(data) <= maxCached {
		d.cached[name] = data
		d.bytes += len(data)
	}
	return data, nil
}

// open refuses anything but regular files before it opens them. It opens without blocking, since opening a pipe without
// a writer would never return.
func (d *Dir) open(name string) (*os.File, int64, error) {
	clean, err := Clean(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := d.stat(clean)
	if err != nil {
		return nil, 0, err
	}
	f, err := d.root.OpenFile(clean, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("%q cannot be read: %w", name, cause(err))
	}
	return f, info.Size(), nil
}

// stat follows links that stay inside the project and refuses everything but regular files.
func (d *Dir) stat(clean string) (iofs.FileInfo, error) {
	info, err := d.statNear(clean)
	d.reads.Regular[clean] = err == nil && info.Mode().IsRegular()
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return nil, missing(clean)
	case err != nil:
		return nil, fmt.Errorf("%q cannot be read: %w", clean, cause(err))
	case info.IsDir():
		return nil, fmt.Errorf("%q is a directory: write %q for all files below it", clean, clean+"/**")
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%q is not a regular file", clean)
	}
	return info, nil
}

// missing is the error for a name without a file.
type missing string

func (m missing) Error() string {
	return fmt.Sprintf("there is no file %q in the project's directory", string(m))
}

func (m missing) Is(target error) bool { return target == iofs.ErrNotExist }

// cause removes the operation and the path, which the messages here contain themselves.
func cause(err error) error {
	err = fs.Cause(err)
	if err.Error() == "path escapes from parent" { // the package os does not export this error
		return errors.New("a link leads out of the project; copy what the link points to into the project")
	}
	return err
}
