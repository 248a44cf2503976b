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
	// sweepAge is how old it must be what another project on this machine, or an apply that was killed, has left.
	// Something younger may belong to a job that is being submitted.
	sweepAge = 24 * time.Hour
	// outcomeAge is how long an outcome in the shared store stays that nobody has asked for.
	outcomeAge = 30 * sweepAge
)

// Sweep removes what jobs of earlier applies have left: of keys that the plan has a result of, or does not have, and
// after a day of projects on this machine that are gone. What is left stays while its job is queued or runs, and for a
// day if there is a failure that no apply has seen. Live are the jobs of this project that go on, and whose nodes the
// plan does not run. The caller holds the lock of applies.
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
	if kept, _ := os.ReadDir(x.WorkDir); len(kept) == 0 { // nobody need be asked
		return nil, errors.Join(errs...)
	}
	scheduler, failure := x.Open() // why none can be opened is told where a job is to be submitted
	if keeper, ok := scheduler.(job.Keeper); ok && failure == nil {
		own := func(key string) string {
			_, of, _ := strings.Cut(key, ":")
			of, _, _ = strings.Cut(of, ":")
			return of
		}
		live, err = keeper.Sweep(ctx, func(key string, changed time.Time, project []byte) bool {
			of := own(key)
			old := time.Since(changed) > sweepAge
			switch {
			case of == owner:
				return wanted[key] || failed[key]
			case !isOwner(of) || !old:
				return true
			}
			return !gone(project)
		})
		errs = append(errs, err)
		live = slices.DeleteFunc(live, func(id job.ID) bool {
			_, known := wanted[id.Key()] // it has its result, and ends
			return known || own(id.Key()) != owner
		})
	}
	return live, errors.Join(errs...)
}

// wanted are the keys of the jobs that a plan waits for, the files that count them, and the keys of their inputs. The
// keys of jobs whose results the plan has are there as false.
func (x *Executor) wanted(p *engine.Plan, owner string) (map[string]bool, error) {
	wanted, due, planned := map[string]bool{}, map[cache.Key]bool{}, map[cache.Key]bool{}
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
		due[s.Key], wanted[objects.JobKey(s.Key, owner, "")], wanted[x.countOf(s.Key)] = true, true, true
		for _, dep := range s.Node.Needs {
			if input, ok := p.Step(dep.Address); ok {
				wanted[input.Key.String()] = true
			}
		}
	}
	marks, err := x.marks.Sweep(func(m again.Mark) (bool, bool) { return due[m.Key], planned[m.Key] }, sweepAge)
	for key, m := range marks { // also of nodes that this plan leaves out
		wanted[objects.JobKey(key, owner, m.Round)], wanted[x.countOf(key)+"."+m.Round] = true, true
	}
	return wanted, err
}

// sweepOutcomes removes what jobs left in the bucket and nobody wants, and returns the keys of jobs whose failures
// stay.
func (x *Executor) sweepOutcomes(ctx context.Context, owner string, wanted map[string]bool) (map[string]bool, error) {
	var remove []string
	failed := map[string]bool{}
	for o, err := range x.Bucket.List(ctx, objects.Dir) {
		if err != nil {
			return failed, err
		}
		of, key, end := objects.By(o.Name)
		input, _, _ := strings.Cut(key, ":")
		age := time.Since(o.Stored)
		switch {
		case of == owner && (wanted[key] || end == objects.Input && wanted[input]):
		case of == owner && end == objects.Outcome:
			left, err := x.readOutcome(ctx, o.Name)
			_, done := wanted[key]
			if failed[key] = err == nil && left.Failure != nil && age < sweepAge && !done; !failed[key] {
				remove = append(remove, o.Name)
			}
		case of == owner || age > outcomeAge:
			remove = append(remove, o.Name)
		}
	}
	if len(remove) == 0 {
		return failed, nil
	}
	return failed, x.Bucket.Remove(ctx, remove)
}

// home says where the project of a job is.
type home struct {
	Host  string `json:"host"`
	State string `json:"state"` // directory
}

// gone reports whether a project was on this machine and is not there any more.
func gone(project []byte) bool {
	var of home
	if json.Unmarshal(project, &of) != nil || of.Host != host() {
		return false
	}
	_, err := os.Stat(of.State)
	return errors.Is(err, iofs.ErrNotExist)
}

// host returns the name of this machine.
func host() string {
	name, _ := os.Hostname() // Linux always has one
	return name
}
