package remote

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// sweepAge is how old a directory must be that another project, or an apply that was killed, has left. A younger one
// may belong to a job that is being submitted.
const sweepAge = 24 * time.Hour

// jobDir is the name of the directory of a job: its owner, and the beginning of its key.
var jobDir = lazyregexp.New(`^[0-9a-f]{8}-[0-9a-f]{24}$`)

// Sweep removes directories that jobs of earlier applies have left: those of keys that the plan has a result of, or
// does not have, and after a day those of projects on this machine that are gone. A directory stays while its job is
// queued or runs, and for a day if it has a failure that no apply has seen. The caller holds the lock of applies.
func (x *Executor) Sweep(ctx context.Context, p *engine.Plan) error {
	entries, err := os.ReadDir(x.WorkDir)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	wanted := map[string]bool{}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Action != engine.Cached {
			wanted[x.dirOf(s.Key)] = true
		}
	}
	errs := []error{err}
	for _, e := range entries {
		dir := filepath.Join(x.WorkDir, e.Name())
		if !e.IsDir() || !jobDir().MatchString(e.Name()) || wanted[dir] || cache.CheckOwner(dir) != nil {
			continue
		}
		if left, err := x.leftover(ctx, dir); err != nil {
			return errors.Join(append(errs, err)...)
		} else if left {
			errs = append(errs, fs.RemoveTree(dir))
		}
	}
	return errors.Join(errs...)
}

// host returns the name of this machine.
func host() string {
	name, _ := os.Hostname() // Linux always has one
	return name
}

// leftover reports whether nobody needs the directory of a job any more.
func (x *Executor) leftover(ctx context.Context, dir string) (bool, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return false, nil
	}
	old := time.Since(info.ModTime()) > sweepAge
	own := strings.HasPrefix(filepath.Base(dir), x.owner()+"-")
	r, err := ReadRequest(dir)
	if err != nil {
		return own && old, nil
	}
	if own {
		var o Outcome
		if readJSON(filepath.Join(dir, outcomeFile), &o) == nil && o.Failure != nil && !old {
			return false, nil
		}
	} else if _, err := os.Stat(r.State); !errors.Is(err, iofs.ErrNotExist) || !old || r.Host != host() {
		return false, nil
	}
	scheduler, err := x.Open()
	if err != nil {
		return false, err
	}
	_, found, err := scheduler.Find(ctx, jobKey(r.Key, ownerOf(r.State)))
	return !found, err
}
