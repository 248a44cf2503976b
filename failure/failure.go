// Package failure holds how benchgraph tells of a failure, and the rules that find one in a log.
package failure

import (
	"errors"
	"strings"
	"syscall"
)

// Class says what can be done about a failure.
type Class string

// The classes of failures. Transient and infra failures are tried again and never remembered; the others are outcomes:
// they stand until an input changes or the user asks for another try.
const (
	Transient Class = "transient" // the same attempt may succeed later: a reset connection, a busy device
	Permanent Class = "permanent" // it fails again with the same inputs
	Fixable   Class = "fixable"   // a registered fix makes it run
	Invalid   Class = "invalid"   // it ran, and what it printed is no result
	Infra     Class = "infra"     // this machine's fault, not the input's: no space, a tool that is missing
)

// Retried says whether failures of the class are tried again and kept out of the journal's memory.
func (c Class) Retried() bool { return c == Transient || c == Infra }

// Interrupted is the rule of an attempt that was ended with its apply. The node itself has not failed.
const Interrupted = "interrupted"

// NoRoom reports whether an error is that of a full disk.
func NoRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Failure is why an attempt failed.
type Failure struct {
	Class    Class  `json:"class"`
	Rule     string `json:"rule,omitempty"`     // name of the rule that matched; empty: undiagnosed
	Stage    string `json:"stage,omitempty"`    // fetch, build, start, run, stop, parse, verify
	Subject  string `json:"subject,omitempty"`  // who failed within the node: a candidate of a block
	Evidence string `json:"evidence,omitempty"` // the log line that the rule matched, or the last line
	Message  string `json:"message"`            // one sentence: what failed
	Remedy   string `json:"remedy,omitempty"`   // what the user can do
	Log      string `json:"log,omitempty"`      // ID of the attempt whose log has the output; empty: of the failed one
}

// IsAbout reports whether the failure is that of a candidate. All candidates of a block are of one commit, which may
// have been renamed since.
func (f *Failure) IsAbout(candidate string) bool {
	if _, variant, ok := strings.Cut(f.Subject, "/"); ok {
		return strings.HasSuffix(candidate, "/"+variant)
	}
	return f.Subject == candidate
}

// Text is the message and its evidence, which is not repeated where the message holds it. The text of nil is empty.
func (f *Failure) Text() string {
	if f == nil {
		return ""
	}
	if f.Evidence == "" || strings.Contains(f.Message, f.Evidence) {
		return f.Message
	}
	return f.Message + ": " + f.Evidence
}
