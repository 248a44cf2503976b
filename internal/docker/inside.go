package docker

import "context"

// Inside says of which image a container is (its ID), and what was changed, added or removed in it since, apart from its
// mounts: absolute paths.
func (e *Engine) Inside(ctx context.Context, container string) (image string, changed []string, err error) {
	api, err := e.connect()
	if err != nil {
		return "", nil, err
	}
	info, err := api.ContainerInspect(ctx, container)
	if err != nil {
		return "", nil, err
	}
	changes, err := api.ContainerDiff(ctx, container)
	if err != nil {
		return "", nil, err
	}
	for _, c := range changes {
		changed = append(changed, c.Path)
	}
	return info.Image, changed, nil
}
