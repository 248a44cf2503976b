package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
)

// onlyFile is the path of an entry's file if it has exactly one, else its directory.
func onlyFile(e cache.Entry) string {
	if len(e.Files) == 1 {
		return filepath.Join(e.Dir, filepath.FromSlash(e.Files[0].Path))
	}
	return e.Dir
}

// copyTree copies what is below src into dst, which need not exist. Copies, not links: commands may write to what they
// are given, and what is stored is never changed in place.
func copyTree(dst, src string) error {
	return filepath.WalkDir(src, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, name)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(to, 0o755)
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			return os.Symlink(target, to)
		}
		return copyFile(to, name)
	})
}

// errIrregular is wrapped by the error for what was a file and is something else.
var errIrregular = errors.New("it is no regular file any more")

// create makes a file that is not there yet. What a command has put in its place is neither followed nor overwritten.
func create(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// copyFile copies a regular file, which must not be there yet, with its permission to be executed.
func copyFile(dst, src string) error { return copyTo(dst, src, nil) }

// copyTo is copyFile that writes the bytes to also, too, unless that is nil.
func copyTo(dst, src string, also io.Writer) error {
	in, err := os.OpenFile(src, os.O_RDONLY|syscall.O_NONBLOCK, 0) // what became a pipe would be waited for
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w", src, errIrregular)
	}
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return err
	}
	executable := info.Mode().Perm() & 0o111
	if executable != 0 {
		// A process that is forked while a program is open for writing holds it open until its own exec, and until then
		// nobody can run the program ("text file busy").
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
	}
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644|executable)
	if err != nil {
		return err
	}
	if also == nil {
		_, err = io.Copy(out, in)
	} else {
		buf := make([]byte, min(max(info.Size(), 1<<9), 128<<10))
		_, err = io.CopyBuffer(io.MultiWriter(out, also), struct{ io.Reader }{in}, buf)
	}
	return errors.Join(err, out.Close())
}

// layData lays the outputs of nodes into a working directory under the names that the file gives them.
func (r refs) layData(env *engine.Env, dir string, data []hclspec.Data) error {
	for _, item := range data {
		dst := filepath.Join(dir, filepath.FromSlash(item.Name))
		if !strings.HasPrefix(dst, dir+string(filepath.Separator)) {
			return fmt.Errorf("data %q: outside the working directory", item.Name)
		}
		in := r.input(env, item.Ref)
		src := in.Dir
		if item.Ref.Kind != "source" { // a tree stays a tree, however small
			src = onlyFile(in.Entry)
		}
		info, err := os.Stat(src)
		if err != nil {
			return fmt.Errorf("data %q: %w", item.Name, err)
		}
		if info.IsDir() {
			err = copyTree(dst, src)
		} else {
			err = copyFile(dst, src)
		}
		if errors.Is(err, fs.ErrExist) {
			return &engine.Failure{Err: err, Failure: cache.Failure{
				Class: cache.Permanent, Rule: "data_conflict", Stage: "start", Message: fmt.Sprintf("data %q: there is a file of that name already", item.Name),
				Remedy: "give it another name in data",
			}}
		}
		if err != nil {
			return fmt.Errorf("data %q: %w", item.Name, err)
		}
	}
	return nil
}

// keep takes over what commands left in made: the files that match the patterns. Without patterns it is everything, which
// they made in out itself.
func (s *shell) keep(ctx context.Context, out, made string, patterns []string) error {
	if len(patterns) == 0 {
		return admit(ctx, out, "$OUT", s.secrets)
	}
	if err := isDirectory(made, "$OUT"); err != nil {
		return err
	}
	if err := keepOutputs(out, made, patterns); err != nil {
		return err
	}
	return admit(ctx, out, "$OUT", s.secrets)
}

// keepOutputs moves from made to out the files that match the patterns. Each pattern must match at least one.
func keepOutputs(out, made string, patterns []string) error {
	// Through a root, no link leads out: neither those that the command made nor those that were taken over.
	from, err := os.OpenRoot(made)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(out)
	if err != nil {
		return err
	}
	defer to.Close()
	kept := map[string]bool{}
	for _, pattern := range patterns {
		matches, err := doublestar.Glob(from.FS(), pattern, doublestar.WithFilesOnly(), doublestar.WithNoFollow(), doublestar.WithFailOnIOErrors())
		if err != nil {
			return unfit("unreadable", fmt.Sprintf("what the command left cannot be searched for %q: %v", pattern, err), "let it leave directories that can be read")
		}
		if len(matches) == 0 {
			return missingOutput(from.FS(), pattern)
		}
		for _, m := range matches {
			if kept[m] {
				continue
			}
			kept[m] = true
			name := filepath.FromSlash(m)
			err := to.MkdirAll(filepath.Dir(name), 0o755)
			if err == nil {
				err = os.Rename(filepath.Join(made, name), filepath.Join(out, name))
			}
			if err != nil {
				return unfit("unreadable", fmt.Sprintf("$OUT/%s cannot be taken over: %v", m, err), "let the command leave directories that can be written to")
			}
		}
	}
	return nil
}

// missingOutput says what was there instead.
func missingOutput(made fs.FS, pattern string) error {
	there, _ := doublestar.Glob(made, "**", doublestar.WithFilesOnly(), doublestar.WithNoFollow())
	what := "$OUT is empty"
	if len(there) > 0 {
		what = "$OUT holds " + strings.Join(there[:min(len(there), 5)], ", ")
	}
	return &engine.Failure{Failure: cache.Failure{
		Class: cache.Invalid, Rule: "no_output", Stage: "build",
		Message: fmt.Sprintf("the command succeeded but left no file that matches %q: %s", pattern, what),
		Remedy:  "let the command write its results below $OUT, or correct outputs",
	}}
}
