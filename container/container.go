package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/container/stream"
)

// Create creates a container and returns its ID. The caller chooses the name, so that it can remove the container
// even if it does not get the answer.
func (e *Engine) Create(ctx context.Context, name string, c *container.Config, h *container.HostConfig) (id string,
	err error) {
	made, err := call(ctx, e, "create container", func(ctx context.Context, a *api) (container.CreateResponse, error) {
		return a.ContainerCreate(ctx, c, h, nil, nil, name)
	})
	return made.ID, err
}

// Start starts a created container.
func (e *Engine) Start(ctx context.Context, name string) error {
	return e.do(ctx, "start container", func(ctx context.Context, a *api) error {
		return a.ContainerStart(ctx, name, container.StartOptions{})
	})
}

// do is call for requests without a result.
func (e *Engine) do(ctx context.Context, doing string, f func(context.Context, *api) error) error {
	_, err := call(ctx, e, doing, func(ctx context.Context, a *api) (struct{}, error) { return struct{}{}, f(ctx, a) })
	return err
}

// Persist repeats f for some time while it fails because the engine is away.
func (e *Engine) Persist(ctx context.Context, f func() error) error {
	for begun := time.Now(); ; {
		err := f()
		if !IsGone(err) || time.Since(begun) > e.patience()/4 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// Inspect returns the engine's description of a container.
func (e *Engine) Inspect(ctx context.Context, name string) (container.InspectResponse, error) {
	return call(ctx, e, "inspect container", func(ctx context.Context, a *api) (container.InspectResponse, error) {
		return a.ContainerInspect(ctx, name)
	})
}

// Settle waits until the engine has finished with an ended container. Podman unmounts its files a moment after the
// end, and a reader may miss some of them until then.
func (e *Engine) Settle(ctx context.Context, name string) error {
	podman, err := e.IsPodman(ctx)
	for range settleTries {
		if err != nil || !podman {
			return err
		}
		var info container.InspectResponse
		if info, err = e.Inspect(ctx, name); err != nil || info.GraphDriver.Data["MergedDir"] == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(settlePause):
		}
	}
	return nil
}

// Podman needs tenths of a second; the wait is at most ten seconds.
const (
	settleTries = 200
	settlePause = 50 * time.Millisecond
)

// Signal sends a signal, such as "SIGTERM", to the first process of a container. It does nothing if the container
// does not run.
func (e *Engine) Signal(ctx context.Context, name, signal string) error {
	return e.do(ctx, "send "+signal+" to container", func(ctx context.Context, a *api) error {
		err := a.ContainerKill(ctx, name, signal)
		if errdefs.IsConflict(err) || errdefs.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// Remove stops a container and removes it with its unnamed volumes. A missing container is no error.
func (e *Engine) Remove(ctx context.Context, name string) error {
	_, err := e.RemoveIfThere(ctx, name)
	return err
}

// RemoveIfThere is Remove; it also reports whether the container existed and nobody else was removing it.
func (e *Engine) RemoveIfThere(ctx context.Context, name string) (bool, error) {
	return call(ctx, e, "remove container", func(ctx context.Context, a *api) (bool, error) {
		err := a.ContainerRemove(ctx, name, container.RemoveOptions{RemoveVolumes: true, Force: true})
		if errdefs.IsNotFound(err) || errdefs.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// Await starts to wait for the next end of a container, which may be started later. The returned function waits for
// the end and returns the exit status. If the engine goes away or hangs meanwhile, its error satisfies IsGone.
func (e *Engine) Await(ctx context.Context, name string) (wait func() (int, error), err error) {
	watched, cancel := context.WithCancelCause(ctx)
	type channels struct {
		end  <-chan container.WaitResponse
		errs <-chan error
	}
	c, err := call(ctx, e, "wait for container", func(limited context.Context, a *api) (c channels, err error) {
		// the request must outlive limited
		stop := context.AfterFunc(limited, func() { cancel(context.Cause(limited)) })
		defer stop()
		c.end, c.errs = a.ContainerWait(watched, name, container.WaitConditionNextExit)
		return c, limited.Err()
	})
	if err != nil {
		cancel(err)
		return nil, err
	}
	missed := make(chan int, 1) // the exit status, if the engine fails to report it
	go e.watch(watched, cancel, func() error {
		c, err := e.Inspect(watched, name)
		if err == nil && c.State.Status == container.StateExited && len(missed) == 0 {
			missed <- c.State.ExitCode
		}
		return err
	})
	return func() (int, error) {
		defer cancel(nil)
		select {
		case r := <-c.end:
			if r.Error != nil {
				return 0, e.explain(watched, "wait for container", errors.New(r.Error.Message))
			}
			return int(r.StatusCode), nil
		case code := <-missed:
			return code, nil
		case err := <-c.errs:
			return 0, e.explain(watched, "wait for container", err)
		case <-watched.Done():
			return 0, context.Cause(watched)
		}
	}, nil
}

// Attach connects to a container, which may be started afterwards.
func (e *Engine) Attach(ctx context.Context, name string, stdin bool) (*stream.Stream, error) {
	return e.stream(ctx, "attach to container", func(ctx context.Context, a *api) (types.HijackedResponse, error) {
		return a.ContainerAttach(ctx, name, container.AttachOptions{Stream: true, Stdin: stdin, Stdout: true,
			Stderr: true})
	})
}

// stream is call for a connection that stays open. Once the client has dialed, it ignores its context.
func (e *Engine) stream(ctx context.Context, doing string,
	f func(context.Context, *api) (types.HijackedResponse, error)) (*stream.Stream, error) {
	return call(ctx, e, doing, func(limited context.Context, a *api) (*stream.Stream, error) {
		type answer struct {
			conn types.HijackedResponse
			err  error
		}
		got := make(chan answer, 1)
		go func() {
			conn, err := f(limited, a)
			got <- answer{conn, err}
		}()
		select {
		case r := <-got:
			if r.err != nil {
				return nil, r.err
			}
			return stream.New(r.conn), nil
		case <-limited.Done():
			go func() {
				if late := <-got; late.err == nil {
					late.conn.Close()
				}
			}()
			return nil, limited.Err()
		}
	})
}

// Log returns the engine's log of a container. It returns a not-found error for a container that is being removed.
func (e *Engine) Log(ctx context.Context, name string) (*stream.Log, error) {
	return call(ctx, e, "read the log of container", func(ctx context.Context, a *api) (*stream.Log, error) {
		log, err := a.ContainerLogs(ctx, name, container.LogsOptions{ShowStdout: true, ShowStderr: true})
		if errdefs.IsConflict(err) {
			return nil, fmt.Errorf("%w: %w", errdefs.ErrNotFound, err)
		} else if err != nil {
			return nil, err
		}
		defer log.Close()
		return stream.ReadLog(log)
	})
}

// Exec starts a program in a running container and returns its ID and its streams.
func (e *Engine) Exec(ctx context.Context, name string, o container.ExecOptions) (string, *stream.Stream, error) {
	r, err := call(ctx, e, "prepare a program in container",
		func(ctx context.Context, a *api) (container.ExecCreateResponse, error) {
			return a.ContainerExecCreate(ctx, name, o)
		})
	if err != nil {
		return "", nil, err
	}
	s, err := e.stream(ctx, "start a program in container",
		func(ctx context.Context, a *api) (types.HijackedResponse, error) {
			return a.ContainerExecAttach(ctx, r.ID, container.ExecAttachOptions{})
		})
	return r.ID, s, err
}

// InspectExec returns the state of a program that Exec started.
func (e *Engine) InspectExec(ctx context.Context, id string) (container.ExecInspect, error) {
	return call(ctx, e, "inspect a program in container",
		func(ctx context.Context, a *api) (container.ExecInspect, error) {
			return a.ContainerExecInspect(ctx, id)
		})
}

// CopyTo unpacks a tar archive at / of a container.
func (e *Engine) CopyTo(ctx context.Context, name string, files io.Reader) error {
	_, err := long(ctx, e, "copy files into container", func(ctx context.Context, a *api) (struct{}, error) {
		return struct{}{}, a.CopyToContainer(ctx, name, "/", files, container.CopyToContainerOptions{})
	})
	return err
}

// CopyFrom calls read with a tar archive of a file or directory of a container.
func (e *Engine) CopyFrom(ctx context.Context, name, path string, read func(io.Reader) error) error {
	var unread error
	_, err := long(ctx, e, "copy "+path+" from container", func(ctx context.Context, a *api) (struct{}, error) {
		files, _, err := a.CopyFromContainer(ctx, name, path)
		if err != nil {
			return struct{}{}, err
		}
		defer files.Close()
		in := &source{r: files}
		unread = read(in)
		return struct{}{}, in.err
	})
	if err != nil {
		return err
	}
	return unread
}

// source remembers read errors, to distinguish them from errors of the consumer.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// Changes lists the files of its image that a container has changed.
func (e *Engine) Changes(ctx context.Context, name string) ([]container.FilesystemChange, error) {
	return long(ctx, e, "list changes of container", func(ctx context.Context, a *api) ([]container.FilesystemChange,
		error) {
		return a.ContainerDiff(ctx, name)
	})
}

// Commit makes an image from the files of a container and returns its ID. The image gets the container's
// configuration, including its environment, with the changes in o.
func (e *Engine) Commit(ctx context.Context, name string, o container.CommitOptions) (string, error) {
	r, err := long(ctx, e, "make an image of container",
		func(ctx context.Context, a *api) (container.CommitResponse, error) {
			return a.ContainerCommit(ctx, name, o)
		})
	return r.ID, err
}
