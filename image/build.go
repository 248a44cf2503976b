package image

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
	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/dockerfile"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// Context is the input of an image build.
type Context struct {
	Bases []string // names of the images that the Dockerfile mentions
	Base  string   // of these, the one that the result begins with; empty: none
	Dir   string   // absolute
	Files []dockerfile.ContextFile
}

// ReadContext reads the input of a build. dir is the project's directory. It leaves out the files own, which benchgraph
// writes into the project: they change with every apply.
func ReadContext(ctx context.Context, dir string, s *hclspec.ImageBuild, own []string, stat *cache.StatCache) (Context,
	error) {
	b := Context{Dir: filepath.Join(dir, filepath.FromSlash(s.Context))}
	all, err := dockerfile.Context(b.Dir, filepath.FromSlash(s.Dockerfile))
	if err != nil {
		return b, err
	}
	var paths []string
	for _, f := range all {
		name := filepath.Join(b.Dir, filepath.FromSlash(f.Path))
		if slices.ContainsFunc(own, func(dir string) bool {
			return name == dir || strings.HasPrefix(name, dir+string(filepath.Separator))
		}) {
			continue
		}
		b.Files = append(b.Files, f)
		if f.Mode.IsRegular() {
			paths = append(paths, name)
		}
	}
	hashed, err := stat.HashAll(ctx, paths)
	if err != nil {
		return b, err
	}
	for i := range b.Files {
		if f := &b.Files[i]; f.Mode.IsRegular() {
			f.SHA256, hashed = hashed[0].SHA256, hashed[1:]
		}
	}
	text, err := os.ReadFile(filepath.Join(b.Dir, filepath.FromSlash(s.Dockerfile)))
	if err != nil {
		return b, err
	}
	file, err := dockerfile.Parse(text, s.Args)
	if err == nil {
		b.Bases = file.Images()
		b.Base, err = file.Base(s.Target)
	}
	if err != nil {
		return b, fmt.Errorf("%s: %w", path.Join(s.Context, s.Dockerfile), err)
	}
	return b, nil
}

// Digest returns a digest of the whole input of the build.
func (b Context) Digest() string {
	d := cache.Describe("build context")
	b.describe(d)
	return d.Key().String()
}

func (b Context) describe(d *cache.Description) {
	for _, f := range b.Files {
		d.Add("file", f.Path, f.SHA256, f.Link, strconv.FormatBool(f.Mode&0o111 != 0 && f.Mode.IsRegular()))
	}
}

// describeBuild adds the input of a build to a description.
func (t *Task) describeBuild(d *cache.Description) {
	b := t.Spec.Build
	d.Add("dockerfile", b.Dockerfile, b.Target)
	for _, name := range slices.Sorted(maps.Keys(b.Args)) {
		d.Add("arg", name, b.Args[name])
	}
	t.Context.describe(d)
	for _, base := range t.Bases {
		d.Add("from", base.Name, base.Digest)
	}
}

// build builds the image on which the other steps are made.
func (m *making) build(ctx context.Context) error {
	spec, t := m.t.Spec.Build, m.t
	describe := func(d *cache.Description) {
		t.describeBuild(d)
		d.Add("network", strconv.FormatBool(t.Spec.Network))
	}
	if at := slices.Index(t.Context.Bases, t.Context.Base); at >= 0 {
		m.base = t.Bases[at]
	}
	return m.step(ctx, "build", describe, func(ctx context.Context, labels map[string]string) (container.Image, error) {
		pins := map[string]string{}
		for _, base := range t.Bases {
			img, err := m.ensureBase(ctx, base)
			if err != nil {
				return container.Image{}, err
			}
			pins[base.Name] = img.ID
		}
		m.progress("build")
		out := m.sh.Capture()
		defer out.Close()
		img, err := m.engine.Build(ctx, container.BuildSpec{
			Dir: t.Context.Dir, Files: t.Context.Files, Dockerfile: spec.Dockerfile, Args: spec.Args,
			Target: spec.Target,
			Labels: labels, Network: t.Spec.Network, Log: out, Pins: pins,
		})
		m.ran.Built(img.ID, t.Context.Dir, spec, t.Spec.Network, pins)
		if failed, ok := errors.AsType[*container.StepError](err); ok {
			return container.Image{}, m.sh.Failure("build", out, failed.Error())
		}
		if changed, ok := errors.AsType[*dockerfile.ContextChanged](err); ok {
			return container.Image{}, workdir.InputChanged(changed.Path)
		}
		return img, err
	})
}
