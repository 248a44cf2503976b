// Package workdir is what goes through the directories of a node: what is laid there before its commands run, and what
// of that which they leave is taken over. All that commands leave is foreign.
package workdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// PrivateDirs makes the home and the /tmp of commands that see neither of the host's.
func PrivateDirs(scratch string) (home, tmp string, err error) {
	dir, err := os.MkdirTemp(scratch, "private-")
	home, tmp = filepath.Join(dir, "home"), filepath.Join(dir, "tmp")
	if err == nil {
		err = errors.Join(os.Mkdir(home, 0o700), os.Mkdir(tmp, 0o700), os.Chmod(tmp, 0o777|os.ModeSticky))
	}
	return home, tmp, err
}

// OnlyFile is the path of an entry's file if it has exactly one, else its directory.
func OnlyFile(e cache.Entry) string {
	if len(e.Files) == 1 {
		return filepath.Join(e.Dir, filepath.FromSlash(e.Files[0].Path))
	}
	return e.Dir
}

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
