// Package containers runs the commands of an apply in containers.
package containers

import (
	"context"
	"os"
	"sync"
	"sync/atomic"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/docker"
	"github.com/benchgraph/benchgraph/executor/family"
)

// Containers runs commands in containers. It does not look for an engine before the first command.
type Containers struct {
	open func() (*docker.Executor, error)
	used atomic.Bool
}

// New returns Containers of an engine. host runs the commands that need no container. The file mark is made before the
// first container.
func New(e *container.Engine, host executor.Executor, mark string) *Containers {
	return &Containers{open: sync.OnceValues(func() (*docker.Executor, error) {
		if err := os.WriteFile(mark, nil, 0o644); err != nil {
			return nil, err
		}
		return docker.New(e, host), nil
	})}
}

// Start starts a command.
func (c *Containers) Start(ctx context.Context, cmd executor.Command) (executor.Process, error) {
	d, err := c.open()
	if err != nil {
		return nil, err
	}
	c.used.Store(true)
	return d.Start(ctx, cmd)
}

// Own reports whether this process started the process with the number pid, in a container or not.
func (c *Containers) Own(pid int) bool {
	if c.used.Load() {
		if d, err := c.open(); err == nil {
			return d.Own(pid)
		}
	}
	return family.Own(pid)
}

// Labels returns the labels of the containers and images that this process makes.
func (c *Containers) Labels() map[string]string {
	d, err := c.open()
	if err != nil {
		return nil
	}
	return d.Labels()
}
