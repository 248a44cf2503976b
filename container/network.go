package container

import (
	"cmp"
	"context"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"
)

// CreateNetwork makes a network on this machine from which other machines can be reached.
func (e *Engine) CreateNetwork(ctx context.Context, name string, labels map[string]string) error {
	_, err := call(ctx, e, "create network", func(ctx context.Context, a *api) (network.CreateResponse, error) {
		return a.NetworkCreate(ctx, name, network.CreateOptions{Driver: "bridge", Labels: labels})
	})
	return err
}

// RemoveNetwork removes a network, also if the ended container of the same name is still connected. It does nothing
// if there is no such network.
func (e *Engine) RemoveNetwork(ctx context.Context, name string) error {
	return e.do(ctx, "remove network", func(ctx context.Context, a *api) error {
		err := a.NetworkRemove(ctx, name)
		if err != nil && says(err.Error(), "network is being used") { // Podman
			err = cmp.Or(a.NetworkDisconnect(ctx, name, name, true), a.NetworkRemove(ctx, name))
		}
		if errdefs.IsNotFound(err) {
			return nil
		}
		return err
	})
}
