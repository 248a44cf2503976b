package container

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/docker/docker/api/types/container"
)

// GPUDriver is the driver by which an engine is asked for NVIDIA devices.
type GPUDriver string

const (
	byCapability GPUDriver = ""    // the engine has NVIDIA's runtime or hook
	byCDI        GPUDriver = "cdi" // it reads specifications of the Container Device Interface
)

// Request asks for devices by their UUIDs. All of them are "all".
func (d GPUDriver) Request(devices ...string) []container.DeviceRequest {
	if d == byCapability {
		return []container.DeviceRequest{{DeviceIDs: devices, Capabilities: [][]string{{"gpu"}}}}
	}
	request := container.DeviceRequest{Driver: string(d)}
	for _, device := range devices {
		request.DeviceIDs = append(request.DeviceIDs, "nvidia.com/gpu="+device)
	}
	return []container.DeviceRequest{request}
}

// GPUDriver finds out how the engine is asked for NVIDIA devices, or why no container can have one. Where the engine's
// configuration does not say that it has NVIDIA's runtime, containers with labels are tried.
func (e *Engine) GPUDriver(ctx context.Context, labels map[string]string) (d GPUDriver, err error) {
	info, err := e.Info(ctx)
	if err != nil || info.GPUs {
		return byCapability, err
	}
	var nothing bytes.Buffer
	if err := tar.NewWriter(&nothing).Close(); err != nil {
		return "", err
	}
	img, err := e.Import(ctx, &nothing, map[string]string{LabelKey: "none"})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, e.RemoveImage(context.WithoutCancel(ctx), img.ID)) }()
	err = e.tryGPUs(ctx, byCapability, img.ID, labels)
	if lacksGPUs(err) {
		if other := e.tryGPUs(ctx, byCDI, img.ID, labels); !lacksGPUs(other) {
			return byCDI, other
		}
	}
	return byCapability, err
}

// tryGPUs starts a container that asks for devices and has no program: an engine that has devices misses the program.
// Only a sure no is an error, for NVIDIA's tools may refuse a container without any file.
func (e *Engine) tryGPUs(ctx context.Context, d GPUDriver, image string, labels map[string]string) (err error) {
	name := "benchgraph-gpus-" + strings.ToLower(rand.Text())
	defer func() { err = errors.Join(err, e.Remove(context.WithoutCancel(ctx), name)) }()
	_, err = e.Create(ctx, name, &container.Config{Image: image, Entrypoint: []string{"/none"}, Labels: labels},
		&container.HostConfig{NetworkMode: "none", Resources: container.Resources{DeviceRequests: d.Request("all")}})
	if err != nil {
		return err
	}
	made, err := e.Inspect(ctx, name)
	if err != nil {
		return err
	}
	if d == byCapability && len(made.HostConfig.DeviceRequests) == 0 { // Podman, which knows CDI only
		return e.explain(ctx, "start container", errors.New("no CDI devices nvidia.com/gpu"))
	}
	if err := e.Start(ctx, name); lacksGPUs(err) {
		return err
	}
	return nil
}

// lacksGPUs says whether an engine failed because it has no NVIDIA devices for containers.
func lacksGPUs(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && says(e.Reason, noGPUs)
}
