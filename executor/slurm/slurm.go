// Package slurm submits jobs to a Slurm cluster through its commands, and follows them to their ends. Slurm's status
// of a job tells when the job no longer runs and why it can never run; it does not tell whether the job made its
// result.
//
// No conclusion about a job follows from a command that fails or does not answer in time. A job counts as gone only
// if an answer lacks it and the following answers lack it, too.
package slurm

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/job/poll"
)

// Asks are the options of sbatch for all jobs. Empty means the default of the user or the cluster.
type Asks struct {
	Partition  string
	Account    string
	QOS        string
	Constraint string // features of the nodes
	Gres       string // generic resources in addition to the GPUs
}

// name is the scheduler's name in messages.
const name = "Slurm"

// Options are the settings of a cluster.
type Options struct {
	Asks
	// directory of jobs' requests and output: absolute, and at this path on all nodes
	WorkDir string
	// environment of the commands, as NAME=value: SLURM_CONF and PATH are used. Of the variables with a user's
	// defaults, only account, partition, QOS and reservation (SBATCH_ACCOUNT, …) are kept.
	Environ []string
	// between two readings of the queue; 0: a twentieth of the age of the youngest wait, between 1 s and 30 s
	Every time.Duration
	// how long a job must be missing from a readable queue before it counts as ended, and how long a state without
	// progress may last; 0: 20 s
	Grace time.Duration
	// called once when the cluster stops answering or accepting jobs, until that is over; may be nil
	Told func(message string)
}

// Cluster is a Slurm cluster that the commands on this machine reach. It is safe for concurrent use.
type Cluster struct {
	o        Options
	programs map[string]string // path by name
	details  chan struct{}     // semaphore for requests about one job

	jobs     *poll.Poll[entry]
	troubles job.Troubles
	turns    sync.Map // by key: a channel that is full while a job of the key is submitted
}

// Open finds Slurm's commands and checks that the cluster knows the options of all jobs.
func Open(ctx context.Context, o Options) (*Cluster, error) {
	if o.Grace <= 0 {
		o.Grace = 20 * time.Second
	}
	c := &Cluster{o: o, programs: map[string]string{}, details: make(chan struct{}, 4),
		troubles: job.Troubles{Tell: o.Told}}
	c.jobs = poll.New(o.Every, c.queue)
	path := job.PathOf(o.Environ)
	for _, name := range []string{"sbatch", "squeue", "scancel", "scontrol", "sacct"} {
		program, ok := job.Program(name, filepath.SplitList(path)...)
		if !ok && name != "sacct" { // many clusters have no accounting
			return nil, fmt.Errorf("slurm: %s is not in PATH (%s); install Slurm's commands (slurm-client), or run "+
				"this on a machine of the cluster that has them", name, path)
		}
		c.programs[name] = program
	}
	return c, c.asked(ctx)
}

// Find looks for a queued or running job with a key.
func (c *Cluster) Find(ctx context.Context, key string) (id job.ID, found bool, err error) {
	l, err := c.jobs.Look(ctx)
	if err != nil {
		return "", false, err
	}
	number, found := firstOf(l, key, nil)
	return job.NewID(number, key), found, nil
}
