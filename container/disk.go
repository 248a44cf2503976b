package container

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/internal/printable"
)

// broughtMark is the repository of the names that mark pulled images, because images of a registry cannot be
// labelled. The name says only that benchgraph pulled the image, which may be removed when its space is needed.
const broughtMark = "benchgraph/brought"

func markOf(id string) string { return broughtMark + ":" + strings.TrimPrefix(id, "sha256:") }

// Brought returns the images that benchgraph pulled from registries. It makes one request.
func (e *Engine) Brought(ctx context.Context) ([]Image, error) {
	return e.list(ctx, false, filters.Arg("reference", broughtMark))
}

// called sets the names of an image. It leaves out benchgraph's own names, the "<none>" of older engines, and digests
// that containerd's store lists as tags. It shortens Podman's names, which begin with docker.io.
func (img Image) called(tags, digests []string) Image {
	tags, digests = familiar(tags), familiar(digests)
	ours := []string{markOf(img.ID), keptName(img.ID)}
	img.Brought, img.Named = slices.Contains(tags, ours[0]), slices.Contains(tags, ours[1])
	img.Tags = slices.DeleteFunc(tags, func(tag string) bool {
		return slices.Contains(ours, tag) || strings.HasPrefix(tag, "<none>") || strings.Contains(tag, "@")
	})
	img.Digests = slices.DeleteFunc(digests, func(digest string) bool {
		repository, _, _ := strings.Cut(digest, "@")
		return repository == "<none>" || slices.ContainsFunc(ours, func(name string) bool {
			return strings.HasPrefix(name, repository+":")
		})
	})
	return img
}

func familiar(names []string) (out []string) {
	for _, name := range names {
		if parsed, err := reference.ParseNormalizedNamed(name); err == nil {
			name = reference.FamiliarString(parsed)
		}
		out = append(out, name)
	}
	return out
}

// RemoveImage removes an image that benchgraph made or pulled, but not its bases. It returns *InUse if something
// needs the image or somebody has named it, and *NoImage if it does not exist.
func (e *Engine) RemoveImage(ctx context.Context, id string) error {
	img, err := e.Image(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case img.Labels[LabelKey] == "" && !img.Brought:
		return fmt.Errorf("image %s is not one of benchgraph's: it stays", id)
	case len(img.Tags) > 0:
		return &InUse{ID: img.ID, Detail: "it is called " + strings.Join(img.Tags, ", ")}
	}
	remove := func(ref string) error {
		_, err := long(ctx, e, "remove image", func(ctx context.Context, a *api) ([]image.DeleteResponse, error) {
			return a.ImageRemove(ctx, ref, image.RemoveOptions{PruneChildren: false})
		})
		return err
	}
	// Without benchgraph's names, a pulled image has only the name of its pull: it is then removed completely or not at
	// all. Another image was pushed under its digests. Removing the last name removes the image.
	names, gone := []string{markOf(img.ID), keptName(img.ID)}, false
	if !img.Brought {
		names = img.Digests
	}
	for _, name := range names {
		if err := remove(name); err != nil && !errdefs.IsNotFound(err) {
			return inUse(img.ID, err)
		}
		gone = true
	}
	err = remove(img.ID)
	switch {
	case err == nil || gone && errdefs.IsNotFound(err):
		return nil
	case errdefs.IsNotFound(err):
		return &NoImage{id}
	}
	if img.Brought {
		if again := e.tag(context.WithoutCancel(ctx), img.ID, markOf(img.ID)); again != nil {
			return again
		}
	}
	return inUse(img.ID, err)
}

// inUse converts a conflict at the removal of an image to *InUse.
func inUse(id string, err error) error {
	if errdefs.IsConflict(err) {
		return &InUse{ID: id, Detail: printable.Excerpt(err.Error())}
	}
	return err
}

// Layer is the part that an image adds to its base.
type Layer struct {
	ID   string // equal for images that share the layer
	Size int64  // bytes; an estimate if the engine also keeps packed layers
}

// LayersOf returns the layers of an image that need space; their sum is Image.Size. Layers that several images share
// have equal IDs.
func (e *Engine) LayersOf(ctx context.Context, img Image) (_ []Layer, err error) {
	if len(img.Layers) == 0 { // the image comes from a list, which has no layers
		if img, err = e.Image(ctx, img.ID); err != nil {
			return nil, err
		}
	}
	history, err := call(ctx, e, "read the history of an image",
		func(ctx context.Context, a *api) ([]image.HistoryResponseItem, error) {
			return a.ImageHistory(ctx, img.ID)
		})
	if err != nil {
		return nil, err
	}
	all := layers(img.Layers, history)
	sum := int64(0)
	for _, l := range all {
		sum += l.Size
	}
	for i := range all {
		if sum != img.Size { // the history has only the sizes of unpacked layers
			all[i].Size = int64(float64(all[i].Size) / float64(sum) * float64(img.Size))
		}
	}
	return all, nil
}

// emptyLayer is the digest of a layer without files.
const emptyLayer = "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"

// layers returns the steps of an image's history that have a size, with IDs from the digests of their layers. Steps
// and digests are separate lists, and steps without files may be missing in one of them: if the lists do not match,
// the ID of a step is a hash of the history up to it.
func layers(digests []string, history []image.HistoryResponseItem) []Layer {
	digests = slices.DeleteFunc(slices.Clone(digests), func(d string) bool { return d == emptyLayer })
	var out []Layer
	sum := sha256.New()
	fmt.Fprintln(sum, digests[:min(1, len(digests))])
	for _, step := range slices.Backward(history) { // the history begins with the last step
		fmt.Fprintf(sum, "%d %q %d\n", step.Created, step.CreatedBy, step.Size)
		if step.Size > 0 {
			out = append(out, Layer{hex.EncodeToString(sum.Sum(nil)), step.Size})
		}
	}
	if len(out) == len(digests) {
		sum.Reset()
		for i := range out { // the ID covers the layers below, too
			fmt.Fprintln(sum, digests[i])
			out[i].ID = hex.EncodeToString(sum.Sum(nil))
		}
	}
	return out
}

// IsFull reports whether an engine failed because its disk is full.
func IsFull(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Err != nil && isFull(e.Err.Error())
}

func isFull(text string) bool { return says(text, noSpace) }

// Space returns the free and the total bytes of the file system with the engine's images. known is false for an
// engine on another machine. The engine is asked for the directory once.
func (e *Engine) Space(ctx context.Context) (free, total int64, known bool, err error) {
	if !strings.HasPrefix(e.Host(), "unix://") {
		return 0, 0, false, nil
	}
	root := e.root.Load()
	if root == nil {
		info, err := e.Info(ctx)
		if err != nil {
			return 0, 0, false, err
		}
		root = &info.Root
		e.root.Store(root)
	}
	if *root == "" {
		return 0, 0, false, nil
	}
	var st unix.Statfs_t
	if err := unix.Statfs(*root, &st); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return 0, 0, false, nil // the engine is in a virtual machine, or this user may not enter the directory
	} else if err != nil {
		return 0, 0, false, err
	}
	size := int64(st.Bsize)
	return int64(st.Bavail) * size, int64(st.Blocks) * size, true, nil
}
