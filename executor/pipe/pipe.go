// Package pipe talks to a scheduler in a separate program: the client library of a cloud is large and would slow down
// each start of benchgraph. The two programs exchange lines, each a JSON object. The other program ends when its pipe
// is closed; its jobs continue.
package pipe

import (
	"encoding/json"
	"errors"

	"github.com/benchgraph/benchgraph/executor/job"
)

// protocol is the version of the protocol. It changes when the messages change.
const protocol = 1

// Scheduler runs jobs on the machines of a cluster or a cloud. Log follows a running job.
type Scheduler interface {
	job.Scheduler
	job.Logger
}

// Kinds of calls. The first line is an open.
const (
	callOpen   = "open"
	callSubmit = "submit"
	callFind   = "find"
	callWait   = "wait"
	callCancel = "cancel"
	callLog    = "log"
	callStop   = "stop" // stops the call with the same number
)

// message is one line. benchgraph sends calls; the scheduler sends messages during a call, and its answer last.
type message struct {
	Number   uint64          `json:"number,omitempty"` // of the call; 0: belongs to no call
	Call     string          `json:"call,omitempty"`
	Protocol int             `json:"protocol,omitempty"`
	Settings json.RawMessage `json:"settings,omitempty"` // of an open
	Job      *job.Job        `json:"job,omitempty"`      // of a submit
	Key      string          `json:"key,omitempty"`      // of a find
	ID       job.ID          `json:"id,omitempty"`       // of the job

	Told   string      `json:"told,omitempty"`   // message for the user; belongs to no call
	Status *job.Status `json:"status,omitempty"` // of the job, during a wait
	Text   []byte      `json:"text,omitempty"`   // output of the job
	Done   bool        `json:"done,omitempty"`   // this message is the answer
	Found  bool        `json:"found,omitempty"`
	End    *job.End    `json:"end,omitempty"`
	Error  *problem    `json:"error,omitempty"`
}

// problem is an error as it is sent.
type problem struct {
	Text       string          `json:"text"`
	Refused    *job.Refused    `json:"refused,omitempty"`
	Unanswered *job.Unanswered `json:"unanswered,omitempty"` // without its cause
	Stopped    bool            `json:"stopped,omitempty"`    // the caller has stopped the call
}

// pack converts an error of a call. stopped is the error with which the call was stopped; nil: it was not stopped.
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

// unpack converts a problem to an error. stopped is the reason for which the caller stopped the call; nil: not
// stopped.
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
