package remote

import (
	"context"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// jobKey is the key by which the scheduler knows the job of a node. A job that makes a result again has the round in
// it, so that it is never taken for another job of the node.
func jobKey(key cache.Key, owner, round string) string {
	name := key.String() + ":" + owner
	if round != "" {
		name += ":" + round
	}
	return name
}

// jobs begins the names of what jobs leave in the bucket: jobs/OWNER/KEY.json is an outcome, see Outcome. Of a job that
// makes a result again it is jobs/OWNER/KEY.ROUND.json, and jobs/OWNER/KEY.ROUND.entry is the result. An input of which
// the shared store has another result under its key is jobs/OWNER/KEY.DIGEST.input.
const jobs = "jobs/"

// Ends of the names.
const (
	outcomeEnd = ".json"
	resultEnd  = ".entry"
	inputEnd   = ".input"
)

func objectOf(jobKey, end string) string {
	key, rest, _ := strings.Cut(jobKey, ":")
	owner, round, again := strings.Cut(rest, ":")
	if again {
		key += "." + round
	}
	return jobs + owner + "/" + key + end
}

// outcomeOf is the name of the outcome of a job.
func outcomeOf(jobKey string) string { return objectOf(jobKey, outcomeEnd) }

// inputOf is the name of an input of jobs of a project.
func inputOf(owner string, e cache.Entry) string {
	return objectOf(jobKey(e.Key, owner, e.Digest), inputEnd)
}

// leftBy returns the owner and the key of the job that has left an object, and the end of its name.
func leftBy(object string) (owner, key, end string) {
	owner, name, _ := strings.Cut(strings.TrimPrefix(object, jobs), "/")
	for _, end := range []string{outcomeEnd, resultEnd, inputEnd} {
		if name, ok := strings.CutSuffix(name, end); ok {
			key, round, again := strings.Cut(name, ".")
			if key += ":" + owner; again {
				key += ":" + round
			}
			return owner, key, end
		}
	}
	return owner, "", ""
}

// begin gives the job of the attempt its key. A result that is there and is to be made again is marked before, see
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
	j.key = jobKey(j.env.Key, owner, round)
	if round != "" {
		j.names[j.env.Key] = objectOf(j.key, resultEnd)
	}
	return nil
}

// round is part of the key of a job that makes a result again; "" of another job.
func (j *attempt) round() string {
	_, rest, _ := strings.Cut(j.key, ":")
	_, round, _ := strings.Cut(rest, ":")
	return round
}

// take lays out the result from the shared store. The error wraps cache.ErrMiss if there is none.
func (j *attempt) take(ctx context.Context) error {
	if j.round() != "" {
		m, err := j.Store.Lay(ctx, j.env.Key, j.names[j.env.Key], j.env.Out)
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
		err = workdir.CopyTree(j.env.Out, e.Dir)
	}
	return err
}

// Due returns the addresses of nodes of a plan whose results an earlier apply was to make again, and did not take from
// their jobs.
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
