package container

import (
	"context"
	"slices"
	"strings"
)

// keptName is the name of an image that has none of its own: neither builders nor registries take nameless images, and an
// engine removes one with the last of its names. Nothing is ever found by it, and no registry can have that host.
func keptName(id string) string {
	return "benchgraph.invalid/image:" + strings.TrimPrefix(id, "sha256:")
}

// keep gives an image a name that stays.
func (e *Engine) keep(ctx context.Context, id string) error { return e.tag(ctx, id, keptName(id)) }

func (e *Engine) tag(ctx context.Context, id, name string) error {
	return e.do(ctx, "name image", func(ctx context.Context, a *api) error { return a.ImageTag(ctx, id, name) })
}

// nameOf returns a name of an image for the engine's builder: that by which a registry knows it, else one that it is given.
func (e *Engine) nameOf(ctx context.Context, id string) (string, error) {
	img, err := e.Image(ctx, id)
	if err != nil {
		return "", err
	}
	if len(img.Digests) > 0 {
		return slices.Min(img.Digests), nil
	}
	return keptName(img.ID), e.keep(ctx, img.ID)
}
