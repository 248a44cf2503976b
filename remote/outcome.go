package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/sshkey"
	"github.com/benchgraph/benchgraph/remote/objects"
)

// Outcome is the end of a worker. It is in the bucket of the shared store, where all machines find it.
type Outcome struct {
	// name of the job in the scheduler, so that the outcome of an earlier job does not count; "": not known
	Job        string           `json:"job"`
	Seconds    float64          `json:"seconds"`              // how long the worker ran
	Failure    *failure.Failure `json:"failure,omitempty"`    // nil: the result is in the shared store
	Result     string           `json:"result,omitempty"`     // digest of the result; "": an earlier version's worker
	Transcript json.RawMessage  `json:"transcript,omitempty"` // of the failed attempt
}

// statement returns the text that the signature of an outcome covers: the name has the key, and the JSON has the job.
func statement(name string, text []byte) []byte {
	return fmt.Appendf(nil, "benchgraph outcome 1\n%s\n%s", name, text)
}

// outcomeLost begins the last line of a worker that cannot put its outcome into the bucket; the reason follows.
const outcomeLost = "outcome of the job: "

// Leave puts the outcome of a request's job into the bucket: a line of JSON, and a line with the signature if there is
// a signing key.
func (r *Request) Leave(ctx context.Context, b bucket.Bucket, keys sshkey.Keys, o Outcome) error {
	name := objects.Name(objects.JobKey(r.Key, r.Owner, r.Round), objects.Outcome)
	text, err := json.Marshal(o)
	if signature := keys.Sign(statement(name, text)); signature != sshkey.NoSignature {
		text = fmt.Appendf(text, "\n%s", signature)
	}
	if err == nil {
		err = b.Replace(ctx, name, bytes.NewReader(text), int64(len(text)))
	}
	if err != nil {
		return fmt.Errorf(outcomeLost+"%w", err)
	}
	return nil
}

// errUnsigned is the error for an outcome that is not believed: anybody who can write to the store may have put it
// there.
var errUnsigned = errors.New("no key of trust signed it")

// readOutcome reads an outcome from the bucket. The error wraps errUnsigned if the outcome is not believed.
func (x *Executor) readOutcome(ctx context.Context, name string) (o Outcome, err error) {
	body, err := x.Bucket.Open(ctx, name)
	if err != nil {
		return o, err
	}
	defer body.Close()
	all, err := io.ReadAll(io.LimitReader(body, maxFile))
	if err != nil {
		return o, err
	}
	text, signature, _ := bytes.Cut(all, []byte("\n"))
	if !x.Keys.Believes(statement(name, text), string(signature)) {
		return o, errUnsigned
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return Outcome{}, err
	}
	return o, nil
}

// outcome returns the outcome of the node's last worker; false if there is none.
func (j *attempt) outcome(ctx context.Context) (o Outcome, ok bool) {
	o, err := j.readOutcome(ctx, objects.Name(j.key, objects.Outcome))
	switch {
	case errors.Is(err, errUnsigned):
		j.tell("%s", unbelieved)
	case err == nil && len(j.Keys.Trust) > 0: // it may be an old one that somebody put back
		if s, ok := j.submissions(); !ok || s.Last != "" && s.Last != o.Job {
			return Outcome{}, false
		}
	}
	return o, err == nil
}

// unbelieved is why an outcome does not count.
const unbelieved = "the outcome of the job in the shared store is not believed: no key of trust signed it"

// errOther is the error for the outcome of another job.
var errOther = errors.New("it is the outcome of another job")

// outcomeFrom returns the outcome of one job, or an error if there is none yet. See readOutcome.
func (j *attempt) outcomeFrom(ctx context.Context, name string) (o Outcome, err error) {
	o, err = j.readOutcome(ctx, objects.Name(j.key, objects.Outcome))
	// With trust, an outcome without a job's name is not believed: somebody may have kept it from an earlier job.
	if nameless := o.Job == "" && len(j.Keys.Trust) == 0; err == nil && o.Job != name && !nameless {
		return Outcome{}, errOther
	}
	return o, err
}
