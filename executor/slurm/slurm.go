// Package slurm submits jobs to a Slurm cluster by its commands, and follows them to their ends. What Slurm says of a
// job tells when it no longer runs, and why it never will; whether it made its result is for others to say.
//
// A command that fails or does not answer in time says nothing about any job: only an answer without the job does, and
// only where the next answers lack it, too.
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

// Asks are the options of sbatch that all jobs have. Empty: the default of the user or of the cluster.
type Asks struct {
	Partition  string
	Account    string
	QOS        string
	Constraint string // features of the nodes
	Gres       string // generic resources beside the GPUs
}

// name is that of the scheduler, for people.
const name = "Slurm"

// Options say how a cluster is spoken to.
type Options struct {
	Asks
	// absolute, seen under this path by all nodes: the directory with the requests and the output of jobs
	WorkDir string
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

	jobs     *poll.Poll[entry]
	troubles job.Troubles
	turns    sync.Map // by key: a channel that is full while somebody submits a job of the key
}

// Open finds Slurm's commands, and asks the cluster whether it knows the options that all jobs have.
func Open(o Options) (*Cluster, error) {
	if o.Grace <= 0 {
		o.Grace = 20 * time.Second
	}
	c := &Cluster{o: o, programs: map[string]string{}, details: make(chan struct{}, 4),
		troubles: job.Troubles{Tell: o.Told}}
	c.jobs = poll.New(o.Every, c.queue)
	path := job.PathOf(o.Environ)
	for _, name := range []string{"sbatch", "squeue", "scancel", "scontrol", "sacct"} {
		program, ok := job.Program(name, filepath.SplitList(path)...)
		if !ok && name != "sacct" { // many clusters keep no accounts
			return nil, fmt.Errorf("slurm: %s is not in PATH (%s); install Slurm's commands (slurm-client), or run "+
				"this on a machine of the cluster that has them", name, path)
		}
		c.programs[name] = program
	}
	return c, c.asked()
}

// Find looks for a job of a key that is queued or running.
func (c *Cluster) Find(ctx context.Context, key string) (id job.ID, found bool, err error) {
	l, err := c.jobs.Look(ctx)
	if err != nil {
		return "", false, err
	}
	number, found := firstOf(l, key, nil)
	return job.NewID(number, key), found, nil
}
