package container

import (
	"context"
	"io"
	"slices"
	"strings"
)

// keptName returns a name for an image without one: builders and registries need a name, and an engine removes an
// image with its last name. Images are never looked up by this name, and no registry can have its host. An image that
// somebody makes from another inherits labels, but no name.
func keptName(id string) string {
	return "benchgraph.invalid/image:" + strings.TrimPrefix(id, "sha256:")
}

// named gives a new image its permanent name. An empty ID means that the engine's answer ended early.
func (e *Engine) named(ctx context.Context, doing, id string) (Image, error) {
	if id == "" {
		return Image{}, brokeOff(doing, io.ErrUnexpectedEOF)
	}
	img, err := e.Image(ctx, id)
	if err == nil {
		err = e.tag(ctx, img.ID, keptName(img.ID))
	}
	if err != nil {
		return Image{}, err
	}
	return e.Image(ctx, img.ID)
}

func (e *Engine) tag(ctx context.Context, id, name string) error {
	return e.do(ctx, "name image", func(ctx context.Context, a *api) error { return a.ImageTag(ctx, id, name) })
}

// nameOf returns a name of an image for the builder: its name in the registry, or else keptName. With containerd's
// store, where IDs are digests of manifests, the builder would look up the registry name at the registry first, so
// keptName is used.
func (e *Engine) nameOf(ctx context.Context, id string) (string, error) {
	img, err := e.Image(ctx, id)
	if err != nil {
		return "", err
	}
	if len(img.Digests) > 0 && !strings.HasSuffix(img.Digests[0], "@"+img.ID) {
		return slices.Min(img.Digests), nil
	}
	return keptName(img.ID), e.tag(ctx, img.ID, keptName(img.ID))
}
