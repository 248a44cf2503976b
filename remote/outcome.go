package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/failure"
)

// Outcome is how a worker ended. It lies in the bucket of the shared store, where all machines find it.
type Outcome struct {
	// name by which the scheduler knows the job, so that the outcome of an earlier job does not count; "": not known
	Job        string           `json:"job"`
	Seconds    float64          `json:"seconds"`              // for which the worker ran
	Failure    *failure.Failure `json:"failure,omitempty"`    // nil: the result is in the shared store
	Transcript json.RawMessage  `json:"transcript,omitempty"` // with a failure: what the node has run
}

// outcomes begins the names of outcomes in the bucket.
const outcomes = "jobs/"

// outcomeOf is the name of the outcome of a job: its owner, and its node's key.
func outcomeOf(jobKey string) string {
	key, owner, _ := strings.Cut(jobKey, ":")
	return outcomes + owner + "/" + key + ".json"
}

// Leave puts the outcome of a request's job into the bucket.
func (r *Request) Leave(ctx context.Context, b bucket.Bucket, o Outcome) error {
	text, err := json.Marshal(o)
	if err == nil {
		err = b.Replace(ctx, outcomeOf(jobKey(r.Key, r.Owner)), bytes.NewReader(text), int64(len(text)))
	}
	if err != nil {
		return fmt.Errorf("outcome of the job: %w", err)
	}
	return nil
}

// readOutcome reads an outcome in the bucket; false if there is none that can be read.
func (x *Executor) readOutcome(ctx context.Context, name string) (o Outcome, ok bool) {
	body, err := x.Bucket.Open(ctx, name, 0)
	if err != nil {
		return o, false
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxFile))
	return o, err == nil && json.Unmarshal(text, &o) == nil
}

// outcome returns what the last worker of the node has left; false if that is nothing.
func (j *attempt) outcome(ctx context.Context) (o Outcome, ok bool) {
	return j.readOutcome(ctx, outcomeOf(j.key))
}

// outcomeFrom returns the outcome of one job; false if there is none yet.
func (j *attempt) outcomeFrom(ctx context.Context, name string) (o Outcome, ok bool) {
	o, ok = j.outcome(ctx)
	return o, ok && (o.Job == name || o.Job == "")
}
