// Package pipe speaks to a scheduler that is a program of its own, beside benchgraph: the client library of a cloud is
// large, and costs each start of a program that it is linked into. The two programs send each other lines, each a JSON
// object. The other program ends when the pipe to it is closed, and leaves its jobs as they are.
package pipe

import (
	"encoding/json"
	"errors"

	"github.com/benchgraph/benchgraph/executor/job"
)

// protocol is the number of the protocol, which changes when the messages change.
const protocol = 1

// Scheduler hands jobs to machines, as a cluster or a cloud does. Log waits for a job that runs.
type Scheduler interface {
	job.Scheduler
	job.Logger
}

// What a call asks for. The first line is an open.
const (
	callOpen   = "open"
	callSubmit = "submit"
	callFind   = "find"
	callWait   = "wait"
	callCancel = "cancel"
	callLog    = "log"
	callStop   = "stop" // nobody waits any more for the answer to the call of the same number
)

// message is one line. The caller sends calls, and the scheduler sends what happens in the course of a call, and last
// its answer.
type message struct {
	Number   uint64          `json:"number,omitempty"` // of the call; 0: of none
	Call     string          `json:"call,omitempty"`
	Protocol int             `json:"protocol,omitempty"`
	Settings json.RawMessage `json:"settings,omitempty"` // of an open
	Job      *job.Job        `json:"job,omitempty"`      // to be submitted
	Key      string          `json:"key,omitempty"`      // to be looked for
	ID       job.ID          `json:"id,omitempty"`       // of a job

	Told   string      `json:"told,omitempty"`   // for the user; of no call
	Status *job.Status `json:"status,omitempty"` // how the job stands that is waited for
	Text   []byte      `json:"text,omitempty"`   // that the job has printed
	Done   bool        `json:"done,omitempty"`   // this is the answer
	Found  bool        `json:"found,omitempty"`
	End    *job.End    `json:"end,omitempty"`
	Error  *problem    `json:"error,omitempty"`
}

// problem is an error on its way.
type problem struct {
	Text       string          `json:"text"`
	Refused    *job.Refused    `json:"refused,omitempty"`
	Unanswered *job.Unanswered `json:"unanswered,omitempty"` // without its cause
	Stopped    bool            `json:"stopped,omitempty"`    // the caller has stopped the call
}

// pack makes a problem of an error of a call; nil of none. Stopped is the error with which the call was stopped.
func pack(err, stopped error) *problem {
	if err == nil {
		return nil
	}
	p := &problem{Text: err.Error()}
	if refused, ok := errors.AsType[*job.Refused](err); ok {
		p.Refused = refused
	}
	if doubt, ok := errors.AsType[*job.Unanswered](err); ok {
		told := *doubt
		told.Cause = nil
		p.Unanswered = &told
	}
	p.Stopped = stopped != nil && errors.Is(err, stopped)
	return p
}

// unpack makes the error of a problem; nil of none. Stopped is why the caller stopped the call; nil if the caller did
// not.
func (p *problem) unpack(stopped error) error {
	if p == nil {
		return nil
	}
	cause := errors.New(p.Text)
	if stopped != nil && p.Stopped {
		cause = stopped
	}
	switch {
	case p.Refused != nil:
		return p.Refused
	case p.Unanswered != nil:
		p.Unanswered.Cause = cause
		return p.Unanswered
	}
	return cause
}
