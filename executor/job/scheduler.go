package job

import (
	"context"
	"io"
	"time"
)

// Scheduler hands jobs to machines, as *slurm.Cluster does.
type Scheduler interface {
	Queue
	Wait(ctx context.Context, id ID, told func(Status)) (End, error)
	Cancel(ctx context.Context, id ID) error
}

// Queue takes jobs, and knows which jobs it has.
type Queue interface {
	Submit(ctx context.Context, j Job) (id ID, found bool, err error)
	Find(ctx context.Context, key string) (id ID, found bool, err error)
}

// Logger is a Scheduler that has what a job printed.
type Logger interface {
	// Log writes what the job printed; nothing if it never ran.
	Log(ctx context.Context, id ID, w io.Writer) error
}

// Keeper is a Scheduler that keeps requests beside its queue.
type Keeper interface {
	// Forget removes all that is left of a job that is over.
	Forget(ctx context.Context, key string) error
	// Sweep forgets jobs that are neither queued nor running, unless they are to stay. Stays is given the key of a job,
	// the time at which what is kept was changed last, and Project of the job; nil if that cannot be read. Live are the
	// jobs that need not stay, and are queued or running.
	Sweep(ctx context.Context, stays func(key string, changed time.Time, project []byte) bool) (live []ID, err error)
}
