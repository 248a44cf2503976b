// Package trial finds out with a container what an engine gives to containers: devices, and limits.
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
	"time"

	api "github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/failure"
)

// GPUDriver is the driver by which an engine is asked for NVIDIA devices.
type GPUDriver string

const (
	byCapability GPUDriver = ""    // the engine has NVIDIA's runtime or hook
	byCDI        GPUDriver = "cdi" // it reads specifications of the Container Device Interface
)

// Request asks for devices by their UUIDs. All of them are "all".
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

// GPUs finds out how the engine is asked for NVIDIA devices, or why no container can have one. Where the engine's
// configuration does not say that it has NVIDIA's runtime, containers with labels are tried. Only a sure no is an
// error, for NVIDIA's tools may refuse a container without any file.
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
		err = nil // it misses the program
	}
	return d, err
}

// Lacks says why there is no container engine that commands run in, or none that can do something, which check tries
// and may be nil; empty: this engine does. Commands run below the directories state and store. It takes 10 seconds at
// most.
func Lacks(e *container.Engine, state, store, something string,
	check func(context.Context, *container.Engine) error) string {
	if e == nil {
		return "needs a container engine, and none was looked for"
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
		if why := Unmountable(e, own[1], ""); why != "" {
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

// patience bounds the wait for an engine that is there and does not answer.
const patience = 10 * time.Second

// Unmountable says why the engine mounts no such directory at a path inside; empty: it does, or does not answer.
func Unmountable(e *container.Engine, dir, inside string) string {
	if paths := dir + inside; e == nil || !strings.ContainsAny(paths, ",\"\n") || !strings.Contains(paths, ":") {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if podman, err := e.IsPodman(ctx); err != nil || !podman {
		return ""
	}
	return "Podman takes no path with a colon beside a comma, a quote or a line break"
}

// Grants are what a container gets beyond what all have. The zero value is nothing.
type Grants struct {
	Ulimits map[string]int64 // by the names that engines have for them; -1: none
	Devices []string         // paths of devices of the host, GPUs excepted, and of directories of such
	Caps    []string         // capabilities, such as IPC_LOCK
	Mount   string           // directory of this machine that the engine is to see; empty: none
}

// Add adds them to what a container is made with.
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

// List is each grant as its name and its value.
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

// Check tries whether the engine makes containers with these grants, with a container with labels. Only a sure no is an
// error: *container.Error, with a remedy.
func (g Grants) Check(ctx context.Context, e *container.Engine, labels map[string]string) error {
	err := start(ctx, e, labels, g.Add)
	if said, ok := errors.AsType[*container.Error](err); ok && (said.Class != failure.Infra || said.Remedy == "") {
		return nil // the trial lacks a program, or the engine has a trouble that the real container may not meet
	}
	return err
}

// start starts a container that has no file, and so no program: an engine that grants all that is asked for misses the
// program.
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
	// Podman knows CDI only.
	if len(h.DeviceRequests) > 0 && h.DeviceRequests[0].Driver == "" && len(made.HostConfig.DeviceRequests) == 0 {
		return e.NoGPUs()
	}
	return e.Start(ctx, name)
}
