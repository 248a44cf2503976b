package tasks

import (
	"context"
	"errors"

	"github.com/benchgraph/benchgraph/hclspec"
)

// buildContext is what a build is made from, as it was when it was first looked at.
type buildContext struct {
	bases []string // names of the images that the Dockerfile begins with, sorted
}

func (p *Project) readBuild(context.Context, *hclspec.ImageBuild) (buildContext, error) {
	return buildContext{}, nil
}

// readContext finds out what an image is built from.
func (b *builder) readContext(context.Context, *imageTask) (problem string, err error) {
	return noBuilds, nil
}

const noBuilds = "is built from a Dockerfile, which this version cannot do yet; begin with from"

func (m *making) build(context.Context) error { return errors.New(noBuilds) }
