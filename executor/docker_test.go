package executor_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/executortest"
	"github.com/benchgraph/benchgraph/internal/docker"
	"github.com/benchgraph/benchgraph/internal/docker/dockertest"
)

// me is the user of this process, as whom a container may write to what it owns.
func me() string { return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) }

// inBusybox runs each command in a container of an image, with the command's directory at the same place.
type inBusybox struct {
	executor.Executor
	image string
}

func (b inBusybox) Start(ctx context.Context, cmd executor.Command) (executor.Process, error) {
	cmd.Container = &executor.Container{Image: b.image, User: me(), Mounts: []executor.Mount{{Host: cmd.Dir, Inside: cmd.Dir, Writable: true}}}
	return b.Executor.Start(ctx, cmd)
}

func newDocker(e *docker.Engine) *executor.Docker {
	return executor.NewDocker(e, executor.NewHost(executor.HostOptions{}))
}

func TestDockerPassesTheSuite(t *testing.T) {
	e := dockertest.Engine(t)
	image := dockertest.Busybox(t, e)
	traits := executortest.Traits{Adds: []string{"HOSTNAME", "HOME"}, NoUsage: true, NoCount: true, Unordered: true, LateStart: true}
	t.Run("suite", func(t *testing.T) {
		executortest.Run(t, traits, func(*testing.T) executor.Executor { return inBusybox{newDocker(e), image} })
	})
}

func TestDockerLeavesTheHostToAnother(t *testing.T) {
	e := docker.Open(docker.Options{Environ: map[string]string{"DOCKER_HOST": "unix:///nowhere"}})
	if s, err := executor.Run(t.Context(), newDocker(e), executortest.Shell(t, "exit 3")); err != nil || s.Code != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}
