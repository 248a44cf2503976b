package remote

import (
	"context"
	"errors"
	iofs "io/fs"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/remote/objects"
)

// begin gives the job of the attempt its key. If a stored result must be made again, it is marked first, see
// again.Mark.
func (j *attempt) begin(owner string) error {
	round := ""
	if old := j.env.Replaces; old != nil {
		mark, err := j.marks.Begin(j.env.Key, *old)
		if err != nil {
			return err
		}
		round = mark.Round
		j.counted += "." + round
	}
	j.key = objects.JobKey(j.env.Key, owner, round)
	if round != "" {
		j.names[j.env.Key] = objects.Name(j.key, objects.Result)
	}
	return nil
}

// take lays out the result from the shared store. The error wraps cache.ErrMiss if there is none. For a result that is
// made again, the outcome of the job must name its digest: somebody may have put an earlier result of the key there.
func (j *attempt) take(ctx context.Context) error {
	if objects.Round(j.key) != "" {
		o, err := j.readOutcome(ctx, objects.Name(j.key, objects.Outcome))
		if errors.Is(err, iofs.ErrNotExist) || errors.Is(err, errUnsigned) || err == nil && o.Failure != nil {
			return cache.ErrMiss
		} else if err != nil {
			return err
		}
		m, err := j.Store.Lay(ctx, j.env.Key, j.names[j.env.Key], o.Result, j.env.Out)
		if err == nil {
			j.ran, j.done = m.Duration, true
			if m.Transcript != "" {
				j.takeTranscript([]byte(m.Transcript))
			}
		}
		return err
	}
	e, err := j.Store.Ask(ctx, j.env.Key)
	if err == nil {
		j.ran, j.done = e.Duration, true
		err = fs.CopyTree(j.env.Out, e.Dir)
	}
	return err
}

// Due returns the addresses of nodes of a plan whose results must be made again, since an earlier apply did not take
// them from their jobs.
func (x *Executor) Due(p *engine.Plan) map[string]bool {
	marks, due := x.marks.All(), map[string]bool{}
	if len(marks) == 0 {
		return due
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if there, ok := s.Stored(); ok && marks[s.Key].Due(there) && s.Node.Remote != nil {
			due[s.Node.Address] = true
		}
	}
	return due
}
