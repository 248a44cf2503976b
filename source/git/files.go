package git

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/benchgraph/benchgraph/source/git/command"
	"github.com/benchgraph/benchgraph/source/git/mirror"
)

// Entry is a name in a directory or a path in a tree. The zero Entry means that there is none.
type Entry struct {
	Name string
	Mode string // git's mode: 100644, 100755, 120000, 40000 or 160000
	ID   string // of the content, 40 digits
}

// Exists reports whether the entry exists.
func (e Entry) Exists() bool { return e.ID != "" }

// IsDir reports whether the entry is a directory.
func (e Entry) IsDir() bool { return e.Mode == modeDir }

const modeDir = "40000"

// Dirs lists directories of commits with one process. A missing directory has no entry in the result.
func (m *Mirror) Dirs(ctx context.Context, places []Place) (map[Place][]Entry, error) {
	var in strings.Builder
	for _, p := range places {
		if !mirror.IsHash(p.Commit) || strings.ContainsAny(p.Path, "\n\x00") {
			return nil, fmt.Errorf("directory %q of commit %q: not the spelling of one", p.Path, p.Commit)
		}
		fmt.Fprintf(&in, "%s:%s\n", p.Commit, p.Path)
	}
	found := make(map[Place][]Entry, len(places))
	if len(places) == 0 {
		return found, nil
	}
	call := command.Call{Args: []string{"cat-file", "--batch", "--buffer"}, Stdin: in.String()}
	return found, m.Git.Stream(ctx, call, func(r *bufio.Reader) error {
		for _, p := range places {
			content, err := readTree(r)
			if err != nil {
				return fmt.Errorf("%s of %s: %w", p.Path, p.Commit, err)
			}
			if content == nil {
				continue
			}
			if found[p], err = parseTree(content); err != nil {
				return fmt.Errorf("%s of %s: %w", p.Path, p.Commit, err)
			}
		}
		return nil
	})
}

// parseTree parses git's format of a directory: "mode SP name NUL" and 20 bytes for each entry.
func parseTree(content []byte) ([]Entry, error) {
	var entries []Entry
	for len(content) > 0 {
		mode, rest, ok := bytes.Cut(content, []byte(" "))
		name, rest, ok2 := bytes.Cut(rest, []byte{0})
		if !ok || !ok2 || len(rest) < 20 {
			return nil, errors.New("malformed")
		}
		entries = append(entries, Entry{Name: string(name), Mode: string(mode), ID: hex.EncodeToString(rest[:20])})
		content = rest[20:]
	}
	return entries, nil
}

// Blobs returns the contents of files by their IDs, with one process. A partial mirror fetches missing contents with
// one request. For a file of more than most bytes, the content is nil.
func (m *Mirror) Blobs(ctx context.Context, ids []string, most int64) (map[string][]byte, error) {
	entries := make([]Entry, len(ids))
	for i, id := range ids {
		if !mirror.IsHash(id) {
			return nil, fmt.Errorf("object %q: not 40 hexadecimal digits", id)
		}
		entries[i] = Entry{ID: id}
	}
	found := make(map[string][]byte, len(ids))
	err := m.read(ctx, entries, nil, func(e Entry, size int64, r io.Reader) error {
		if size > most {
			found[e.ID] = nil
			return nil
		}
		content := make([]byte, size)
		_, err := io.ReadFull(r, content)
		found[e.ID] = content
		return err
	})
	return found, err
}

// Parents returns the parents of commits (40 digits each), with one process.
func (m *Mirror) Parents(ctx context.Context, commits []string) (map[string][]string, error) {
	found := make(map[string][]string, len(commits))
	if len(commits) == 0 {
		return found, nil
	}
	if _, err := m.treesOf(ctx, commits); err != nil {
		return nil, err
	}
	in := strings.Join(commits, "\n") + "\n"
	out, err := m.Git.Output(ctx, command.Call{Args: []string{"rev-list", "--no-walk=unsorted", "--parents", "--stdin"},
		Stdin: in})
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 0 {
			found[f[0]] = f[1:]
		}
	}
	return found, err
}

// IsAncestor reports whether a commit is reachable from another one.
func (m *Mirror) IsAncestor(ctx context.Context, commit, of string) (bool, error) {
	_, err := m.Git.Output(ctx, command.Call{Args: []string{"merge-base", "--is-ancestor", commit, of}})
	if exit, ok := errors.AsType[*command.ExitError](err); ok && exit.Status.Code == 1 {
		return false, nil
	}
	return err == nil, err
}
