package git

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/source/git/command"
)

// Step is a commit and its reference, which is the first parent if From is empty. Both have 40 digits.
type Step struct{ From, To string }

// maxChanged limits the paths that a step may change: a larger change was not written by a person.
const maxChanged = 100_000

// Changed returns the paths that differ in each step, in git's order. A renamed file counts with its old and its new
// path. A commit without a parent has no differences. One git process answers all steps.
func (m *Mirror) Changed(ctx context.Context, steps []Step) ([][]string, error) {
	var revs []string
	for _, s := range steps {
		revs = append(revs, s.To, cmp.Or(s.From, s.To+"^"))
	}
	found, err := m.Resolve(ctx, revs)
	if err := m.onlyRoots(err, found); err != nil {
		return nil, err
	}
	pairs := make([][2]string, len(steps))
	for i, s := range steps {
		from := found[cmp.Or(s.From, s.To+"^")]
		pairs[i] = [2]string{cmp.Or(from.Tree, emptyTree), found[s.To].Tree}
	}
	all := make([][]string, len(steps))
	err = m.differences(ctx, pairs, nil, func(i int, c change) error {
		if len(all[i]) == maxChanged {
			return fmt.Errorf("commit %s changes more than %d paths", steps[i].To, maxChanged)
		}
		all[i] = append(all[i], c.Name)
		return nil
	})
	return all, err
}

// onlyRoots returns nil if err only reports that known commits have no parent, and otherwise err.
func (m *Mirror) onlyRoots(err error, found map[string]Resolved) error {
	many, joined := err.(interface{ Unwrap() []error })
	if !joined {
		return err
	}
	for _, e := range many.Unwrap() {
		var unknown *UnknownRev
		if !errors.As(e, &unknown) {
			return err
		}
		commit, parent := strings.CutSuffix(unknown.Rev, "^")
		if _, there := found[commit]; !parent || !there || unknown.Shallow {
			return err
		}
	}
	return nil
}

// Place is a path in the tree of a commit (40 digits). The path has no control characters.
type Place struct{ Commit, Path string }

// Find returns the entry at each place: a file, a link, a directory, a submodule, or the zero Entry if there is none.
// It reads only trees, so no content is fetched.
func (m *Mirror) Find(ctx context.Context, places []Place) ([]Entry, error) {
	commits := make([]string, len(places))
	var dirs []Place
	asked := map[Place]bool{}
	for i, p := range places {
		commits[i] = p.Commit
		if dir := p.dir(); !asked[dir] {
			asked[dir] = true
			dirs = append(dirs, dir)
		}
	}
	if _, err := m.treesOf(ctx, commits); err != nil {
		return nil, err
	}
	listed, err := m.Dirs(ctx, dirs)
	if err != nil {
		return nil, err
	}
	found := make([]Entry, len(places))
	for i, p := range places {
		entries := listed[p.dir()]
		name := path.Base(p.Path)
		if k := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name }); k >= 0 {
			found[i] = entries[k]
		}
	}
	return found, nil
}

// dir returns the directory of a place.
func (p Place) dir() Place {
	dir := path.Dir(p.Path)
	if dir == "." {
		dir = ""
	}
	return Place{p.Commit, dir}
}

// maxTree limits the list of one directory, in bytes.
const maxTree = 64 << 20

// readTree reads one answer of cat-file. It returns the content of a tree, or nil for another or missing object.
func readTree(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(line)
	if len(fields) < 3 || strings.HasSuffix(line, " missing\n") {
		return nil, nil
	}
	size, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
	if err != nil || size < 0 {
		return nil, fmt.Errorf("answer %q is not understood", strings.TrimSpace(line))
	}
	if fields[1] != "tree" || size > maxTree {
		_, err = io.CopyN(io.Discard, r, size+1)
		return nil, err
	}
	text := make([]byte, size+1) // with the newline at the end
	_, err = io.ReadFull(r, text)
	return text[:size], err
}

// Contents calls each with the content of every file in found, by index, cut off after limit+1 bytes. For an entry
// that is no regular file, err is set. Missing objects are fetched with one request.
func (m *Mirror) Contents(ctx context.Context, found []Entry, limit int64,
	each func(i int, text []byte, err error)) error {
	index := map[string][]int{}
	var files []Entry
	for i, f := range found {
		switch {
		case !f.Exists():
			each(i, nil, errors.New("there is no such file"))
		case f.Mode != modeFile && f.Mode != modeExec:
			each(i, nil, errors.New("it is no regular file"))
		default:
			if index[f.ID] == nil {
				files = append(files, f)
			}
			index[f.ID] = append(index[f.ID], i)
		}
	}
	if len(files) == 0 {
		return nil
	}
	return m.read(ctx, files, nil, func(e Entry, _ int64, r io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(r, limit+1))
		if err != nil {
			return err
		}
		for _, i := range index[e.ID] {
			each(i, text, nil)
		}
		return nil
	})
}

// Describe returns the output of git describe --tags --long for each commit, from tags that contain a digit:
// TAG-NUMBER-gHASH. Commits without such a tag are missing from the result.
func (m *Mirror) Describe(ctx context.Context, commits []string) (map[string]string, error) {
	if _, err := m.treesOf(ctx, commits); err != nil {
		return nil, err
	}
	// fetch the tags: a commit may have arrived without them
	if err := m.FetchNamed(ctx, nil, false); err != nil && !m.Offline {
		return nil, err
	}
	return m.DescribeHeld(ctx, commits)
}

// DescribeHeld is Describe with only the mirror's tags; it does not use the network.
func (m *Mirror) DescribeHeld(ctx context.Context, commits []string) (map[string]string, error) {
	all := map[string]string{}
	for batch := range slices.Chunk(commits, 500) {
		args := append([]string{"describe", "--tags", "--long", "--always", "--match", "*[0-9]*"}, batch...)
		out, err := m.Git.Output(ctx, command.Call{Args: args})
		if err != nil {
			return nil, err
		}
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if len(lines) != len(batch) {
			return nil, fmt.Errorf("git describe: %d answers to %d questions", len(lines), len(batch))
		}
		for i, line := range lines {
			if strings.Contains(line, "-g") { // otherwise it is only a hash
				all[batch[i]] = line
			}
		}
	}
	return all, nil
}
