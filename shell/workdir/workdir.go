// Package workdir handles the directories of a node: it lays out inputs before commands run, and accepts their files
// afterwards. All files of commands are untrusted.
package workdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// PrivateDirs makes a home and a /tmp for commands that do not see the host's.
func PrivateDirs(scratch string) (home, tmp string, err error) {
	dir, err := os.MkdirTemp(scratch, "private-")
	home, tmp = filepath.Join(dir, "home"), filepath.Join(dir, "tmp")
	if err == nil {
		err = errors.Join(os.Mkdir(home, 0o700), os.Mkdir(tmp, 0o700), os.Chmod(tmp, 0o777|os.ModeSticky))
	}
	return home, tmp, err
}

// OnlyFile returns the path of the only file of an entry; if there are several, the entry's directory.
func OnlyFile(e cache.Entry) string {
	if len(e.Files) == 1 {
		return filepath.Join(e.Dir, filepath.FromSlash(e.Files[0].Path))
	}
	return e.Dir
}

// InputChanged returns the failure of a node whose file name has changed since the plan.
func InputChanged(name string) error {
	// Another attempt would find the same change: only another plan helps.
	return &engine.Failure{Retry: &engine.Retry{Attempts: 1},
		Failure: failure.Failure{Class: failure.Infra, Rule: "input_changed", Stage: "start",
			Message: "input " + name + " was changed after the plan was made", Remedy: "apply again"}}
}

// Create makes a new file. If commands have put something in its place, it fails and changes nothing.
func Create(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// Keep accepts files of commands into env.Out. With patterns, it moves the matching files from made; each pattern must
// match at least one. Without patterns, the commands have written to env.Out itself. Files that cannot be kept are an
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

// keepOutputs moves the files that match the patterns from made to out. Each pattern must match at least one.
func keepOutputs(out, made string, patterns []string) error {
	// An os.Root follows no link out of it, whoever made the link.
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
			return Unfit("unreadable", fmt.Sprintf("$OUT cannot be searched for %q: %v", pattern, err),
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

// isOutput reports whether a path counts as output, to be stored or refused. Sockets and pipes do not count.
func isOutput(made *os.Root, name string) bool {
	info, err := made.Lstat(filepath.FromSlash(name))
	return err != nil || info.Mode()&(fs.ModeSocket|fs.ModeNamedPipe) == 0
}

// missingOutput returns the failure for a pattern without a match. It lists the existing files.
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
		what = "$OUT holds " + printable.Some(there, mostNamed)
	}
	return &engine.Failure{Failure: failure.Failure{
		Class: failure.Invalid, Rule: "no_output", Stage: "build",
		Message: fmt.Sprintf("the command succeeded but left no file that matches %q: %s", pattern, what),
		Remedy:  "let the command write its results below $OUT, or correct outputs",
	}}
}

// mostNamed is the largest number of names that a message lists.
const mostNamed = 5

// isDirectory verifies that commands have not replaced a directory, with a link for instance.
func isDirectory(dir, title string) error {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return Unfit("not_a_directory", title+" is no directory any more",
			"let the command write below $OUT and leave $OUT itself alone")
	}
	return nil
}
