// Package worktree reads the work tree of a user: its changes as a patch, and its commits as a list. It changes
// nothing there.
package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/source/git/command"
	"github.com/benchgraph/benchgraph/source/git/mirror"
)

// Tree is a user's work tree. The configuration of the repository and of the user applies, since it says which files
// git ignores and how it stores files.
type Tree struct {
	Top  string // directory, absolute
	Head string // commit, 40 digits
	git  command.Git
}

// ErrNone is the error for a directory outside of any work tree, or in one without a commit.
var ErrNone = errors.New("no work tree of a git repository with a commit")

// elsewhere are variables that would make git use another repository, or change its output.
var elsewhere = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX", "GIT_NAMESPACE", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE",
	"GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS",
}

// Open finds the work tree of a directory. env is the caller's whole environment.
func Open(ctx context.Context, exec executor.Executor, dir string, env []string) (*Tree, error) {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(elsewhere, name)
	})
	env = append(env, "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "LC_ALL=C")
	w := &Tree{git: command.Git{Exec: exec, Dir: dir, Env: env, Log: io.Discard}}
	out, err := w.git.Output(ctx, command.Call{Args: []string{"rev-parse", "--show-toplevel", "--verify",
		"HEAD^{commit}"}})
	if _, ok := errors.AsType[*command.ExitError](err); ok {
		return nil, fmt.Errorf("%s: %w", dir, ErrNone)
	}
	if err != nil {
		return nil, err
	}
	top, head, _ := strings.Cut(strings.TrimSuffix(out, "\n"), "\n")
	if w.Top, w.Head = top, head; top == "" || !mirror.IsHash(head) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNone)
	}
	w.git.Dir = top
	return w, nil
}

// Has reports whether the repository has a commit (40 digits).
func (w *Tree) Has(ctx context.Context, commit string) (bool, error) {
	_, err := w.git.Output(ctx, command.Call{Args: []string{"cat-file", "-e", commit + "^{commit}"}})
	if _, ok := errors.AsType[*command.ExitError](err); ok {
		return false, nil
	}
	return err == nil, err
}

// Resolve returns the commit of a revision.
func (w *Tree) Resolve(ctx context.Context, rev string) (string, error) {
	if !mirror.Spelled(rev) {
		return "", &mirror.UnknownRev{Rev: rev, Location: w.Top, Reason: "is not the spelling of a revision of"}
	}
	out, err := w.git.Output(ctx, command.Call{
		Args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", rev + "^{commit}"},
	})
	if _, ok := errors.AsType[*command.ExitError](err); ok {
		shallow, err := w.git.Output(ctx, command.Call{Args: []string{"rev-parse", "--is-shallow-repository"}})
		return "", cmp.Or(err, error(&mirror.UnknownRev{Rev: rev, Location: w.Top, Reason: "is no commit of",
			Shallow: strings.TrimSpace(shallow) == "true"}))
	}
	return strings.TrimSpace(out), err
}

// Changes returns the files that differ from the last commit, including untracked files. It leaves out ignored files
// and the absolute paths in except. It writes nothing.
func (w *Tree) Changes(ctx context.Context, except []string) (files []string, err error) {
	left, err := w.tracked(ctx, except)
	if err != nil {
		return nil, err
	}
	args := []string{"status", "--porcelain", "-z", "--no-renames", "--untracked-files=all",
		"--ignore-submodules=dirty", "--", ":(top)"}
	out, err := w.run(ctx, nil, append(args, left...)...)
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		const state = len("XY ")
		if len(line) > state {
			files = append(files, line[state:])
		}
	}
	slices.Sort(files)
	return files, err
}

