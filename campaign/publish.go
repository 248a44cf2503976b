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

// Published lists the files of reports, by the action of Publish.
type Published struct {
	Written []string
	// left as they are, since they may know more: the store has measurements of another class of machines, and none of
	// this machine's class
	Left    []string
	Removed []string // of formats that the file no longer asks for
}

// Publish copies the reports from the store to their directories, where they differ. It removes files of formats that
// the project no longer asks for, unless they changed since an earlier apply wrote them.
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
			continue // the report was not made; others may have been
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

// unpublish removes files that earlier results of a report put into its directory, except wanted ones. A file that
// somebody changed stays.
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
			continue // the list of files is gone with the result
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

// publish replaces dst by a copy of src, unless both are equal. It spares a dst that differs if knowsLess is true: dst
// may have the results of another class of machines.
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
