package remote

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor/job"
)

const (
	// startTime is added to derived time limits: a worker reads the project, brings inputs, and may pull an image.
	startTime = 15 * time.Minute
	// spread is how many times as long as its forecast a node may take within a derived limit.
	spread = 3
)

// limits are the time limits of the jobs of one node. With a limit, a scheduler can fit a job into a gap before a
// larger job.
type limits struct {
	declared time.Duration // sum of the timeouts of the node's commands; 0: not all have one
	reached  bool          // a job reached its limit, or one that ended unseen may have; the next jobs have none
}

// limit returns the time limit of the next job, and whether it is derived; 0: the limit of the partition.
func (j *attempt) limit() (limit time.Duration, derived bool) {
	limit = cmp.Or(j.limits.declared, spread*j.env.Estimate)
	if j.Time > 0 || j.unlimited.Load() || j.limits.reached || limit == 0 {
		return j.Time, false
	}
	return (limit + startTime + time.Minute - 1).Truncate(time.Minute), true
}

// withoutLimit reports whether the cluster refuses the derived limit of the job. If so, later jobs ask for none.
func (j *attempt) withoutLimit(reason string) bool {
	reason = strings.ToLower(strings.NewReplacer(" ", "", "_", "").Replace(reason))
	ours := strings.Contains(reason, "timelimit") || strings.Contains(reason, "wall")
	if _, derived := j.limit(); !derived || !ours {
		return false
	}
	j.unlimited.Store(true)
	j.tell("the cluster does not take the derived time limit; the next jobs ask for none")
	return true
}

// timedOut completes the failure of a job that reached its time limit. After a derived limit, the next job asks for
// none, since the forecast may be for another command.
func (j *attempt) timedOut(f *engine.Failure, id job.ID, where string) {
	limit, derived := j.limit()
	f.Rule, f.Retry = "job_timeout", once()
	f.Message = "job " + id.Name() + " reached its time limit" + where
	f.Remedy = "raise time in the executor block " + j.Name
	if !derived {
		return
	}
	f.Message = fmt.Sprintf("job %s reached the time limit of %s that benchgraph derived for it%s; the next job asks "+
		"for none", id.Name(), inMinutes(limit), where)
	f.Remedy = "set time in the executor block " + j.Name
	j.limits.reached = true
	f.Retry = &engine.Retry{Attempts: engine.DefaultRetry(f.Class).Attempts + 1, Backoff: time.Second}
}

// inMinutes returns a duration for people: 1h25m.
func inMinutes(d time.Duration) string { return strings.TrimSuffix(d.String(), "0s") }
