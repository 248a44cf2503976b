// Package workdir is what goes through the directories of a node: what is laid there before its commands run, and what
// of that which they leave is taken over. All that commands leave is foreign.
package workdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// OnlyFile is the path of an entry's file if it has exactly one, else its directory.
func OnlyFile(e cache.Entry) string {
	if len(e.Files) == 1 {
		return filepath.Join(e.Dir, filepath.FromSlash(e.Files[0].Path))
	}
	return e.Dir
}

// CopyTree copies what is below src into dst, which need not exist. Copies, not links: commands may write to what they
// are given, and what is stored is never changed in place.
func CopyTree(dst, src string) error {
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
		return CopyFile(to, name)
	})
}

// ErrIrregular is wrapped by the error for what was a file and is something else.
var ErrIrregular = errors.New("it is no regular file any more")

// InputChanged is the failure of a node one of whose files, called name, is not what it was planned with.
func InputChanged(name string) error {
	// Another attempt would find it changed as well: only another plan helps.
	return &engine.Failure{Retry: &engine.Retry{Attempts: 1},
		Failure: failure.Failure{Class: failure.Infra, Rule: "input_changed", Stage: "start",
			Message: "input " + name + " was changed after the plan was made", Remedy: "apply again"}}
}

// Create makes a file that is not there yet. What a command has put in its place is neither followed nor overwritten.
func Create(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// CopyFile copies a regular file, which must not be there yet, with its permission to be executed.
func CopyFile(dst, src string) error { return CopyTo(dst, src, nil) }

// CopyTo is CopyFile that writes the bytes to also, too, unless that is nil.
func CopyTo(dst, src string, also io.Writer) error {
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
		return fmt.Errorf("%s: %w", src, ErrIrregular)
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

// Keep takes over into env.Out what commands left in made: the files that match the patterns, each of which must match
// at least one. Without patterns it is everything, which they made in env.Out itself. What cannot be kept is a
// *engine.Failure.
func Keep(ctx context.Context, env *engine.Env, made string, patterns []string, secrets Secrets) error {
	if len(patterns) > 0 {
		if err := isDirectory(made, "$OUT"); err != nil {
			return err
		}
		if err := unmounted(made, "$OUT"); err != nil {
			return err
		}
		if err := keepOutputs(env.Out, made, patterns); err != nil {
			return err
		}
	}
	return Admit(ctx, env, env.Out, "$OUT", secrets, 1)
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
		matches, err := doublestar.Glob(from.FS(), pattern, doublestar.WithFilesOnly(), doublestar.WithNoFollow(),
			doublestar.WithFailOnIOErrors())
		if err != nil {
			return Unfit("unreadable", fmt.Sprintf("what the command left cannot be searched for %q: %v", pattern, err),
				"let it leave directories that can be read")
		}
		if !slices.ContainsFunc(matches, func(m string) bool { return isOutput(from, m) }) {
			return missingOutput(from, pattern)
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
				return Unfit("unreadable", fmt.Sprintf("$OUT/%s cannot be taken over: %v", m, err),
					"let the command leave directories that can be written to")
			}
		}
	}
	return nil
}

// isOutput says whether what has a name can be stored, or has to be refused; a socket or a pipe is no output.
func isOutput(made *os.Root, name string) bool {
	info, err := made.Lstat(filepath.FromSlash(name))
	return err != nil || info.Mode()&(fs.ModeSocket|fs.ModeNamedPipe) == 0
}

// missingOutput says what was there instead.
func missingOutput(made *os.Root, pattern string) error {
	there, _ := doublestar.Glob(made.FS(), "**", doublestar.WithFilesOnly(), doublestar.WithNoFollow())
	for i, name := range there {
		if info, err := made.Lstat(filepath.FromSlash(name)); err == nil &&
			info.Mode()&(fs.ModeSocket|fs.ModeNamedPipe) != 0 {
			there[i] += " (" + kindOf(info.Mode()) + ")"
		}
	}
	what := "$OUT is empty"
	if len(there) > 0 {
		what = "$OUT holds " + listed(there)
	}
	return &engine.Failure{Failure: failure.Failure{
		Class: failure.Invalid, Rule: "no_output", Stage: "build",
		Message: fmt.Sprintf("the command succeeded but left no file that matches %q: %s", pattern, what),
		Remedy:  "let the command write its results below $OUT, or correct outputs",
	}}
}

// isDirectory makes sure that no command has put a link, say, in a directory's place.
func isDirectory(dir, title string) error {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return Unfit("not_a_directory", title+" is no directory any more",
			"let the command write below $OUT and leave $OUT itself alone")
	}
	return nil
}

// listed names the first few of many.
func listed(names []string) string {
	const most = 5
	text := strings.Join(names[:min(len(names), most)], ", ")
	if rest := len(names) - most; rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}
