// Package failure has the type of failures, and of the rules that find one in a log.
package failure

import (
	"errors"
	"strings"
	"syscall"
)

// Class says what can be done about a failure.
type Class string

// The classes of failures. Transient and infra failures are tried again, and never remembered. The other failures are
// outcomes: they stand until an input changes, or until the user asks for another try.
const (
	Transient Class = "transient" // the same attempt may succeed later: a reset connection, a busy device
	Permanent Class = "permanent" // it fails again with the same inputs
	Fixable   Class = "fixable"   // a registered fix makes it run
	Invalid   Class = "invalid"   // it ran, but its output is no result
	Infra     Class = "infra"     // the fault of this machine, not of the input: no space, a missing tool
)

// Retried reports whether failures of the class are tried again, and not remembered in the journal.
func (c Class) Retried() bool { return c == Transient || c == Infra }

// Interrupted is the rule of an attempt that ended because its apply did. The node itself has not failed.
const Interrupted = "interrupted"

// NoRoom reports whether an error is that of a full disk.
func NoRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Failure is why an attempt failed.
type Failure struct {
	Class    Class  `json:"class"`
	Rule     string `json:"rule,omitempty"`     // name of the rule that matched; empty: no rule did
	Stage    string `json:"stage,omitempty"`    // fetch, build, start, run, stop, parse, verify
	Subject  string `json:"subject,omitempty"`  // the part of the node that failed: a candidate of a block
	Evidence string `json:"evidence,omitempty"` // the log line that the rule matched, or the last line
	Message  string `json:"message"`            // one sentence: what failed
	Remedy   string `json:"remedy,omitempty"`   // what the user can do
	Log      string `json:"log,omitempty"`      // ID of the attempt whose log has the output; empty: of this attempt
}

// IsAbout reports whether the failure is that of a candidate. All candidates of a block are of one commit, which may
// have been renamed since the failure.
func (f *Failure) IsAbout(candidate string) bool {
	if _, variant, ok := strings.Cut(f.Subject, "/"); ok {
		return strings.HasSuffix(candidate, "/"+variant)
	}
	return f.Subject == candidate
}

// Text returns the message, and the evidence unless the message has it. The text of nil is empty.
func (f *Failure) Text() string {
	if f == nil {
		return ""
	}
	if f.Evidence == "" || strings.Contains(f.Message, f.Evidence) {
		return f.Message
	}
	return f.Message + ": " + f.Evidence
}
