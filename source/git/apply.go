package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/benchgraph/benchgraph/internal/glob"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/source/git/command"
	"github.com/benchgraph/benchgraph/source/git/patch"
	"github.com/benchgraph/benchgraph/source/git/tree"
)

// PatchError is the error for a refused patch. A refused patch leaves no files.
type PatchError = patch.Error

// TouchedPaths returns the paths that a patch changes, creates or removes, sorted. For an empty, unreadable or
// forbidden patch it returns *PatchError.
func TouchedPaths(text []byte) ([]string, error) { return patch.Touched(text) }

// TouchesOnly reports whether each of TouchedPaths matches one of the patterns.
func TouchesOnly(text []byte, patterns []string) bool {
	paths, err := patch.Touched(text)
	return err == nil && !slices.ContainsFunc(paths, func(path string) bool { return !glob.Match(patterns, path) })
}

// Apply writes the tree of a commit (40 digits) with a patch to dir, as Checkout does, and returns the hash of the
// patched tree. The patch must apply completely with all its context (lines may have moved). Otherwise Apply returns
// *PatchError and does not change dir.
func (m *Mirror) Apply(ctx context.Context, baseCommit string, text []byte, dir string) (id string, err error) {
	readings, err := patch.Readings(text)
	if err != nil {
		return "", err
	}
	err = m.patched(ctx, baseCommit, readings, func(patchedID string, l listing, env []string) error {
		id = patchedID
		return m.export(ctx, l, env, dir)
	})
	return id, err
}

