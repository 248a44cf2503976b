package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/source/git/command"
	"github.com/benchgraph/benchgraph/source/git/mirror"
)

// Git's file modes.
const (
	modeFile      = "100644"
	modeExec      = "100755"
	modeLink      = "120000"
	modeSubmodule = "160000"
)

// emptyTree is the tree without entries; every git knows it without storing it.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// list lists the content of trees, in git's order, with one process. It compares them with the empty tree.
func (m *Mirror) list(ctx context.Context, trees, env []string, each func(tree int, e Entry) error) error {
	pairs := make([][2]string, len(trees))
	for i, tree := range trees {
		pairs[i] = [2]string{emptyTree, tree}
	}
	return m.differences(ctx, pairs, env, func(i int, c change) error {
		return each(i, c.Entry)
	})
}

// differences lists the differences between the two trees of each pair, in git's order, with one process.
func (m *Mirror) differences(ctx context.Context, pairs [][2]string, env []string,
	each func(pair int, c change) error) error {
	var in strings.Builder
	for _, pair := range pairs {
		fmt.Fprintf(&in, "%s %s\n", pair[0], pair[1])
	}
	args := []string{"diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--abbrev=40", "--no-ext-diff"}
	return m.Git.Stream(ctx, command.Call{Args: args, Stdin: in.String(), Env: env}, func(r *bufio.Reader) error {
		tree := -1
		for {
			first, err := r.Peek(1)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			if first[0] != ':' {
				if _, err := r.ReadString('\n'); err != nil {
					return err
				}
				tree++
				continue
			}
			change, err := readChange(r)
			if err != nil {
				return err
			}
			if tree < 0 || tree >= len(pairs) {
				return errors.New("diff-tree: an entry of no tree")
			}
			if err := each(tree, change); err != nil {
				return err
			}
		}
		if tree != len(pairs)-1 {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
}

// change is one line of git's raw diff: a path with its mode and object before and after.
type change struct {
	Entry
	oldMode string
	oldID   string
}

// readChange reads ":<old mode> <mode> <old id> <id> <status>\0<path>\0". It parses by hand, since a campaign's
// commits have hundreds of thousands of lines.
func readChange(r *bufio.Reader) (change, error) {
	meta, err := r.ReadSlice(0)
	if err != nil {
		return change{}, err
	}
	const length = len(":000000 000000 ") + 2*len(emptyTree+" ") + len("A\x00")
	if len(meta) != length || meta[0] != ':' || meta[7] != ' ' || meta[14] != ' ' || meta[55] != ' ' ||
		meta[96] != ' ' {
		return change{}, fmt.Errorf("raw difference %q: not understood", meta)
	}
	c := change{oldMode: string(meta[1:7]), oldID: string(meta[15:55]),
		Entry: Entry{Mode: string(meta[8:14]), ID: string(meta[56:96])}}
	path, err := r.ReadString(0)
	c.Name = strings.TrimSuffix(path, "\x00")
	return c, err
}

// read passes the content of each entry to each, in order, with one process. Entries that the mirror lacks are
// fetched with one request and passed last.
func (m *Mirror) read(ctx context.Context, entries []Entry, env []string,
	each func(e Entry, size int64, r io.Reader) error) error {
	missing, err := m.readPresent(ctx, entries, env, each)
	if err != nil || len(missing) == 0 {
		return err
	}
	var ids []string
	seen := map[string]bool{}
	for _, e := range missing {
		if !seen[e.ID] {
			seen[e.ID], ids = true, append(ids, e.ID)
		}
	}
	if err := m.FetchObjects(ctx, ids); err != nil {
		return err
	}
	missing, err = m.readPresent(ctx, missing, env, each)
	if err == nil && len(missing) > 0 {
		err = &mirror.MissingObjects{Location: m.Shown, Object: missing[0].ID, Count: len(missing),
			Remedy: "the server did not send them"}
	}
	return err
}

// readPresent is read for entries in the mirror; it returns the missing ones.
func (m *Mirror) readPresent(ctx context.Context, entries []Entry, env []string,
	each func(Entry, int64, io.Reader) error) (missing []Entry, err error) {
	if len(entries) == 0 {
		return nil, nil
	}
	var in strings.Builder
	for _, e := range entries {
		in.WriteString(e.ID)
		in.WriteByte('\n')
	}
	err = m.Git.Stream(ctx, command.Call{Args: []string{"cat-file", "--batch", "--buffer"}, Stdin: in.String(),
		Env: env}, func(r *bufio.Reader) error {
		for _, e := range entries {
			size, err := readHeader(r, e.ID)
			if err != nil {
				return err
			}
			if size < 0 {
				missing = append(missing, e)
				continue
			}
			content := &io.LimitedReader{R: r, N: size}
			if err := each(e, size, content); err != nil {
				return err
			}
			// Skip the rest of the content and the newline after it.
			if _, err := io.CopyN(io.Discard, r, content.N+1); err != nil {
				return err
			}
		}
		return nil
	})
	return missing, err
}

// readHeader parses "<id> blob <size>"; for "<id> missing" it returns -1.
func readHeader(r *bufio.Reader, id string) (int64, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	f := strings.Fields(line)
	switch {
	case len(f) == 2 && f[0] == id && f[1] == "missing":
		return -1, nil
	case len(f) == 3 && f[0] == id && f[1] == "blob":
		if size, err := strconv.ParseInt(f[2], 10, 64); err == nil && size >= 0 {
			return size, nil
		}
	}
	return 0, fmt.Errorf("object %s: answer %q is not understood", id, strings.TrimSpace(line))
}

// treesOf returns the tree of each commit. It fetches commits that the mirror lacks.
func (m *Mirror) treesOf(ctx context.Context, commits []string) ([]string, error) {
	for _, c := range commits {
		if !mirror.IsHash(c) {
			return nil, fmt.Errorf("commit %q: not 40 hexadecimal digits", c)
		}
	}
	found, err := m.Resolve(ctx, commits)
	if err != nil {
		return nil, err
	}
	trees := make([]string, len(commits))
	for i, c := range commits {
		trees[i] = found[c].Tree
	}
	return trees, nil
}
