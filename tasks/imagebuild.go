package tasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/docker"
	"github.com/benchgraph/benchgraph/internal/workdir"
)

// buildContext is what a build is made from.
type buildContext struct {
	dir   string // absolute
	files []docker.ContextFile
	bases []string // names of the images that the Dockerfile mentions
}

// buildID is equal for builds that get the same.
func buildID(s *hclspec.ImageBuild) string {
	return fmt.Sprintf("%q", []any{s.Context, s.Dockerfile, s.Args})
}

// readBuild takes in what a build is made from, as it was when it was first looked at. What benchgraph itself writes into the
// project is no part of it: it would be another one after every apply.
func (p *Project) readBuild(ctx context.Context, s *hclspec.ImageBuild, own []string) (buildContext, error) {
	id := buildID(s)
	if known, ok := p.builds[id]; ok {
		return known, nil
	}
	b := buildContext{dir: filepath.Join(p.Spec.Dir, filepath.FromSlash(s.Context))}
	all, err := docker.Context(b.dir, filepath.FromSlash(s.Dockerfile))
	if err != nil {
		return b, err
	}
	var paths []string
	for _, f := range all {
		name := filepath.Join(b.dir, filepath.FromSlash(f.Path))
		if slices.ContainsFunc(own, func(dir string) bool { return name == dir || strings.HasPrefix(name, dir+string(filepath.Separator)) }) {
			continue
		}
		b.files = append(b.files, f)
		if f.Mode.IsRegular() {
			paths = append(paths, name)
		}
	}
	hashed, err := p.Stat.HashAll(ctx, paths)
	if err != nil {
		return b, err
	}
	for i := range b.files {
		if f := &b.files[i]; f.Mode.IsRegular() {
			f.SHA256, hashed = hashed[0].SHA256, hashed[1:]
		}
	}
	text, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(s.Dockerfile)))
	if err != nil {
		return b, err
	}
	if b.bases, err = docker.BaseImages(text, s.Args); err != nil {
		return b, fmt.Errorf("%s: %w", path.Join(s.Context, s.Dockerfile), err)
	}
	p.builds[id] = b
	return b, nil
}

// digest is a digest of all that the build gets.
func (b buildContext) digest() string {
	d := cache.Describe("build context")
	b.describe(d)
	return d.Key().String()
}

func (b buildContext) describe(d *cache.Description) {
	for _, f := range b.files {
		d.Add("file", f.Path, f.SHA256, f.Link, strconv.FormatBool(f.Mode&0o111 != 0 && f.Mode.IsRegular()))
	}
}

// ownFiles are the files and directories that benchgraph writes.
func (p *Project) ownFiles() []string {
	own := []string{filepath.Clean(p.StateDir), filepath.Clean(p.LockFile)}
	for i := range p.Spec.Reports {
		own = append(own, filepath.Join(p.Spec.Dir, filepath.FromSlash(p.Spec.Reports[i].Dir)))
	}
	return own
}

// readContext finds out what an image is built from, or why it cannot be.
func (b *builder) readContext(ctx context.Context, t *imageTask) (problem string, err error) {
	if t.context, err = b.readBuild(ctx, t.spec.Build, b.ownFiles()); err != nil {
		return "", err
	}
	for _, name := range t.context.bases {
		t.bases = append(t.bases, baseImage{name, b.digestOf(name)})
		if why := b.unresolved[name]; why != "" {
			problem = why
		}
	}
	return problem, nil
}

// describeBuild writes what a build is made from.
func (t *imageTask) describeBuild(d *cache.Description) {
	b := t.spec.Build
	d.Add("dockerfile", b.Dockerfile, b.Target)
	for _, name := range slices.Sorted(maps.Keys(b.Args)) {
		d.Add("arg", name, b.Args[name])
	}
	t.context.describe(d)
	for _, base := range t.bases {
		d.Add("from", base.name, base.digest)
	}
}

// build builds what the image begins with.
func (m *making) build(ctx context.Context) error {
	spec, t := m.t.spec.Build, m.t
	describe := func(d *cache.Description) {
		t.describeBuild(d)
		d.Add("network", strconv.FormatBool(t.spec.Network))
	}
	if len(t.bases) > 0 {
		m.base = t.bases[0]
	}
	return m.step(ctx, "build", describe, func(ctx context.Context, labels map[string]string) (docker.Image, error) {
		pins := map[string]string{}
		for _, base := range t.bases {
			img, err := m.fetched(ctx, base)
			if err != nil {
				return docker.Image{}, err
			}
			pins[base.name] = img.ID
		}
		m.progress("build")
		out := m.sh.Capture()
		defer out.Close()
		img, err := m.p.Engine.Build(ctx, docker.BuildSpec{
			Dir: t.context.dir, Files: t.context.files, Dockerfile: spec.Dockerfile, Args: spec.Args, Target: spec.Target,
			Labels: labels, Network: t.spec.Network, Log: out, Pins: pins,
		})
		if failed, ok := errors.AsType[*docker.StepError](err); ok {
			return docker.Image{}, m.sh.Failure("build", out, failed.Error())
		}
		if changed, ok := errors.AsType[*docker.ContextChanged](err); ok {
			return docker.Image{}, workdir.InputChanged(changed.Path)
		}
		return img, err
	})
}
