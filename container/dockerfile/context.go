package dockerfile

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// ContextFile is a file, a directory or a link that is sent to a builder.
type ContextFile struct {
	Path   string        // slash-separated, below the context's directory
	Mode   iofs.FileMode // type and permissions; sent as 0755 if executable, else 0644
	Size   int64         // bytes
	Link   string        // target of a symbolic link; sent unchanged and not followed
	SHA256 string        // required digest of the content; empty: any content
}

// Limits of a context. A larger one was probably not meant to be sent.
const (
	maxContextFiles = 200_000
	maxContextSize  = 64 << 30
	maxIgnoreFile   = 1 << 20
)

// Context lists the files of dir that a builder gets, sorted by path: all files that .dockerignore lets through, or
// DOCKERFILE.dockerignore if it exists. dockerfile is a path below dir; it is always in the list, as builders look
// for it only there. Sockets are left out; devices and pipes are errors.
func Context(dir, dockerfile string) ([]ContextFile, error) {
	if !filepath.IsLocal(dockerfile) {
		return nil, fmt.Errorf("%q is not below the context %s", dockerfile, dir)
	}
	dockerfile = filepath.ToSlash(filepath.Clean(dockerfile))
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	ignored, err := ignoring(root, dockerfile)
	if err != nil {
		return nil, err
	}
	w := contextWalk{root: root, dockerfile: dockerfile, ignored: ignored}
	if err := w.walk(".", patternmatcher.MatchInfo{}); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(w.files, func(f ContextFile) bool { return f.Path == dockerfile }) {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, dockerfile), iofs.ErrNotExist)
	}
	slices.SortFunc(w.files, func(a, b ContextFile) int { return cmp.Compare(a.Path, b.Path) })
	return w.files, nil
}

// ignoring reads the patterns of the files that are not sent.
func ignoring(root *os.Root, dockerfile string) (*patternmatcher.PatternMatcher, error) {
	for _, name := range []string{dockerfile + ".dockerignore", ".dockerignore"} {
		text, err := readIn(root, name, maxIgnoreFile)
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		patterns, err := ignorefile.ReadAll(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m, err := patternmatcher.New(patterns)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return m, nil
	}
	return patternmatcher.New(nil)
}

// Read reads the Dockerfile of a context. It returns *ContextChanged if the file differs from the list.
func Read(dir, dockerfile string, files []ContextFile) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	text, err := readIn(root, dockerfile, MaxSize)
	if err != nil {
		return nil, err
	}
	name := filepath.ToSlash(filepath.Clean(dockerfile))
	sum := sha256.Sum256(text)
	if !slices.ContainsFunc(files, func(f ContextFile) bool {
		return f.Path == name && (f.SHA256 == "" || f.SHA256 == hex.EncodeToString(sum[:]))
	}) {
		return nil, &ContextChanged{name}
	}
	return text, nil
}

// readIn reads a regular file of at most limit bytes.
func readIn(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fmt.Errorf("%s: not a file", name))
	}
	text, err := fs.ReadAll(f, limit)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return text, err
}

// contextWalk collects the files of a context.
type contextWalk struct {
	root       *os.Root
	dockerfile string
	ignored    *patternmatcher.PatternMatcher
	files      []ContextFile
	size       int64
}

func (w *contextWalk) walk(dir string, above patternmatcher.MatchInfo) error {
	entries, err := iofs.ReadDir(w.root.FS(), dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		skip, match, err := w.ignored.MatchesUsingParentResults(name, above)
		if err != nil {
			return fmt.Errorf(".dockerignore: %w", err)
		}
		if skip && name != w.dockerfile && !entry.IsDir() {
			continue
		}
		if skip && entry.IsDir() && !w.mayHold(name) {
			continue
		}
		if !skip || name == w.dockerfile {
			if err := w.add(name, entry); err != nil {
				return err
			}
		}
		if entry.IsDir() {
			if err := w.walk(name, match); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayHold reports whether a file below an ignored directory may have to be sent.
func (w *contextWalk) mayHold(dir string) bool {
	if strings.HasPrefix(w.dockerfile, dir+"/") {
		return true
	}
	return slices.ContainsFunc(w.ignored.Patterns(), func(p *patternmatcher.Pattern) bool {
		return p.Exclusion()
	})
}

func (w *contextWalk) add(name string, entry iofs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	f := ContextFile{Path: name, Mode: info.Mode()}
	switch info.Mode().Type() {
	case 0:
		f.Size = info.Size()
	case iofs.ModeDir:
	case iofs.ModeSymlink:
		if f.Link, err = w.root.Readlink(filepath.FromSlash(name)); err != nil {
			return err
		}
	case iofs.ModeSocket:
		return nil
	default:
		return fmt.Errorf("%s is neither a file nor a directory nor a link; .dockerignore can leave it out",
			filepath.Join(w.root.Name(), name))
	}
	if w.files = append(w.files, f); len(w.files) > maxContextFiles {
		return fmt.Errorf("%s: over %d files to send; .dockerignore can leave some out", w.root.Name(), maxContextFiles)
	}
	if w.size > math.MaxInt64-f.Size || w.size+f.Size > maxContextSize {
		return fmt.Errorf("%s: over %d GiB to send; .dockerignore can leave some out", w.root.Name(),
			maxContextSize>>30)
	}
	w.size += f.Size
	return nil
}

// ContextChanged is the error for a file that has changed since the context was listed.
type ContextChanged struct{ Path string }

func (e *ContextChanged) Error() string { return e.Path + " was changed after it was looked at" }

// Send writes a context as a tar archive that depends only on names, contents and executable bits: the same files
// give the same bytes. instead replaces the content of the Dockerfile.
func Send(out io.Writer, dir string, files []ContextFile, dockerfile string, instead []byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	w := tar.NewWriter(out)
	for _, f := range files {
		h := &tar.Header{Name: f.Path, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
		switch {
		case f.Path == dockerfile:
			h.Size = int64(len(instead))
		case f.Mode.IsDir():
			h.Typeflag, h.Name, h.Mode = tar.TypeDir, f.Path+"/", 0o755
		case f.Mode.Type() == iofs.ModeSymlink:
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Link, 0o777
		case f.Mode.Perm()&0o111 != 0:
			h.Size, h.Mode = f.Size, 0o755
		default:
			h.Size = f.Size
		}
		if err := w.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		switch {
		case f.Path == dockerfile:
			_, err = w.Write(instead)
		case h.Size > 0:
			err = sendFile(w, root, f)
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}

func sendFile(w io.Writer, root *os.Root, f ContextFile) error {
	from, err := root.Open(filepath.FromSlash(f.Path))
	if err != nil {
		return err
	}
	defer from.Close()
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, hash), io.LimitReader(from, f.Size))
	if err != nil {
		return err
	}
	if n != f.Size || f.SHA256 != "" && hex.EncodeToString(hash.Sum(nil)) != f.SHA256 {
		return &ContextChanged{f.Path}
	}
	return nil
}
