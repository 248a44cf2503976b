package document

import (
	"path"
	"strings"
	"time"
)

// Attempt is one attempt of the last apply at a node.
type Attempt struct {
	Run     string // name of the apply
	Address string
	Number  int       // of the attempt, from 1
	Ready   time.Time // earliest possible start
	Start   time.Time
	End     time.Time
	Devices []string // UUIDs
	CPUs    int
	State   string // done, failed, or interrupted
	Class   string // class of the failure
	Message string
}

// States of an attempt.
const (
	AttemptDone        = "done"
	AttemptFailed      = "failed"
	AttemptInterrupted = "interrupted" // the apply ended before the attempt
)

// AttemptOf returns the name of an attempt, given the path of its log.
func AttemptOf(log string) string { return strings.TrimSuffix(path.Base(log), ".log") }
