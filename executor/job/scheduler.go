package job

import (
	"context"
	"io"
	"time"
)

// Scheduler runs jobs on machines, as *slurm.Cluster does.
type Scheduler interface {
	Queue
	Wait(ctx context.Context, id ID, told func(Status)) (End, error)
	Cancel(ctx context.Context, id ID) error
}

// Queue accepts jobs and finds them again.
type Queue interface {
	Submit(ctx context.Context, j Job) (id ID, found bool, err error)
	Find(ctx context.Context, key string) (id ID, found bool, err error)
}

// Logger is a Scheduler that keeps the output of jobs.
type Logger interface {
	// Log writes the output of a job; nothing if the job never ran.
	Log(ctx context.Context, id ID, w io.Writer) error
}

// Keeper is a Scheduler that keeps requests beside its queue.
type Keeper interface {
	// Forget removes what is left of a job that has ended.
	Forget(ctx context.Context, key string) error
	// Sweep forgets jobs that are neither queued nor running, unless stays returns true. The arguments of stays are
	// the job's key, the time of the last change, and the job's Project (nil if it cannot be read). live are the
	// queued and running jobs for which stays returned false.
	Sweep(ctx context.Context, stays func(key string, changed time.Time, project []byte) bool) (live []ID, err error)
}
