// Package job has the words in which nodes and the schedulers of clusters speak of jobs. The scheduler's word about a
// job tells when it no longer runs, and why it never will; whether it made its result is for others to say.
package job

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Job is a script to be run on one machine.
type Job struct {
	Key    string // unique to the work; the job is found again by it, see IsKey
	Name   string // for people, in listings of jobs
	Script string // lines of /bin/sh, which find the variables below in their environment
	// for the script alone, in the file that RequestVariable names. A request may hold secrets: it is in no listing of
	// jobs, and only the user can read it.
	Request []byte
	Project []byte // whose job it is, for a Keeper; holds no secret

	GPUs, CPUs int           // 0: not asked for
	Memory     int64         // bytes; 0: not asked for
	Time       time.Duration // limit; 0: the scheduler's
	Exclusive  bool          // no other job may run on the machine meanwhile
	Avoids     []string      // nodes that the job is to keep off, where the scheduler lets jobs choose
	Environ    []string      // NAME=value; the job has these and what the scheduler sets, and nothing else
}

// Variables that a scheduler sets in the environment of a script.
const (
	RequestVariable    = "BENCHGRAPH_REQUEST"     // the path of the file with the request
	RequestKeyVariable = "BENCHGRAPH_REQUEST_KEY" // by which Decrypt reads that file; unset: it is not encrypted
	NameVariable       = "BENCHGRAPH_JOB"         // the name of the job, see ID; unset: the script cannot know it
)

// ID is the name by which the scheduler knows a job, with the key of the job: a scheduler that was killed may give the
// names of jobs that it has forgotten to others.
type ID string

// NewID is the ID of a job; empty without a name.
func NewID(name, key string) ID {
	if name == "" {
		return ""
	}
	return ID(name + "/" + key)
}

// Name is the part by which the scheduler knows the job.
func (id ID) Name() string {
	name, _, _ := strings.Cut(string(id), "/")
	return name
}

// Key is the key of the job.
func (id ID) Key() string {
	_, key, _ := strings.Cut(string(id), "/")
	return key
}

// Check says what is wrong with an ID, whose name a function knows.
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

// State is the state of a job, by Slurm's names, which all schedulers use here: PENDING, RUNNING, COMPLETED, FAILED,
// TIMEOUT, OUT_OF_MEMORY, NODE_FAIL, PREEMPTED, CANCELLED, …
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

// Status is how a job stands.
type Status struct {
	State     State
	Reason    string // in the scheduler's words: Resources, Priority, …
	Node      string // empty: none yet
	Submitted time.Time
	Started   time.Time // zero while it is pending
}

// End is how a job ended. Where its machine failed or the job is lost, its processes may live on a machine that the
// scheduler cannot reach. A scheduler that was killed may forget a job, which is lost then, and may run one from its
// beginning that had run: whether a script has an effect twice is for the script to see to.
type End struct {
	Status
	Code, Signal int    // of the script; 0 where the scheduler does not say
	Lost         bool   // the scheduler knows it no longer, and has no word on how it ended
	Held         string // why it could never run; it is cancelled by now
}

// Exit reads the exit status of a container, which tells of a signal by 128 and the signal's number.
func Exit(status int) (code, signal int) {
	switch {
	case status < 0 || status > 255:
		return 0, 0
	case status > 128 && status <= 128+64:
		return 0, status - 128
	}
	return status, 0
}

// Refused is the error for a job that a scheduler does not take.
type Refused struct {
	Scheduler string // by its name
	Name      string // of the job
	Words     string // of the scheduler, one line
	Remedy    string
}

func (e *Refused) Error() string {
	return fmt.Sprintf("job %s: %s refuses it: %s; %s", e.Name, e.Scheduler, e.Words, e.Remedy)
}

// Unanswered is the error where it is not known whether a scheduler has a job: the wait ended before the scheduler
// could be asked. Find tells later.
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

// PathOf returns PATH of an environment, whose variables are NAME=value.
func PathOf(environ []string) (path string) {
	for _, v := range environ {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			path = value
		}
	}
	return path
}

// Program looks for a program in directories, and returns its path. A directory that is not absolute is left out: the
// path would mean another program elsewhere.
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
