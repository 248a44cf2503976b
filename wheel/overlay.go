// Package wheel opens, rewrites and proves Python wheels. Its overlay lays source files over a result that was built
// without looking at them.
//
// A compiled wheel whose Python files differ between two commits need not be compiled twice: the files that overlay
// patterns match are taken from the one source tree, everything else from the one build. Wheels are rewritten inside;
// plain files are replaced where they lie.
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

	"github.com/bmatcuk/doublestar/v4"
)

// recordName is the file in a built result that lists the files of the source tree that the overlay patterns matched.
const recordName = ".benchgraph-overlay"

const maxRecord = 64 << 20

// Record writes the files of the source tree that the patterns match into a built result. Apply then tells a generated
// file, which stays, from a source file that another source does not have, which is removed.
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

// Apply writes to out, which must be empty or missing, the built result with the files of the source tree that match
// the doublestar patterns laid over it.
//
// Wheels in the result (*.whl) are overlaid inside: below each of their top-level packages, which may lie under src/ or
// python/ in the source tree. Other files are overlaid at the same relative path; where there are no wheels, source
// files that match are added, too. Files of the result that match a pattern and are not in the source tree go, unless
// Record tells that they were not in the tree of the build either. Links may not lead out of the trees, and a wheel
// with entries that no wheel has (absolute or doubled names, links, sizes beyond all measure) is refused.
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

// layer is one overlay at work.
type layer struct {
	built, source, out *os.Root
	patterns           []string
	files              []string // of the source that the patterns match, sorted
	before             []string // the same of the tree of the build, sorted
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

// has says whether the source has the file, as part of the overlay.
func (l *layer) has(name string) bool {
	_, ok := slices.BinarySearch(l.files, name)
	return ok
}

// gone says whether a file of the result, called by its name in the source tree, has no place in it any more.
func (l *layer) gone(name string) bool {
	if l.has(name) || !Matches(l.patterns, name) {
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
		return nil // what the wheels do not hold was not wanted beside them either
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

// match lists the files and links below dir that one of the patterns matches, sorted.
func match(dir string, patterns []string) ([]string, error) {
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) {
			return nil, fmt.Errorf("overlay pattern %q: malformed", p)
		}
	}
	found := []string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && Matches(patterns, name) {
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

// InPackage returns a path of a source tree as it is below the directory in which packages are installed: without a
// first directory src or python.
func InPackage(name string) string {
	for _, prefix := range prefixes[1:] {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest
		}
	}
	return name
}

// Matches reports whether one of the doublestar patterns matches a path of a source tree.
func Matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return doublestar.MatchUnvalidated(strings.TrimPrefix(p, "./"), name)
	})
}

func mkdir(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	return root.MkdirAll(dir, 0o755)
}

// copyFile copies a file or a link to the same place in another tree, with its permission to execute.
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
