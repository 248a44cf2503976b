package campaign

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Published is what became of the files of reports.
type Published struct {
	Written []string
	// left as they are because they know more: nothing of what is measured is stored for this machine's class, and
	// something is for another one
	Left    []string
	Removed []string // of formats that the file asked for before, and not now
}

// Publish copies the reports from the store to their directories, where they differ. It removes files of formats that
// are not asked for any more, if they are as an earlier apply wrote them.
func (p *Project) Publish(ctx context.Context, plan *engine.Plan) (done Published, err error) {
	knowsLess := sync.OnceValues(func() (bool, error) { return p.knowsLess(ctx, plan) })
	wanted := map[string]bool{}
	var published []*hclspec.Report
	for i := range p.Spec.Reports {
		r := &p.Spec.Reports[i]
		step, ok := plan.Step(r.Address.String())
		if !ok {
			continue
		}
		end, err := plan.End(ctx, p.Store, step)
		if err != nil {
			return done, err
		}
		if end.Entry.Dir == "" {
			continue // the others are there nevertheless
		}
		published = append(published, r)
		for _, f := range end.Entry.Files {
			dst := filepath.Join(p.Spec.Dir, filepath.FromSlash(r.Dir), filepath.FromSlash(f.Path))
			wanted[dst] = true
			wrote, spared, err := publish(dst, filepath.Join(end.Entry.Dir, filepath.FromSlash(f.Path)), knowsLess)
			switch {
			case err != nil:
				return done, fmt.Errorf("%s: %w", r.Address, err)
			case wrote:
				done.Written = append(done.Written, dst)
			case spared:
				done.Left = append(done.Left, dst)
			}
		}
	}
	for _, r := range published {
		if len(done.Left) > 0 {
			break
		}
		removed, err := p.unpublish(ctx, r, wanted)
		if done.Removed = append(done.Removed, removed...); err != nil {
			return done, fmt.Errorf("%s: %w", r.Address, err)
		}
	}
	return done, nil
}

// unpublish removes the files of a report that earlier results of it have, unless they are wanted. A file that somebody
// changed stays.
func (p *Project) unpublish(ctx context.Context, r *hclspec.Report, wanted map[string]bool) (removed []string,
	err error) {
	dir := filepath.Join(p.Spec.Dir, filepath.FromSlash(r.Dir))
	others := map[string]bool{}
	list, _ := os.ReadDir(dir)
	for _, f := range list {
		if f.Type().IsRegular() && !wanted[filepath.Join(dir, f.Name())] {
			others[f.Name()] = true
		}
	}
	if len(others) == 0 {
		return nil, nil
	}
	for _, a := range slices.Backward(p.Journal.Attempts(r.Address.String())) {
		if a.Failure != nil {
			continue
		}
		old, err := p.ResultOf(ctx, a)
		if err != nil {
			continue // nothing says which files it had
		}
		for _, f := range old.Files {
			if !others[f.Path] {
				continue
			}
			name := filepath.Join(dir, f.Path)
			text, err := os.ReadFile(name)
			if err != nil || fmt.Sprintf("%x", sha256.Sum256(text)) != f.SHA256 {
				continue
			}
			if err := os.Remove(name); err != nil {
				return removed, err
			}
			delete(others, f.Path)
			removed = append(removed, name)
		}
	}
	return removed, nil
}

// publish replaces dst by a copy of src, unless they are alike. It spares a dst that differs if the store of this
// machine knows less than the dst may tell.
func publish(dst, src string, knowsLess func() (bool, error)) (wrote, spared bool, err error) {
	want, err := os.ReadFile(src)
	if err != nil {
		return false, false, err
	}
	if have, err := os.ReadFile(dst); err == nil {
		if slices.Equal(have, want) {
			return false, false, nil
		}
		if less, err := knowsLess(); less || err != nil {
			return false, less, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return false, false, err
	}
	return true, false, fs.Replace(dst, want)
}
