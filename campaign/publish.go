package campaign

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Publish copies the reports from the store to their directories, where they differ. It returns the files written, and
// those that were left as they are because they know more: nothing of what is measured is stored for this machine's
// class, and something is for another one.
func (p *Project) Publish(ctx context.Context, plan *engine.Plan) (written, left []string, err error) {
	knowsLess := sync.OnceValues(func() (bool, error) { return p.knowsLess(ctx, plan) })
	for i := range p.Spec.Reports {
		r := &p.Spec.Reports[i]
		step, ok := plan.Step(r.Address.String())
		if !ok {
			continue
		}
		end, err := plan.End(ctx, p.Store, step)
		if err != nil {
			return written, left, err
		}
		if end.Entry.Dir == "" {
			continue // the others are there nevertheless
		}
		for _, f := range end.Entry.Files {
			dst := filepath.Join(p.Spec.Dir, filepath.FromSlash(r.Dir), filepath.FromSlash(f.Path))
			wrote, spared, err := publish(dst, filepath.Join(end.Entry.Dir, filepath.FromSlash(f.Path)), knowsLess)
			switch {
			case err != nil:
				return written, left, fmt.Errorf("%s: %w", r.Address, err)
			case wrote:
				written = append(written, dst)
			case spared:
				left = append(left, dst)
			}
		}
	}
	return written, left, nil
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
