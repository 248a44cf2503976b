// Package trial starts a container to find out which devices and limits an engine supports.
package trial

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	api "github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/failure"
)

// GPUDriver is the way in which NVIDIA devices are requested from an engine.
type GPUDriver string

const (
	byCapability GPUDriver = ""    // the engine has NVIDIA's runtime or hook
	byCDI        GPUDriver = "cdi" // the engine reads specifications of the Container Device Interface
)

// Request returns a request for devices by their UUIDs. "all" means all devices.
func (d GPUDriver) Request(devices ...string) []api.DeviceRequest {
	if d == byCapability {
		return []api.DeviceRequest{{DeviceIDs: devices, Capabilities: [][]string{{"gpu"}}}}
	}
	request := api.DeviceRequest{Driver: string(d)}
	for _, device := range devices {
		request.DeviceIDs = append(request.DeviceIDs, "nvidia.com/gpu="+device)
	}
	return []api.DeviceRequest{request}
}

// GPUs finds out how to request NVIDIA devices from the engine, or why no container can have one. If the engine's
// configuration does not mention NVIDIA's runtime, GPUs starts trial containers with labels. It returns an error only
// if it is certain: NVIDIA's tools may also refuse a container because it has no files.
func GPUs(ctx context.Context, e *container.Engine, labels map[string]string) (d GPUDriver, err error) {
	info, err := e.Info(ctx)
	if err != nil || info.GPUs {
		return byCapability, err
	}
	try := func(d GPUDriver) error {
		return start(ctx, e, labels, func(h *api.HostConfig) { h.DeviceRequests = d.Request("all") })
	}
	err = try(byCapability)
	if container.LacksGPUs(err) {
		if other := try(byCDI); !container.LacksGPUs(other) {
			d, err = byCDI, other
		}
	}
	if _, refused := errors.AsType[*container.Error](err); refused && !container.LacksGPUs(err) {
		err = nil // only the program is missing
	}
	return d, err
}

// Lacks returns why commands cannot run in the engine, or why it lacks something, which check tries (check may be
// nil). It returns "" if the engine is usable. Commands run below the directories state and store. Lacks takes at
// most 10 seconds.
func Lacks(ctx context.Context, e *container.Engine, state, store, something string,
	check func(context.Context, *container.Engine) error) string {
	if e == nil {
		return "needs a container engine, and none was looked for"
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	info, err := e.Info(ctx)
	switch {
	case err != nil:
		return "needs a container engine: " + err.Error()
	case !info.Seccomp:
		return "needs a container engine that filters system calls: start it with its own seccomp profile, on a " +
			"kernel with CONFIG_SECCOMP_FILTER"
	}
	for _, own := range [][2]string{{"BENCHGRAPH_STATE_DIR", state}, {"BENCHGRAPH_CACHE_DIR", store}} {
		if why := Unmountable(ctx, e, own[1], ""); why != "" {
			return fmt.Sprintf("needs another directory than %s, where commands run: %s. Name one in %s", own[1], why,
				own[0])
		}
	}
	if check != nil {
		if err := check(ctx, e); err != nil {
			return "needs " + something + ": " + err.Error()
		}
	}
	return ""
}

// Once returns a function that asks once and then returns the same answer. A question that ctx breaks off has none.
func Once(ask func(context.Context) string) func(context.Context) string {
	var mu sync.Mutex
	answered, answer := false, ""
	return func(ctx context.Context) string {
		mu.Lock()
		defer mu.Unlock()
		if !answered {
			answer = ask(ctx)
			answered = ctx.Err() == nil
		}
		return answer
	}
}

// patience limits the wait for an engine that does not answer.
const patience = 10 * time.Second

// Unmountable returns why the engine cannot mount dir at the path inside; empty: it can, or does not answer.
func Unmountable(ctx context.Context, e *container.Engine, dir, inside string) string {
	if paths := dir + inside; e == nil || !strings.ContainsAny(paths, ",\"\n") || !strings.Contains(paths, ":") {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if podman, err := e.IsPodman(ctx); err != nil || !podman {
		return ""
	}
	return "Podman takes no path with a colon beside a comma, a quote or a line break"
}

// Grants are additional permissions of a container. The zero value grants nothing.
type Grants struct {
	Ulimits map[string]int64 // by the engines' names; -1: no limit
	Devices []string         // paths of devices of the host, except GPUs, and of directories of devices
	Caps    []string         // capabilities, such as IPC_LOCK
	Mount   string           // directory of this machine to mount, to check that the engine sees it; empty: none
}

// Add adds the grants to a container's configuration.
func (g Grants) Add(h *api.HostConfig) {
	h.CapAdd = append(h.CapAdd, g.Caps...)
	if g.Mount != "" {
		h.Mounts = append(h.Mounts,
			mount.Mount{Type: mount.TypeBind, Source: g.Mount, Target: "/seen", ReadOnly: true})
	}
	for _, name := range slices.Sorted(maps.Keys(g.Ulimits)) {
		h.Ulimits = append(h.Ulimits, &api.Ulimit{Name: name, Soft: g.Ulimits[name], Hard: g.Ulimits[name]})
	}
	for _, name := range g.Devices {
		h.Devices = append(h.Devices,
			api.DeviceMapping{PathOnHost: name, PathInContainer: name, CgroupPermissions: "rwm"})
	}
}

// List returns the name and value of each grant.
func (g Grants) List() (all [][]string) {
	for _, name := range slices.Sorted(maps.Keys(g.Ulimits)) {
		all = append(all, []string{name, strconv.FormatInt(g.Ulimits[name], 10)})
	}
	for _, name := range g.Devices {
		all = append(all, []string{"device", name})
	}
	for _, name := range g.Caps {
		all = append(all, []string{"capability", name})
	}
	return all
}

// Check finds out whether the engine makes containers with these grants; it starts a trial container with labels. It
// returns an error only if it is certain: *container.Error, with a remedy.
func (g Grants) Check(ctx context.Context, e *container.Engine, labels map[string]string) error {
	err := start(ctx, e, labels, g.Add)
	if said, ok := errors.AsType[*container.Error](err); ok && (said.Class != failure.Infra || said.Remedy == "") {
		return nil // the trial lacks a program, or the engine has a temporary trouble
	}
	return err
}

// start starts a container without files, and so without a program: an engine that grants everything reports the
// missing program.
func start(ctx context.Context, e *container.Engine, labels map[string]string, ask func(*api.HostConfig)) (err error) {
	var nothing bytes.Buffer
	if err := tar.NewWriter(&nothing).Close(); err != nil {
		return err
	}
	img, err := e.Import(ctx, &nothing, map[string]string{container.LabelKey: "none"})
	if err != nil {
		return err
	}
	name := "benchgraph-trial-" + strings.ToLower(rand.Text())
	defer func() {
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, e.Remove(ctx, name), e.RemoveImage(ctx, img.ID))
	}()
	h := &api.HostConfig{NetworkMode: "none", CapDrop: []string{"ALL"}, ReadonlyRootfs: true}
	ask(h)
	if _, err := e.Create(ctx, name, &api.Config{Image: img.ID, Entrypoint: []string{"/none"}, Labels: labels},
		h); err != nil {
		return err
	}
	made, err := e.Inspect(ctx, name)
	if err != nil {
		return err
	}
	// Podman has only CDI.
	if len(h.DeviceRequests) > 0 && h.DeviceRequests[0].Driver == "" && len(made.HostConfig.DeviceRequests) == 0 {
		return e.NoGPUs()
	}
	return e.Start(ctx, name)
}
