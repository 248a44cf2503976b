// Package job defines the jobs that nodes submit to the schedulers of clusters. The scheduler's status of a job tells
// when the job no longer runs and why it can never run; it does not tell whether the job made its result.
package job

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Job is a script that runs on one machine.
type Job struct {
	Key    string // unique to the work; Find finds the job by it, see IsKey
	Name   string // for people, in listings of jobs
	Script string // lines of /bin/sh; the variables below are in their environment
	// only for the script, in the file that RequestVariable names. A request may hold secrets: listings of jobs do
	// not show it, and only the user can read it.
	Request []byte
	Project []byte // identifies the owner of the job, for a Keeper; holds no secret

	GPUs, CPUs int           // 0: not asked for
	Memory     int64         // bytes; 0: not asked for
	Time       time.Duration // limit; 0: the scheduler's
	Exclusive  bool          // no other job may run on the machine at the same time
	Avoids     []string      // nodes that the job should not run on, if the scheduler allows a choice
	Environ    []string      // NAME=value; the job gets these and the scheduler's variables, and no others
}

// Variables that a scheduler sets for a script.
const (
	RequestVariable    = "BENCHGRAPH_REQUEST"     // the path of the file with the request
	RequestKeyVariable = "BENCHGRAPH_REQUEST_KEY" // the key for Decrypt; unset: the file is not encrypted
	NameVariable       = "BENCHGRAPH_JOB"         // the name of the job, see ID; unset: not known to the script
)

// ID is the scheduler's name of a job and the job's key. The key is needed because a scheduler that was killed may
// forget jobs and reuse their names.
type ID string

// NewID returns the ID of a job; it is empty if name is empty.
func NewID(name, key string) ID {
	if name == "" {
		return ""
	}
	return ID(name + "/" + key)
}

// Name returns the scheduler's name of the job.
func (id ID) Name() string {
	name, _, _ := strings.Cut(string(id), "/")
	return name
}

// Key returns the key of the job.
func (id ID) Key() string {
	_, key, _ := strings.Cut(string(id), "/")
	return key
}

// Check returns an error if the ID is malformed; named reports whether a name is well-formed.
func (id ID) Check(named func(name string) bool) error {
	if !named(id.Name()) || !IsKey(id.Key()) {
		return fmt.Errorf("job %q: this is no ID of a job; give one that Submit or Find returned", string(id))
	}
	return nil
}

// MaxKey is the greatest length of a key, in bytes.
const MaxKey = 200

// IsKey reports whether a text can be the key of a job: letters, digits and . _ : -
func IsKey(key string) bool {
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:-", r)
	}
	return key != "" && len(key) <= MaxKey && strings.IndexFunc(key, func(r rune) bool { return !ok(r) }) < 0
}

// State is the state of a job. All schedulers use Slurm's names: PENDING, RUNNING, COMPLETED, FAILED, TIMEOUT,
// OUT_OF_MEMORY, NODE_FAIL, PREEMPTED, CANCELLED, …
type State string

// States that nodes look for.
const (
	Pending     State = "PENDING"
	Running     State = "RUNNING"
	Completed   State = "COMPLETED"
	Failed      State = "FAILED"
	Timeout     State = "TIMEOUT"
	OutOfMemory State = "OUT_OF_MEMORY"
)

// Status is the current status of a job.
type Status struct {
	State     State
	Reason    string // in the scheduler's words: Resources, Priority, …
	Node      string // empty: no node yet
	Submitted time.Time
	Started   time.Time // zero while the job is pending
}

// End is how a job ended. If its machine failed or the job is lost, its processes may still live on a machine that
// the scheduler cannot reach. A scheduler that was killed may forget a job, which is then lost, or run a job a second
// time: the script must allow for that.
type End struct {
	Status
	Code, Signal int    // of the script; 0 if the scheduler does not report it
	Lost         bool   // the scheduler no longer knows the job and its end
	Held         string // why the job could never run; it has been cancelled
}

// Exit decodes the exit status of a container, which is 128 plus the signal's number if a signal ended the script.
func Exit(status int) (code, signal int) {
	switch {
	case status < 0 || status > 255:
		return 0, 0
	case status > 128 && status <= 128+64:
		return 0, status - 128
	}
	return status, 0
}

// Refused is the error for a job that a scheduler refuses.
type Refused struct {
	Scheduler string // by its name
	Name      string // of the job
	Words     string // message of the scheduler, one line
	Remedy    string
}

func (e *Refused) Error() string {
	return fmt.Sprintf("job %s: %s refuses it: %s; %s", e.Name, e.Scheduler, e.Words, e.Remedy)
}

// Unanswered is the error if it is not known whether a scheduler has a job: the wait ended before the scheduler
// answered. Find tells later.
type Unanswered struct {
	Scheduler string // by its name
	Key       string
	Remedy    string
	Cause     error
}

func (e *Unanswered) Error() string {
	return fmt.Sprintf("job %s: whether %s has it is not known: %v; %s", e.Key, e.Scheduler, e.Cause, e.Remedy)
}

func (e *Unanswered) Unwrap() error { return e.Cause }

// PathOf returns PATH of an environment of NAME=value.
func PathOf(environ []string) (path string) {
	for _, v := range environ {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			path = value
		}
	}
	return path
}

// Program looks for a program in directories and returns its path. It skips relative directories: their path would
// mean another program elsewhere.
func Program(name string, dirs ...string) (path string, ok bool) {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(path) && info.Mode().IsRegular() &&
			info.Mode()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}