// Patch returns a patch from the tree of a commit to the current work tree, with the files of Changes. The patch is
// empty if they are equal. Patch changes nothing in the repository.
func (w *Tree) Patch(ctx context.Context, commit string, except []string) (patch []byte, err error) {
	scratch, err := os.MkdirTemp("", "benchgraph-index-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	env, err := w.beside(ctx, scratch)
	if err != nil {
		return nil, err
	}
	left, err := w.tracked(ctx, except)
	if err != nil {
		return nil, err
	}
	if _, err := w.run(ctx, env, append([]string{"add", "--all", "--", ":(top)"}, left...)...); err != nil {
		return nil, err
	}
	text, err := w.run(ctx, env, "diff", "--cached", "--binary", "--full-index", "--no-renames", "--no-color",
		"--no-ext-diff",
		"--no-textconv", "--unified=3", "--src-prefix=a/", "--dst-prefix=b/", commit)
	return []byte(text), err
}

// run runs git without settings of the repository that would run other programs or change the spelling of names.
func (w *Tree) run(ctx context.Context, env []string, args ...string) (string, error) {
	safe := []string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=true"}
	return w.git.Output(ctx, command.Call{Args: append(safe, args...), Env: env})
}

// tracked returns pathspecs that exclude the given paths, except those that git ignores: git refuses to exclude
// ignored paths.
func (w *Tree) tracked(ctx context.Context, paths []string) (specs []string, err error) {
	var names []string
	for _, path := range paths {
		if rel, err := filepath.Rel(w.Top, path); err == nil && filepath.IsLocal(rel) && rel != "." {
			names = append(names, filepath.ToSlash(rel))
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	out, err := w.git.Output(ctx, command.Call{
		Args: []string{"check-ignore", "-z", "--stdin"}, Stdin: strings.Join(names, "\x00") + "\x00", OK: []int{1},
	})
	ignored := strings.Split(out, "\x00")
	for _, name := range names {
		if !slices.Contains(ignored, name) {
			specs = append(specs, ":(top,exclude,literal)"+name)
		}
	}
	return specs, err
}

// beside returns an environment in which git writes an index and objects to scratch, and reads the repository's
// objects.
func (w *Tree) beside(ctx context.Context, scratch string) ([]string, error) {
	out, err := w.git.Output(ctx, command.Call{
		Args: []string{"rev-parse", "--path-format=absolute", "--git-path", "index", "--git-path", "objects"},
	})
	if err != nil {
		return nil, err
	}
	index, objects, _ := strings.Cut(strings.TrimSuffix(out, "\n"), "\n")
	own := filepath.Join(scratch, "index")
	// A copy of the index saves git from reading all files. Git distrusts entries of files as young as the index, so
	// the copy gets the original's time.
	info, statErr := os.Stat(index)
	if have, err := os.ReadFile(index); err == nil && statErr == nil {
		if err := os.WriteFile(own, have, 0o600); err != nil {
			return nil, err
		}
		if err := os.Chtimes(own, info.ModTime(), info.ModTime()); err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(filepath.Join(scratch, "objects"), 0o700); err != nil {
		return nil, err
	}
	return []string{
		"GIT_INDEX_FILE=" + own, "GIT_OBJECT_DIRECTORY=" + filepath.Join(scratch, "objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + command.Alternate(objects),
	}, nil
}

// Titled is a commit with the first line of its message.
type Titled struct{ Commit, Title string }

// Range returns the commits with one parent in a range such as v1.0..HEAD, the oldest first. It returns at most most
// commits, and whether there are more.
func (w *Tree) Range(ctx context.Context, spelling string, most int) (list []Titled, more bool, err error) {
	from, to, ok := strings.Cut(spelling, "..")
	if !ok || strings.HasPrefix(to, ".") {
		return nil, false, fmt.Errorf("%q is no range: write A..B", spelling)
	}
	for _, rev := range []*string{&from, &to} {
		if *rev == "" {
			*rev = "HEAD"
		}
		if *rev, err = w.Resolve(ctx, *rev); err != nil {
			return nil, false, err
		}
	}
	out, err := w.git.Output(ctx, command.Call{Args: []string{
		"log", "-z", "--format=%H %s", "--no-show-signature", "--min-parents=1", "--max-parents=1",
		fmt.Sprintf("--max-count=%d", most+1), from + ".." + to,
	}})
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if commit, title, ok := strings.Cut(line, " "); ok && mirror.IsHash(commit) {
			list = append(list, Titled{commit, strings.ToValidUTF8(title, "�")})
		}
	}
	if len(list) > most {
		list, more = list[:most], true
	}
	slices.Reverse(list)
	return list, more, err
}
