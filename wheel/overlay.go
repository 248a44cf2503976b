// Package wheel opens, rewrites and checks Python wheels. An overlay replaces source files in a result that was built
// without reading them.
//
// If only Python files differ between two commits, a compiled wheel need not be compiled again: files that match the
// overlay patterns come from one source tree, all other files from one build. Wheels are rewritten inside; plain
// files are replaced.
package wheel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/glob"
)

// recordName is the file in a built result that lists the files of the source tree that matched the overlay patterns.
const recordName = ".benchgraph-overlay"

const maxRecord = 64 << 20

// Record writes the list of source files that match the patterns into a built result. With the list, Apply
// distinguishes generated files, which stay, from source files that the other source lacks, which are removed.
func Record(source string, patterns []string, built string) error {
	files, err := match(source, patterns)
	if err != nil {
		return err
	}
	return writeRecord(files, built)
}

func writeRecord(files []string, built string) error {
	text, err := json.Marshal(files)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(built, recordName), text, 0o644)
}

// Apply writes the built result to out, which must be empty or missing, and replaces files that match the doublestar
// patterns by those of the source tree.
//
// In wheels of the result (*.whl), it replaces files below each top-level package, which may be under src/ or python/
// in the source tree. Other files are replaced at the same relative path; in a result without wheels, matching source
// files are also added. Files of the result that match a pattern but are missing in the source tree are removed,
// unless Record shows that they were also missing in the tree of the build. Links must not lead out of the trees. A
// wheel with invalid entries (absolute or duplicate names, links, huge sizes) is refused.
func Apply(built, source string, patterns []string, out string) error {
	files, err := match(source, patterns)
	if err != nil {
		return err
	}
	if there, err := os.ReadDir(out); err == nil && len(there) > 0 {
		return fmt.Errorf("directory %s: not empty", out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	l := &layer{patterns: patterns, files: files}
	for _, r := range []struct {
		at   **os.Root
		name string
	}{{&l.built, built}, {&l.source, source}, {&l.out, out}} {
		if *r.at, err = os.OpenRoot(r.name); err != nil {
			return err
		}
		defer (*r.at).Close()
	}
	if err := l.readRecord(); err != nil {
		return err
	}
	return l.apply()
}

// layer is a running overlay.
type layer struct {
	built, source, out *os.Root
	patterns           []string
	files              []string // files of the source that match the patterns, sorted
	before             []string // the same of the build's source tree, sorted
	recorded           bool     // before is known
}

func (l *layer) readRecord() error {
	f, err := l.built.Open(recordName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, maxRecord)).Decode(&l.before); err != nil {
		return fmt.Errorf("%s: %w", recordName, err)
	}
	slices.Sort(l.before)
	l.recorded = true
	return nil
}

// has reports whether the source has the file and the file belongs to the overlay.
func (l *layer) has(name string) bool {
	_, ok := slices.BinarySearch(l.files, name)
	return ok
}

// gone reports whether a file of the result, named as in the source tree, must be removed.
func (l *layer) gone(name string) bool {
	if l.has(name) || !glob.Match(l.patterns, name) {
		return false
	}
	if !l.recorded {
		return true
	}
	_, was := slices.BinarySearch(l.before, name)
	return was
}

func (l *layer) apply() error {
	var plain, wheels []string
	err := fs.WalkDir(l.built.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == recordName || name == ".":
		case d.IsDir():
			err = mkdir(l.out, name)
		case d.Type().IsRegular() && path.Ext(name) == ".whl":
			wheels = append(wheels, name)
		default:
			plain = append(plain, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range plain {
		from := l.built
		if l.gone(name) {
			continue
		} else if l.has(name) {
			from = l.source
		}
		if err := copyFile(from, l.out, name); err != nil {
			return err
		}
	}
	for _, name := range wheels {
		if err := l.wheel(name); err != nil {
			return fmt.Errorf("wheel %s: %w", name, err)
		}
	}
	if len(wheels) > 0 {
		return nil // files outside of the wheels are not wanted in the result
	}
	for _, name := range l.files {
		if _, found := slices.BinarySearch(plain, name); found {
			continue
		}
		if err := mkdir(l.out, path.Dir(name)); err != nil {
			return err
		}
		if err := copyFile(l.source, l.out, name); err != nil {
			return err
		}
	}
	return nil
}

// match returns the files and links below dir that match a pattern, sorted.
func match(dir string, patterns []string) ([]string, error) {
	if err := glob.Check(patterns); err != nil {
		return nil, fmt.Errorf("overlay: %w", err)
	}
	found := []string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && glob.Match(patterns, name) {
			found = append(found, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("overlay source: %w", err)
	}
	slices.Sort(found)
	return found, nil
}

// InPackage returns a path of a source tree relative to the directory in which packages are installed: without a
// leading src or python.
func InPackage(name string) string {
	for _, prefix := range prefixes[1:] {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest
		}
	}
	return name
}

func mkdir(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	return root.MkdirAll(dir, 0o755)
}

// copyFile copies a file or a link to the same path in another tree, with its executable bit.
func copyFile(from, to *os.Root, name string) (err error) {
	info, err := from.Lstat(name)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return copyLink(from, to, name)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("file %s: neither a file nor a link", name)
	}
	in, err := from.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := to.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Chmod(permission(info.Mode()))
}

func copyLink(from, to *os.Root, name string) error {
	target, err := from.Readlink(name)
	if err != nil {
		return err
	}
	if path.IsAbs(target) || !fs.ValidPath(path.Join(path.Dir(name), target)) {
		return fmt.Errorf("link %s: its target %q leads out of the tree", name, target)
	}
	return to.Symlink(target, name)
}

func permission(mode fs.FileMode) fs.FileMode {
	if mode&0o100 != 0 {
		return 0o755
	}
	return 0o644
}
