//go:build linux || darwin

// Package docker runs commands in containers of an engine.
package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	api "github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/stream"
	"github.com/benchgraph/benchgraph/container/trial"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/family"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Executor is the executor.Executor that runs commands in containers of an engine, and commands without a container on
// the host.
//
// A container ends with its program and is then removed with its network. Its output goes to the command's writers.
// The engine also keeps the end of the output in a log, which shows whether everything has arrived and is removed with
// the container. If the engine restarts, output is lost and the command fails. If this process is killed, Reap removes
// its containers later.
type Executor struct {
	engine *container.Engine
	host   executor.Executor
	owner  string
	info   atomic.Pointer[container.Info]  // nil: not asked yet
	gpus   atomic.Pointer[trial.GPUDriver] // nil: not known yet
	ids    sync.Map                        // IDs of its containers
}

// New returns an Executor for an engine. host runs the commands without a container.
func New(e *container.Engine, host executor.Executor) *Executor {
	return &Executor{engine: e, host: host, owner: newOwner().String()}
}

// about returns the engine's description. If the engine does not answer, the next command asks again.
func (d *Executor) about(ctx context.Context) (container.Info, error) {
	if known := d.info.Load(); known != nil {
		return *known, nil
	}
	info, err := d.engine.Info(ctx)
	if err == nil {
		d.info.Store(&info)
	}
	return info, err
}

// gpuDriver returns how to request devices from the engine.
func (d *Executor) gpuDriver(ctx context.Context) (trial.GPUDriver, error) {
	if known := d.gpus.Load(); known != nil {
		return *known, nil
	}
	driver, err := trial.GPUs(ctx, d.engine, d.Labels())
	if err == nil {
		d.gpus.Store(&driver)
	}
	return driver, err
}

// CheckGPUs returns an error if no container of the engine can have an NVIDIA device. If that is uncertain, it
// returns nil.
func CheckGPUs(ctx context.Context, e *container.Engine) error {
	_, err := New(e, nil).gpuDriver(ctx)
	return err
}

// CheckGrants returns an error if the engine makes no container with these grants. If that is uncertain, it returns
// nil.
func CheckGrants(ctx context.Context, e *container.Engine, g trial.Grants) error {
	return g.Check(ctx, e, New(e, nil).Labels())
}

// Start starts cmd. It returns *container.Unavailable if the engine does not answer.
func (d *Executor) Start(ctx context.Context, cmd executor.Command) (executor.Process, error) {
	if cmd.Container == nil {
		return d.host.Start(ctx, cmd)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	if cmd.Container.Within != nil {
		return d.startWithin(ctx, cmd)
	}
	d.engine.AwaitBack(ctx)
	c := &contained{attached: attached{docker: d, name: "benchgraph-" + strings.ToLower(rand.Text()), cmd: cmd,
		output: newOutput(cmd)}}
	c.Begin()
	c.ctx = context.WithoutCancel(ctx) // the end of ctx stops the program, and stopping needs requests
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.discard())
	}
	c.unwatch = context.AfterFunc(ctx, func() { c.Halt(context.Cause(ctx)) })
	go c.supervise()
	return c, nil
}

// Labels returns the labels by which Reap finds the containers of this process.
func (d *Executor) Labels() map[string]string {
	return map[string]string{container.LabelState: d.engine.State(), container.LabelOwner: d.owner}
}

func (d *Executor) made(id string) {
	if id != "" {
		d.ids.Store(id, true)
	}
}

// containerID matches the ID of a container in the name of its control group; all engines write it this way.
var containerID = lazyregexp.New(`[0-9a-f]{64}`)

// Own reports whether a process is family.Own or runs in a container of this Executor. The parent of such a process is
// the engine, so it is recognized by its control group, which is readable also for processes of other users.
func (d *Executor) Own(pid int) bool {
	if family.Own(pid) {
		return true
	}
	groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)) // no file: not Linux, or it has ended
	return slices.ContainsFunc(containerID().FindAllString(string(groups), -1), func(id string) bool {
		_, ours := d.ids.Load(id)
		return ours
	})
}

func (d *Executor) config(cmd executor.Command) *api.Config {
	c := cmd.Container
	labels := d.Labels()
	maps.Copy(labels, c.Labels)
	config := &api.Config{
		Image:        c.Image,
		Entrypoint:   cmd.Argv,
		Env:          cmd.Env,
		WorkingDir:   cmd.Dir,
		User:         c.User,
		Labels:       labels,
		AttachStdout: true,
		AttachStderr: true,
		AttachStdin:  cmd.Stdin != nil,
		OpenStdin:    cmd.Stdin != nil,
		StdinOnce:    cmd.Stdin != nil,
		Healthcheck:  &api.HealthConfig{Test: []string{"NONE"}}, // a health check would run beside the measured program
	}
	if !c.Keep { // a kept container becomes an image, whose environment must not contain the mark
		config.Env = append(slices.Clip(config.Env), family.NewMark("").Next().Variable())
	}
	if c.Beside == nil {
		config.Hostname = hostname // the engine's default is random, and would be in the environment
	}
	return config
}