// patched creates the tree of a commit with a patch, from the first reading that applies, and calls use with the
// content of the tree and the environment in which git finds it. If no reading applies, it returns the error of the
// first. The objects of the patch stay outside the mirror: no other caller needs them.
func (m *Mirror) patched(ctx context.Context, commit string, readings []patch.Reading,
	use func(id string, l listing, env []string) error) error {
	if _, err := m.treesOf(ctx, []string{commit}); err != nil {
		return err
	}
	scratch, err := m.Scratch()
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	objects := filepath.Join(scratch, "objects")
	if err := os.Mkdir(objects, 0o755); err != nil {
		return err
	}
	env := []string{
		"GIT_INDEX_FILE=" + filepath.Join(scratch, "index"),
		"GIT_OBJECT_DIRECTORY=" + objects,
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + command.Alternate(filepath.Join(m.Dir, "objects")),
	}
	var first error
	for _, r := range readings {
		id, err := m.patchedTree(ctx, commit, r, env)
		if err == nil {
			var l listing
			if l, err = m.listing(ctx, id, env); err == nil {
				err = use(id, l, env)
			}
			out, ok := errors.AsType[*Escapes](err)
			if ok && slices.ContainsFunc(r.Parts, func(p patch.Part) bool { return p.Name() == out.Path }) {
				return &PatchError{File: out.Path, Reason: out.Error()}
			} else if err != nil {
				return fmt.Errorf("checkout of %s with a patch: %w", commit[:12], err)
			}
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// patchedTree applies a patch to a commit in a scratch index and writes the tree.
func (m *Mirror) patchedTree(ctx context.Context, commit string, r patch.Reading, env []string) (string, error) {
	if err := m.haveTouched(ctx, commit, r.Parts); err != nil {
		return "", err
	}
	if _, err := m.Git.Output(ctx, command.Call{Args: []string{"read-tree", commit}, Env: env}); err != nil {
		return "", err
	}
	_, err := m.Git.Output(ctx, command.Call{Args: []string{"apply", "--cached", "--whitespace=nowarn", "-p1", "-"},
		Stdin: string(r.Text), Env: env})
	if exit, ok := errors.AsType[*command.ExitError](err); ok && exit.Status.Signal == "" {
		return "", m.refusal(ctx, commit, r.Parts, exit.Stderr)
	}
	if err != nil {
		return "", err
	}
	if err := m.checkChanges(ctx, commit, r.Parts, env); err != nil {
		return "", err
	}
	id, err := m.Git.Output(ctx, command.Call{Args: []string{"write-tree", "--missing-ok"}, Env: env})
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(id), nil
}

// haveTouched fetches, with one request, the files that the patch changes and that a partial mirror lacks.
func (m *Mirror) haveTouched(ctx context.Context, commit string, parts []patch.Part) error {
	if !m.Lacks() {
		return nil
	}
	trees, err := m.treesOf(ctx, []string{commit})
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, p := range parts {
		wanted[p.File.OldName], wanted[p.File.NewName] = true, true
	}
	var entries []Entry
	err = m.list(ctx, trees, nil, func(_ int, e Entry) error {
		if wanted[e.Name] && e.Mode != modeSubmodule {
			entries = append(entries, e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return m.read(ctx, entries, nil, func(Entry, int64, io.Reader) error { return nil })
}

// checkChanges compares the changes that git made with the parsed patch. The two parsers must agree: otherwise
// decisions from one do not hold for the other.
func (m *Mirror) checkChanges(ctx context.Context, commit string, parts []patch.Part, env []string) error {
	touched := map[string]bool{}
	for _, p := range parts {
		for _, path := range p.Touches() {
			touched[path] = true
		}
	}
	args := []string{"diff-index", "--cached", "--raw", "-z", "--no-renames", "--abbrev=40", "--ignore-submodules=none",
		commit}
	var refused error
	err := m.Git.Stream(ctx, command.Call{Args: args, Env: env}, func(r *bufio.Reader) error {
		for {
			if _, err := r.Peek(1); errors.Is(err, io.EOF) {
				return nil
			}
			c, err := readChange(r)
			if err != nil {
				return err
			}
			switch {
			case refused != nil:
			case !touched[c.Name]:
				refused = &PatchError{File: c.Name, Reason: "changed by an ambiguous header"}
			case c.Mode == modeSubmodule || c.oldMode == modeSubmodule:
				refused = &PatchError{File: c.Name, Reason: "changes a submodule"}
			case !tree.Inside(c.Name):
				refused = &PatchError{File: c.Name, Reason: "leads out of the tree, or into .git"}
			}
		}
	})
	return errors.Join(err, refused)
}

var (
	patchFailed = lazyregexp.New(`(?m)^error: patch failed: (.*):(\d+)$`)
	patchReason = lazyregexp.New(`(?m)^error: (.*?): (does not exist in index|already exists in index|patch ` +
		`does not apply|wrong type|does not match index|No such file or directory)$`)
)

// refusal converts git's message: it names the failed hunk, and says why by looking at the file.
func (m *Mirror) refusal(ctx context.Context, commit string, parts []patch.Part, stderr string) error {
	e := &PatchError{Reason: strings.TrimPrefix(command.FirstLine(stderr), "error: ")}
	failed := patchFailed().FindStringSubmatch(stderr)
	if failed == nil {
		if r := patchReason().FindStringSubmatch(stderr); r != nil {
			e.File, e.Reason = r[1], r[2]
			if e.Reason == "does not exist in index" {
				e.Reason = "no such file in commit " + commit[:12]
			} else if e.Reason == "already exists in index" {
				e.Reason = "to be made, but there already in commit " + commit[:12]
			}
			for _, p := range parts {
				if slices.Contains(p.Touches(), e.File) {
					e.Line = p.Line
				}
			}
		}
		return e
	}
	e.File, e.Reason = failed[1], "does not apply"
	at, _ := strconv.ParseInt(failed[2], 10, 64)
	for _, p := range parts {
		if p.File.OldName != e.File && p.File.NewName != e.File {
			continue
		}
		for i, h := range p.File.TextFragments {
			if h.OldPosition != at {
				continue
			}
			e.Hunk = i + 1
			if i < len(p.Hunks) {
				e.Line = p.Hunks[i]
			}
			if why, err := m.differs(ctx, commit, p.File.OldName, h); err == nil {
				e.Reason += ": " + why
			}
			return e
		}
	}
	return e
}

// differs says where a file first differs from a hunk's context.
func (m *Mirror) differs(ctx context.Context, commit, path string, h *gitdiff.TextFragment) (string, error) {
	text, err := m.Git.Output(ctx, command.Call{Args: []string{"cat-file", "blob", commit + ":" + path}})
	if err != nil {
		return "", err
	}
	lines := strings.SplitAfter(text, "\n")
	n := int(h.OldPosition)
	for _, want := range h.Lines {
		if want.Op == gitdiff.OpAdd {
			continue
		}
		if n < 1 || n > len(lines) || lines[n-1] == "" {
			return fmt.Sprintf("the file has only %d lines, the hunk expects line %d", strings.Count(text, "\n"), n),
				nil
		}
		if have := lines[n-1]; have != want.Line {
			return fmt.Sprintf("line %d is %s, the hunk expects %s", n, short(have), short(want.Line)), nil
		}
		n++
	}
	if h.TrailingContext == 0 && n <= len(lines) && lines[n-1] != "" {
		return "a hunk that ends with a change fits at the end of the file alone: make the patch with the context " +
			"that git diff gives by itself", nil
	}
	return "its lines are there, but not where the hunks before it leave them", nil
}

// short returns a quoted line for an error.
func short(line string) string {
	const most = 80
	if len(line) > most {
		return strconv.Quote(line[:most]) + "…"
	}
	return strconv.Quote(line)
}
