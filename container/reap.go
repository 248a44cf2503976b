package container

import (
	"context"
	"errors"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
)

// Reap stops and removes the containers, then the networks, that have LabelOwner and whose labels abandoned accepts.
// It returns the number of containers.
func (e *Engine) Reap(ctx context.Context, abandoned func(labels map[string]string) bool) (int, error) {
	ours := filters.NewArgs(filters.Arg("label", LabelOwner))
	containers, err := call(ctx, e, "list containers", func(ctx context.Context, a *api) ([]container.Summary, error) {
		return a.ContainerList(ctx, container.ListOptions{All: true, Filters: ours})
	})
	if err != nil {
		return 0, err
	}
	containers = slices.DeleteFunc(containers, func(c container.Summary) bool { return !abandoned(c.Labels) })
	count := len(containers)
	var errs []error
	for range 2 { // Podman first removes containers that share another one's network
		errs = nil
		containers = slices.DeleteFunc(containers, func(c container.Summary) bool {
			err := e.Remove(ctx, c.ID)
			errs = append(errs, err)
			return err == nil
		})
	}
	networks, err := call(ctx, e, "list networks", func(ctx context.Context, a *api) ([]network.Summary, error) {
		return a.NetworkList(ctx, network.ListOptions{Filters: ours})
	})
	errs = append(errs, err)
	for _, n := range networks {
		if abandoned(n.Labels) {
			errs = append(errs, e.RemoveNetwork(ctx, n.ID))
		}
	}
	return count, errors.Join(errs...)
}
