package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"github.com/benchgraph/benchgraph/container/registry"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// Image is an image in the engine.
type Image struct {
	ID      string   // "sha256:..."
	Digests []string // "REPOSITORY@sha256:...", as registries know it
	Tags    []string // "REPOSITORY:TAG", without benchgraph's own names
	Brought bool     // benchgraph pulled it from a registry
	Named   bool     // it has benchgraph's permanent name, as images of Import and Build have
	Labels  map[string]string
	Size    int64 // bytes on the engine's disk: unpacked layers and, in containerd's store, packed ones
	Created time.Time

	// Lists of images leave the following fields empty.
	Layers              []string // "sha256:..." of each unpacked layer
	Env                 []string // NAME=value
	User, Dir           string   // user and directory of commands
	Entrypoint, Command []string
	Volumes             []string // directories that containers do not take from the image; sorted
	Shell               []string // for the commands of its Dockerfile
	Health              *container.HealthConfig
}

// NoImage is the error for an image that the engine does not have.
type NoImage struct{ Ref string }

func (e *NoImage) Error() string { return "the engine has no image " + e.Ref }

// NotFound makes IsNotFound true.
func (*NoImage) NotFound() {}

// IsNoImage reports whether the engine lacks an image that was requested or that a container needs.
func IsNoImage(err error) bool {
	_, ok := errors.AsType[*NoImage](err)
	return ok || IsNotFound(err) && says(err.Error(), "No such image")
}

// InUse is the error for an image that cannot be removed because something needs it.
type InUse struct {
	ID     string
	Detail string // the engine's message
}

func (e *InUse) Error() string { return fmt.Sprintf("image %s is in use: %s", e.ID, e.Detail) }

// Images returns the images with LabelKey, including bases of others, with one request to the engine.
func (e *Engine) Images(ctx context.Context) ([]Image, error) {
	return e.list(ctx, true, filters.Arg("label", LabelKey))
}

func (e *Engine) list(ctx context.Context, all bool, filter filters.KeyValuePair) ([]Image, error) {
	list, err := call(ctx, e, "list images", func(ctx context.Context, a *api) ([]image.Summary, error) {
		return a.ImageList(ctx, image.ListOptions{All: all, Filters: filters.NewArgs(filter)})
	})
	if err != nil {
		return nil, err
	}
	images := make([]Image, 0, len(list))
	for _, s := range list {
		img := Image{ID: s.ID, Labels: s.Labels, Size: s.Size, Created: time.Unix(s.Created, 0)}
		images = append(images, img.called(s.RepoTags, s.RepoDigests))
	}
	return images, nil
}

// Image returns an image by its ID or a reference. It returns *NoImage if the engine does not have it.
func (e *Engine) Image(ctx context.Context, ref string) (Image, error) {
	r, err := call(ctx, e, "look at image "+ref, func(ctx context.Context, a *api) (image.InspectResponse, error) {
		return inspectImage(ctx, a, ref)
	})
	switch {
	case errdefs.IsNotFound(err):
		return Image{}, &NoImage{ref}
	case err != nil:
		return Image{}, err
	}
	out := Image{ID: r.ID, Size: r.Size, Layers: r.RootFS.Layers}
	for i, m := range r.Manifests {
		if i == 0 {
			out.Size = 0
		}
		out.Size += m.Size.Total
	}
	out.Created, _ = time.Parse(time.RFC3339Nano, r.Created) // it is optional
	if c := r.Config; c != nil {
		out.Labels, out.Env, out.User, out.Dir, out.Entrypoint, out.Command = c.Labels, c.Env, c.User, c.WorkingDir,
			c.Entrypoint, c.Cmd
		out.Volumes, out.Shell, out.Health = slices.Sorted(maps.Keys(c.Volumes)), c.Shell, c.Healthcheck
	}
	return out.called(r.RepoTags, r.RepoDigests), nil
}

// Pin identifies the image that a reference names now.
type Pin struct {
	// digest in the registry, of the index if there is one; for an image without a registry, its ID
	Digest string
	Size   int64 // compressed bytes to fetch; 0: the engine has the image
	// variables of its configuration about the NVIDIA driver that it needs; empty: none, or not known
	Requires map[string]string
}

