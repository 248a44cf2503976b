package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/trial"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/apptainer"
	"github.com/benchgraph/benchgraph/executor/docker"
	"github.com/benchgraph/benchgraph/remote/declared"
)

// engine returns the container engine that the environment names, or that of Apptainer if own is not nil. The engine is
// not contacted before the first question.
func (a *app) engine(p place, own *apptainer.Engine) *container.Engine {
	away := func(err error) { a.note("Nodes in containers wait, for 15 minutes at most: %v", err) }
	return container.Open(container.Options{Environ: own.Environ(a.env), State: p.state, Wait: 15 * time.Minute,
		Away: away})
}

func (s *session) ownEngine() *container.Engine {
	if s.apptainer == nil {
		s.apptainer = apptainer.Instead(s.env, s.place.store, s.host, s.note)
	}
	return s.engine(s.place, s.apptainer)
}

// containerMark is a file that exists once the state has had containers. Later applies then remove the containers of
// killed ones.
func (p place) containerMark() string { return filepath.Join(p.state, "containers") }

// reapContainers removes the containers and networks that an earlier, killed apply left.
func (a *app) reapContainers(ctx context.Context, p place) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	n, err := docker.Reap(ctx, a.engine(p, nil))
	if _, away := errors.AsType[*container.Unavailable](err); err != nil && !away { // nodes report that
		a.note("Warning: %v", err)
	} else if n > 0 {
		a.note("Removed %s that an earlier, killed apply had left behind.", view.Count(n, "container"))
	}
}

// containers checks the container engine.
func (c *checkup) containers(ctx context.Context) {
	const patience, name, host = 10 * time.Second, "containers", "blocks without image run on the host"
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	needed := len(c.spec.Images) > 0 && !declared.TakesImages(c.spec, c.needsHere)
	own := apptainer.Instead(c.env, c.place.store, executor.NewHost(executor.HostOptions{}), c.note)
	defer own.Close()
	e := c.engine(c.place, own)
	info, err := e.Info(ctx)
	var gone *container.Unavailable
	switch {
	case errors.As(err, &gone) && !needed && len(c.spec.Images) > 0:
		c.ok(name, "none, and nothing here needs one: images are for jobs, whose nodes need Docker or Apptainer")
		return
	case errors.As(err, &gone):
		c.lacks(name, needed, strings.ToUpper(gone.Remedy[:1])+gone.Remedy[1:]+"; "+host+".",
			"no container engine at %s: %s", gone.Host, gone.Reason)
		return
	case err != nil:
		c.lacks(name, needed, "Look at the engine's log; "+host+".", "%v", err)
		return
	}
	podman, _ := e.IsPodman(ctx) // an engine that does not say who it is counts as Docker
	c.ok(name, "%s %s, API %s", own.Name(podman), info.Version, info.API)
	c.engineDisk(info.Root, needed)
	wanted := 0
	for _, b := range c.spec.Benchmarks {
		if b.GPUs != nil && b.Image.Kind != "" && c.needsHere(&b) {
			wanted++
		}
	}
	if wanted > 0 {
		if err := docker.CheckGPUs(ctx, e); err != nil {
			c.lacks("container gpu", true, "See docs/gpu.md.",
				"the engine can give no devices to containers, and %d benchmarks in images need some: %v", wanted, err)
		}
	}
	if needed {
		if err := docker.CheckGrants(ctx, e, trial.Grants{Mount: c.dir}); err != nil {
			c.lacks("container mount", true, "", "%v", err)
		}
	}
	if !info.Seccomp {
		c.lacks("container seccomp", needed,
			"Start the engine with its own seccomp profile, on a kernel with CONFIG_SECCOMP_FILTER.",
			"the engine does not filter the system calls of containers")
	}
	if info.UsersMapped {
		c.ok("container users",
			"the engine maps users (userns-remap); commands that write to directories of this machine run without that")
	}
	if needed && !info.SwapLimit {
		c.lacks("container swap", false, "Start the kernel with swapaccount=1, or run without swap.",
			"the engine cannot limit swap: what uses more than its memory gets slow instead of being killed")
	}
}

// engineDisk reports the free disk space for images.
func (c *checkup) engineDisk(root string, needed bool) {
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil {
		return // the engine does not name the directory, or only its user has access
	}
	free := int64(fs.Bavail) * int64(fs.Bsize)
	if needed && free < lowDisk {
		c.lacks("container disk", false, "Make room (docker system df), or give the engine another data-root.",
			"%s free for images in %s", view.Bytes(free), root)
		return
	}
	c.ok("container disk", "%s free for images in %s", view.Bytes(free), root)
}
