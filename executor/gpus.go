package executor

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"

	api "github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/container"
)

// CheckGPUs returns why no container of the engine can have an NVIDIA device. Where the engine's configuration does not
// say that they can, a container is started that asks for a device and has no program: an engine that has devices
// misses the program. Only a sure no is an error, for NVIDIA's tools may refuse a container without any file.
func CheckGPUs(ctx context.Context, e *container.Engine) (err error) {
	info, err := e.Info(ctx)
	if err != nil || info.GPUs {
		return err
	}
	var nothing bytes.Buffer
	if err := tar.NewWriter(&nothing).Close(); err != nil {
		return err
	}
	img, err := e.Import(ctx, &nothing, map[string]string{container.LabelKey: "none"})
	if err != nil {
		return err
	}
	after, name := context.WithoutCancel(ctx), "benchgraph-gpus-"+strings.ToLower(rand.Text())
	defer func() {
		_, gone := e.RemoveIfThere(after, name)
		err = errors.Join(err, gone, e.RemoveImage(after, img.ID))
	}()
	_, err = e.Create(ctx, name,
		&api.Config{Image: img.ID, Entrypoint: []string{"/none"}, Labels: NewDocker(e, nil).Labels()},
		&api.HostConfig{NetworkMode: "none", Resources: api.Resources{
			DeviceRequests: []api.DeviceRequest{{Count: 1, Capabilities: [][]string{{"gpu"}}}},
		}})
	if err != nil {
		return err
	}
	said, ok := errors.AsType[*container.Error](e.Start(ctx, name))
	if ok && strings.Contains(said.Reason, "[[gpu]]") { // no driver of the engine has the capability
		return said
	}
	return nil
}