// Resolve returns the image of a reference: the engine's image of that name, or else the registry's. Errors are
// *registry.Error, errors of the engine, or the cause of ctx.
func (e *Engine) Resolve(ctx context.Context, ref string) (Pin, error) {
	parsed, err := reference.ParseAnyReference(ref)
	if err != nil {
		return Pin{}, fmt.Errorf("%q is no reference to an image: %w", ref, err)
	}
	local, err := e.Image(ctx, ref)
	repository, ok := parsed.(reference.Named)
	if err == nil {
		pin := Pin{Digest: local.ID, Requires: local.Requires()}
		if ok {
			pin.Digest = localDigest(local, repository)
		}
		return pin, nil
	}
	if _, away := errors.AsType[*Unavailable](err); !IsNoImage(err) && !away || !ok {
		return Pin{}, err
	}
	c, err := e.registries(ctx)
	if err != nil {
		return Pin{}, err
	}
	var m registry.Manifest
	err = e.retry(ctx, resolveAttempts, func(ctx context.Context) (bool, error) {
		m, err = c.Manifest(ctx, reference.TagNameOnly(repository), true)
		return false, err
	}, func(error) {})
	return Pin{Digest: m.Digest, Size: m.Total, Requires: Image{Env: m.Env}.Requires()}, err
}

// Requires returns the image's variables that tell NVIDIA's container tools which driver it needs.
func (i Image) Requires() map[string]string {
	needs := map[string]string{}
	for _, line := range i.Env {
		name, value, _ := strings.Cut(line, "=")
		wanted := name == "CUDA_VERSION" || name == "NVIDIA_DISABLE_REQUIRE" ||
			strings.HasPrefix(name, "NVIDIA_REQUIRE_")
		if wanted && len(line) <= maxRequirement && len(needs) < maxRequirements && printable.Line(line) == line {
			needs[name] = value
		}
	}
	return needs
}

// Limits for foreign images. The requirements of NVIDIA's own images take about 2 KiB.
const (
	maxRequirement  = 8 << 10 // bytes
	maxRequirements = 16
)

// resolveAttempts is smaller than pullAttempts: a user waits for the plan.
const resolveAttempts = 3

// localDigest returns the digest of a local image in the repository of ref, or its ID if there is none.
func localDigest(local Image, ref reference.Named) string {
	if d, ok := ref.(reference.Digested); ok {
		return d.Digest().String()
	}
	slices.Sort(local.Digests)
	for _, known := range local.Digests {
		if repository, digest, _ := strings.Cut(known, "@"); repository == reference.FamiliarName(ref) {
			return digest
		}
	}
	return local.ID
}

// Import makes an image from a tar archive of a root file system, which may be compressed. The image is Named.
func (e *Engine) Import(ctx context.Context, root io.Reader, labels map[string]string) (Image, error) {
	changes, err := labelling(labels)
	if err != nil {
		return Image{}, err
	}
	id := ""
	_, err = long(ctx, e, "import image", func(ctx context.Context, a *api) (struct{}, error) {
		body, err := a.ImageImport(ctx, image.ImportSource{Source: root, SourceName: "-"}, "",
			image.ImportOptions{Changes: changes})
		if err != nil {
			return struct{}{}, err
		}
		defer body.Close()
		return struct{}{}, messages(body, func(m message) {
			if strings.HasPrefix(m.Status, "sha256:") {
				id = m.Status
			}
		})
	})
	if err != nil {
		return Image{}, err
	}
	return e.named(ctx, "import image", id)
}

// labelling returns lines of a Dockerfile that set labels.
func labelling(labels map[string]string) ([]string, error) {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		line := "LABEL " + quoted(key) + "=" + quoted(labels[key])
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return nil, fmt.Errorf("%q: control characters cannot be part of a label", line)
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// quoted quotes a word for a Dockerfile, so that nothing in it is replaced.
func quoted(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`).Replace(word) + `"`
}
