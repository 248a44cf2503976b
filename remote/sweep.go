package remote

import (
	"context"
	"encoding/json"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/remote/again"
	"github.com/benchgraph/benchgraph/remote/objects"
)

const (
	// sweepAge is the least age of removed files and jobs of another project on this machine, or of a killed apply.
	// Younger ones may belong to a job that is being submitted.
	sweepAge = 24 * time.Hour
	// outcomeAge is how long an outcome stays in the shared store if nobody asks for it.
	outcomeAge = 30 * sweepAge
)

// Sweep removes what jobs of earlier applies have left: for keys whose result the plan has, for keys that the plan does
// not have, and, after a day, for projects on this machine that are gone. It removes nothing of a job that is queued or
// runs, and keeps a failure that no apply has seen for a day. live are the jobs of this project that go on although the
// plan does not run their nodes. The caller holds the lock of applies.
func (x *Executor) Sweep(ctx context.Context, p *engine.Plan) (live []job.ID, err error) {
	owner, err := x.owner()
	if err != nil {
		return nil, err
	}
	wanted, err := x.wanted(p, owner)
	errs := []error{err}
	failed, err := x.sweepOutcomes(ctx, owner, wanted)
	errs = append(errs, err)
	counts, _ := filepath.Glob(filepath.Join(x.Project.State, "submitted", "*"))
	for _, path := range counts {
		if info, err := os.Lstat(path); err == nil && !wanted[path] && time.Since(info.ModTime()) > sweepAge {
			errs = append(errs, os.Remove(path))
		}
	}
	if kept, _ := os.ReadDir(x.WorkDir); len(kept) == 0 { // no job has left anything
		return nil, errors.Join(errs...)
	}
	scheduler, failure := x.Open() // the error shows when a job is submitted
	if keeper, ok := scheduler.(job.Keeper); ok && failure == nil {
		ownerIn := func(key string) string {
			_, jobOwner, _ := strings.Cut(key, ":")
			jobOwner, _, _ = strings.Cut(jobOwner, ":")
			return jobOwner
		}
		live, err = keeper.Sweep(ctx, func(key string, changed time.Time, project []byte) bool {
			jobOwner := ownerIn(key)
			old := time.Since(changed) > sweepAge
			switch {
			case jobOwner == owner:
				return wanted[key] || failed[key]
			case !isOwner(jobOwner) || !old:
				return true
			}
			return !gone(project)
		})
		errs = append(errs, err)
		live = slices.DeleteFunc(live, func(id job.ID) bool {
			_, known := wanted[id.Key()] // its node has a result, so the job ends
			return known || ownerIn(id.Key()) != owner
		})
	}
	return live, errors.Join(errs...)
}

// wanted returns the keys of the jobs that a plan waits for, the files that count them, and the keys of their inputs.
// Keys of jobs whose results the plan has are there with the value false.
func (x *Executor) wanted(p *engine.Plan, owner string) (map[string]bool, error) {
	wanted, toRun, planned := map[string]bool{}, map[cache.Key]bool{}, map[cache.Key]bool{}
	for i := range p.Steps {
		s := &p.Steps[i]
		planned[s.Key] = true
		if s.Node.Remote == nil {
			continue
		}
		if s.Action == engine.Cached {
			wanted[objects.JobKey(s.Key, owner, "")] = false
			continue
		}
		toRun[s.Key], wanted[objects.JobKey(s.Key, owner, "")], wanted[x.countOf(s.Key)] = true, true, true
		for _, dep := range s.Node.Needs {
			if input, ok := p.Step(dep.Address); ok {
				wanted[input.Key.String()] = true
			}
		}
	}
	marks, err := x.marks.Sweep(func(m again.Mark) (bool, bool) { return toRun[m.Key], planned[m.Key] }, sweepAge)
	for key, m := range marks { // also for nodes that this plan leaves out
		wanted[objects.JobKey(key, owner, m.Round)], wanted[x.countOf(key)+"."+m.Round] = true, true
	}
	return wanted, err
}

// sweepOutcomes removes objects that jobs left in the bucket and that are not wanted. It returns the keys of jobs whose
// failures it keeps.
func (x *Executor) sweepOutcomes(ctx context.Context, owner string, wanted map[string]bool) (map[string]bool, error) {
	var remove []string
	failed := map[string]bool{}
	for o, err := range x.Bucket.List(ctx, objects.Dir) {
		if err != nil {
			return failed, err
		}
		jobOwner, key, end := objects.By(o.Name)
		input, _, _ := strings.Cut(key, ":")
		age := time.Since(o.Stored)
		switch {
		case jobOwner == owner && (wanted[key] || end == objects.Input && wanted[input]):
		case jobOwner == owner && end == objects.Outcome:
			left, err := x.readOutcome(ctx, o.Name)
			_, done := wanted[key]
			if failed[key] = err == nil && left.Failure != nil && age < sweepAge && !done; !failed[key] {
				remove = append(remove, o.Name)
			}
		case jobOwner == owner || age > outcomeAge:
			remove = append(remove, o.Name)
		}
	}
	if len(remove) == 0 {
		return failed, nil
	}
	return failed, x.Bucket.Remove(ctx, remove)
}

// home is the place of a job's project.
type home struct {
	Host  string `json:"host"`
	State string `json:"state"` // directory
}

// gone reports whether a project was on this machine and no longer exists.
func gone(project []byte) bool {
	var h home
	if json.Unmarshal(project, &h) != nil || h.Host != host() {
		return false
	}
	_, err := os.Stat(h.State)
	return errors.Is(err, iofs.ErrNotExist)
}

// host returns the name of this machine.
func host() string {
	name, _ := os.Hostname() // Linux always has one
	return name
}