// hostname is the host name of containers.
const hostname = "benchgraph"

func (d *Executor) hostConfig(ctx context.Context, c *executor.Container, network string) (*api.HostConfig, error) {
	mounts, binds, err := d.mounts(c.Mounts)
	if err != nil {
		return nil, err
	}
	info, err := d.about(ctx)
	if err != nil {
		return nil, err
	}
	yes, pids := true, int64(executor.MostProcesses)
	h := &api.HostConfig{
		NetworkMode: api.NetworkMode(network),
		CapDrop:     []string{"ALL"},
		SecurityOpt: []string{"no-new-privileges:true"},
		Init:        &yes,
		IpcMode:     "private",
		Mounts:      mounts,
		Binds:       binds,
		ShmSize:     cmp.Or(c.Shm, cmp.Or(c.Memory, info.Memory)/2),
		LogConfig:   api.LogConfig{Type: "none"}, // other logs would keep the output without a limit
		Resources: api.Resources{
			CpusetCpus: c.CPUs,
			Memory:     c.Memory,
			MemorySwap: c.Memory,
			PidsLimit:  &pids,
		},
	}
	if info.Logs {
		h.LogConfig = stream.LogConfig()
	}
	if !c.Keep {
		h.ReadonlyRootfs, h.Tmpfs = true, inMemory(c.Mounts)
		if c.User != "" && info.UsersMapped {
			// Otherwise files that it writes to directories of the host would belong to a different user.
			h.UsernsMode = "host"
		}
	}
	c.Grants.Add(h)
	if network == "none" {
		// torch.distributed and ray look up the host name, which the engine adds to /etc/hosts only with a network.
		h.ExtraHosts = []string{hostname + ":127.0.0.1"}
	}
	if len(c.GPUs) > 0 {
		driver, err := d.gpuDriver(ctx)
		if err != nil {
			return nil, err
		}
		h.DeviceRequests = driver.Request(c.GPUs...)
	}
	return h, nil
}

// temporary are the directories that every command can write to, beside its mounts.
var temporary = []string{"/tmp", "/var/tmp", "/run"}

// inMemory returns the temporary directories at which nothing is mounted, with their options.
func inMemory(mounts []executor.Mount) map[string]string {
	all := map[string]string{}
	for _, dir := range temporary {
		if !slices.ContainsFunc(mounts, func(m executor.Mount) bool { return filepath.Clean(m.Inside) == dir }) {
			all[dir] = "rw,exec,nosuid,nodev,mode=1777"
		}
	}
	return all
}

// mounts returns the mounts in the engine's form. It refuses mounts of the engine's socket: with the socket, the
// program would control the engine and thus the machine. Podman reads a mount as comma-separated values, so paths
// with commas or quotes become binds, whose parts are separated by colons.
func (d *Executor) mounts(all []executor.Mount) (out []mount.Mount, binds []string, err error) {
	for _, m := range all {
		if m.Host == "" {
			out = append(out, mount.Mount{Type: mount.TypeVolume, Source: m.Volume, Target: m.Inside,
				ReadOnly: !m.Writable})
			continue
		}
		for _, socket := range []string{strings.TrimPrefix(d.engine.Host(), "unix://"), "/var/run/docker.sock"} {
			if filepath.IsAbs(socket) && contains(m.Host, socket) {
				return nil, nil, &executor.Unsupported{
					What:   fmt.Sprintf("mount of %s: it holds the socket of the container engine, %s", m.Host, socket),
					Remedy: "mount less of the host",
				}
			}
		}
		if paths := m.Host + m.Inside; strings.ContainsAny(paths, ",\"\n") && !strings.Contains(paths, ":") {
			access := map[bool]string{true: "rw", false: "ro"}[m.Writable]
			binds = append(binds, m.Host+":"+m.Inside+":"+access+",rprivate")
			continue
		}
		out = append(out, mount.Mount{
			Type: mount.TypeBind, Source: m.Host, Target: m.Inside, ReadOnly: !m.Writable,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate},
		})
	}
	return out, binds, nil
}

// contains reports whether path is dir or below it, after all links are followed.
func contains(dir, path string) bool {
	for _, d := range []string{filepath.Clean(dir), resolved(dir)} {
		for _, p := range []string{filepath.Clean(path), resolved(path)} {
			if fs.Below(p, d) {
				return true
			}
		}
	}
	return false
}

// resolved follows the links in path; if that fails, it returns path cleaned.
func resolved(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return filepath.Clean(path)
}
