// Package slurm submits jobs to a Slurm cluster by its commands, and follows them to their ends. What Slurm says of a
// job tells when it no longer runs, and why it never will; whether it made its result is for others to say.
//
// A command that fails or does not answer in time says nothing about any job: only an answer without the job does, and
// only where the next answers lack it, too.
package slurm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Options say how a cluster is spoken to.
type Options struct {
	// of the commands, as NAME=value: SLURM_CONF and PATH count. Of the variables by which a user chooses defaults,
	// those of account, partition, QOS and reservation (SBATCH_ACCOUNT, …) are kept, and no others.
	Environ []string
	// between two looks at the queue; 0: from 1 s to 30 s, a twentieth of the age of the youngest job
	Every time.Duration
	// how long a job must be absent from a queue that can be read before it counts as ended, and how long a state that
	// does not end by itself must last; 0: 20 s
	Grace time.Duration
	// called when the cluster stops answering or taking jobs, and then not until that is over; may be nil
	Told func(message string)
}

// Cluster is a Slurm cluster, as its commands on this machine know it. It is safe for concurrent use.
type Cluster struct {
	o        Options
	programs map[string]string // path by name
	details  chan struct{}     // holds a place for each question about one job

	mu       sync.Mutex
	troubles map[trouble]bool // that were told and are not over
	next     *look            // that nobody has begun; nil: none is wanted
	looking  bool             // a goroutine carries looks out
	waiting  map[*waiter]bool // that each poll is handed to
	polling  bool             // a goroutine polls for them
	wake     chan struct{}    // has room for one: the set of waiters changed
	keys     map[string]*turn // of jobs that are being submitted
}

// Open finds Slurm's commands.
func Open(o Options) (*Cluster, error) {
	if o.Grace <= 0 {
		o.Grace = 20 * time.Second
	}
	if o.Told == nil {
		o.Told = func(string) {}
	}
	c := &Cluster{o: o, programs: map[string]string{}, details: make(chan struct{}, 4),
		troubles: map[trouble]bool{}, waiting: map[*waiter]bool{},
		wake: make(chan struct{}, 1), keys: map[string]*turn{}}
	path := ""
	for _, v := range o.Environ {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			path = value
		}
	}
	for _, name := range []string{"sbatch", "squeue", "scancel", "scontrol", "sacct"} {
		program, ok := find(path, name)
		if !ok && name != "sacct" { // many clusters keep no accounts
			return nil, fmt.Errorf("slurm: %s is not in PATH (%s); install Slurm's commands (slurm-client), or run "+
				"this on a machine of the cluster that has them", name, path)
		}
		c.programs[name] = program
	}
	return c, nil
}

func find(path, name string) (string, bool) {
	for _, dir := range filepath.SplitList(path) {
		program := filepath.Join(dir, name)
		if info, err := os.Stat(program); err == nil && filepath.IsAbs(program) && info.Mode().IsRegular() &&
			info.Mode()&0o111 != 0 {
			return program, true
		}
	}
	return "", false
}

// Job is a script to be run on one node.
type Job struct {
	Key    string // unique to the work; the job is found again by it; letters, digits and . _ : -
	Name   string // for people, in the queue's listing
	Script string // of /bin/sh
	Dir    string // absolute, on the node
	Output string // absolute path on the node of the file for standard output and error, which is appended to
	// empty: the default of the user or of the cluster
	Partition, Account, QOS, Constraint, Gres string

	GPUs, CPUs int           // 0: not asked for
	Memory     int64         // bytes; 0: not asked for
	Time       time.Duration // limit, in whole minutes for Slurm; 0: the partition's
	Exclusive  bool          // no other job may run on the node meanwhile
	Signal     string        // that is sent before the limit, such as B:USR1@60; empty: none but those at its end
	Environ    []string      // NAME=value; the job has these and what Slurm sets, and nothing else
}

// ID is the number that Slurm has for a job, with the key of the job: a controller that was killed gives the numbers of
// jobs that it has forgotten to others.
type ID string

// newID is the ID of a job; empty without a number.
func newID(number, key string) ID {
	if number == "" {
		return ""
	}
	return ID(number + "/" + key)
}

// Number is the part by which Slurm's commands know the job.
func (id ID) Number() string {
	number, _, _ := strings.Cut(string(id), "/")
	return number
}

func (id ID) key() string {
	_, key, _ := strings.Cut(string(id), "/")
	return key
}

// check says what is wrong with an ID.
func (id ID) check() error {
	if !isNumber(id.Number()) || !isKey(id.key()) {
		return fmt.Errorf("job %q: this is no ID of a job; give one that Submit or Find returned", string(id))
	}
	return nil
}

// State is the state of a job, by Slurm's name for it: PENDING, RUNNING, COMPLETING, …
type State string

// Status is how a job stands.
type Status struct {
	State     State
	Reason    string // by Slurm's name for it: Resources, Priority, …
	Node      string // empty: none yet
	Submitted time.Time
	Started   time.Time // zero while it is pending
}

// End is how a job ended. After NODE_FAIL, or where the job is lost, its processes may live on a node that the
// controller cannot reach. A controller that was killed may forget a job, which is lost then, and may run one from its
// beginning that had run: whether a script has an effect twice is for the script to see to.
type End struct {
	Status
	Code, Signal int    // of the script; 0 where Slurm does not say
	Lost         bool   // Slurm knows it no longer, and has no word on how it ended
	Held         string // why it could never run; it is cancelled by now
}

// Refused is the error for a job that Slurm does not take.
type Refused struct {
	Name  string
	Words string // of sbatch, one line
}

func (e *Refused) Error() string {
	return fmt.Sprintf("job %s: Slurm refuses it: %s; ask for what the cluster has (sinfo and scontrol show partition "+
		"say so)", e.Name, e.Words)
}

// Unanswered is the error where it is not known whether Slurm has a job: the wait ended before sbatch, or the queue,
// could be asked. Find tells later.
type Unanswered struct {
	Key   string
	Cause error
}

func (e *Unanswered) Error() string {
	return fmt.Sprintf("job %s: whether Slurm has it is not known: %v; look for its comment with squeue -o '%%i %%k'",
		e.Key, e.Cause)
}

func (e *Unanswered) Unwrap() error { return e.Cause }

// Find looks for a job of a key that is queued or running.
func (c *Cluster) Find(ctx context.Context, key string) (id ID, found bool, err error) {
	l, err := c.look(ctx)
	if err != nil {
		return "", false, err
	}
	number, found := l.find(key, nil)
	return newID(number, key), found, nil
}
