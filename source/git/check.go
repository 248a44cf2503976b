package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"runtime"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"golang.org/x/sync/errgroup"

	"github.com/benchgraph/benchgraph/source/git/patch"
	"github.com/benchgraph/benchgraph/source/git/tree"
)

// largestPatched limits the files on which a patch is tried in memory. Git handles larger ones.
const largestPatched = 16 << 20

// Patching is a patch and the commit (40 digits) to which it is applied.
type Patching struct {
	Commit string
	Text   []byte
}

// CheckPatches returns for each patch why it does not apply (*PatchError or *Escapes), or nil. It writes no files.
// The answers are those of Apply: git decides about every patch that does not apply simply in memory.
func (m *Mirror) CheckPatches(ctx context.Context, all []Patching) ([]error, error) {
	answers := make([]error, len(all))
	tries := make([]try, len(all))
	var places []Place
	for i, p := range all {
		readings, err := patch.Readings(p.Text)
		if err != nil {
			answers[i] = err
			continue
		}
		tries[i] = try{readings: readings, plain: plain(readings[0].Parts)}
		for _, part := range readings[0].Parts {
			places = append(places, Place{p.Commit, part.Name()}.dir())
		}
	}
	dirs, err := m.Dirs(ctx, places)
	if err != nil {
		return nil, err
	}
	var wanted []string
	for i := range tries {
		wanted = append(wanted, tries[i].find(all[i].Commit, dirs)...)
	}
	contents, err := m.Blobs(ctx, wanted, largestPatched)
	if err != nil {
		return nil, err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range tries {
		if answers[i] != nil || tries[i].applies(contents) {
			continue
		}
		g.Go(func() error {
			err := m.patched(ctx, all[i].Commit, tries[i].readings,
				func(string, listing, []string) error { return nil })
			_, refused := errors.AsType[*PatchError](err)
			if _, out := errors.AsType[*Escapes](err); refused || out {
				answers[i], err = err, nil
			}
			return err
		})
	}
	return answers, g.Wait()
}

// try is a patch that is tried in memory.
type try struct {
	readings []patch.Reading
	plain    bool     // it may apply in memory; false: git decides
	ids      []string // IDs of the files that it changes, by part; empty: no such file
}

// plain reports whether a patch only changes, creates and removes text files, each once.
func plain(parts []patch.Part) bool {
	seen := map[string]bool{}
	for _, p := range parts {
		name := p.Name()
		if p.File.IsRename || p.File.IsCopy || p.File.IsBinary || p.File.NewMode != 0 && !p.File.IsNew ||
			p.File.NewMode&^0o100755 != 0 || seen[name] || !tree.Inside(name) || len(p.File.TextFragments) == 0 {
			return false
		}
		seen[name] = true
		// git applies a hunk that ends with a change only at the end of the file
		for _, h := range p.File.TextFragments {
			if h.TrailingContext == 0 && !p.File.IsNew && !p.File.IsDelete {
				return false
			}
		}
	}
	return true
}

// find records the files that the patch changes, and returns their IDs.
func (t *try) find(commit string, dirs map[Place][]Entry) []string {
	if !t.plain {
		return nil
	}
	var wanted []string
	for _, p := range t.readings[0].Parts {
		entries, id := dirs[Place{commit, p.Name()}.dir()], ""
		for _, e := range entries {
			if e.Name != path.Base(p.Name()) {
				continue
			}
			if id = e.ID; e.Mode != modeFile && e.Mode != modeExec {
				t.plain = false
			}
		}
		// In an empty or new directory, a component of the path may be a file.
		if (id == "") != p.File.IsNew || p.File.IsNew && len(entries) == 0 {
			t.plain = false
		}
		if t.ids = append(t.ids, id); id != "" {
			wanted = append(wanted, id)
		}
	}
	if !t.plain {
		return nil
	}
	return wanted
}

// applies reports whether each hunk applies exactly at its line.
func (t *try) applies(contents map[string][]byte) bool {
	if !t.plain {
		return false
	}
	for i, p := range t.readings[0].Parts {
		content := contents[t.ids[i]]
		if t.ids[i] != "" && content == nil || gitdiff.Apply(io.Discard, bytes.NewReader(content), p.File) != nil {
			return false
		}
	}
	return true
}
