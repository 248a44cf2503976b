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
)

// broughtMark is the repository of the names that mark pulled images, since images from a registry cannot be labelled.
// A name tells that benchgraph pulled the image, never which image it is.
const broughtMark = "benchgraph/brought"

func markOf(id string) string { return broughtMark + ":" + strings.TrimPrefix(id, "sha256:") }

// mark notes that benchgraph pulled an image, so that it may be removed when its space is needed.
func (e *Engine) mark(ctx context.Context, id string) error {
	return e.do(ctx, "mark image", func(ctx context.Context, a *api) error { return a.ImageTag(ctx, id, markOf(id)) })
}

// Brought lists the images that benchgraph brought from registries. It is one question to the engine.
func (e *Engine) Brought(ctx context.Context) ([]Image, error) {
	return e.list(ctx, false, filters.Arg("reference", broughtMark))
}

// called gives an image its names: neither benchgraph's own, nor the "<none>" of older engines, nor the digests that
// containerd's store lists among the tags, too. Podman writes docker.io out.
func (img Image) called(tags, digests []string) Image {
	tags, digests = familiar(tags), familiar(digests)
	ours := []string{markOf(img.ID), keptName(img.ID)}
	img.Brought = slices.Contains(tags, ours[0])
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

// RemoveImage removes an image that benchgraph made or pulled, and none of its bases. The error is *InUse if something
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
	if img.Brought {
		// Without them, the image has only the name under which it was pulled, and is removed as a whole or not at all.
		for _, name := range []string{markOf(img.ID), keptName(img.ID)} {
			if err := remove(name); err != nil && !errdefs.IsNotFound(err) {
				return err
			}
		}
	}
	gone := false
	if !img.Brought {
		// By these it was pushed. The last of its names takes it along.
		for _, name := range img.Digests {
			if err := remove(name); err != nil && !errdefs.IsNotFound(err) {
				return inUse(img.ID, err)
			}
			gone = true
		}
	}
	err = remove(img.ID)
	switch {
	case err == nil || gone && errdefs.IsNotFound(err):
		return nil
	case errdefs.IsNotFound(err):
		return &NoImage{id}
	}
	if img.Brought {
		if again := e.mark(context.WithoutCancel(ctx), img.ID); again != nil {
			return again
		}
	}
	return inUse(img.ID, err)
}

// inUse makes of a conflict what it means for the removal of an image.
func inUse(id string, err error) error {
	if errdefs.IsConflict(err) {
		return &InUse{ID: id, Detail: shown(err.Error())}
	}
	return err
}

// Layer is the part that an image adds to its base.
type Layer struct {
	ID   string // equal for images that share it
	Size int64  // bytes; an estimate where the engine keeps packed layers, too
}

// LayersOf returns the layers of an image that take room, Image.Size in all. Those of several images are counted once
// by their IDs.
func (e *Engine) LayersOf(ctx context.Context, img Image) (_ []Layer, err error) {
	if len(img.Layers) == 0 { // it was listed
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
		if sum != img.Size { // the history knows unpacked layers only
			all[i].Size = int64(float64(all[i].Size) / float64(sum) * float64(img.Size))
		}
	}
	return all, nil
}

// emptyLayer is the digest of a layer without files, which adds nothing.
const emptyLayer = "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"

// layers gives the steps of an image's history that take room the digests of what they added. Steps and digests are two
// lists, and steps without files may stand in one only: if they cannot be told apart, the history up to a step stands
// for it.
func layers(digests []string, history []image.HistoryResponseItem) []Layer {
	digests = slices.DeleteFunc(slices.Clone(digests), func(d string) bool { return d == emptyLayer })
	var out []Layer
	sum := sha256.New()
	fmt.Fprintln(sum, digests[:min(1, len(digests))])
	for _, step := range slices.Backward(history) { // they are told from the last to the first
		fmt.Fprintf(sum, "%d %q %d\n", step.Created, step.CreatedBy, step.Size)
		if step.Size > 0 {
			out = append(out, Layer{hex.EncodeToString(sum.Sum(nil)), step.Size})
		}
	}
	if len(out) == len(digests) {
		sum.Reset()
		for i := range out { // what lies below a layer is part of what it is
			fmt.Fprintln(sum, digests[i])
			out[i].ID = hex.EncodeToString(sum.Sum(nil))
		}
	}
	return out
}

// IsFull says whether an engine failed because its disk is full.
func IsFull(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Err != nil && isFull(e.Err.Error())
}

func isFull(text string) bool { return says(text, noSpace) }

// Space is the room on the file system on which the engine keeps images, in bytes. It is known only of an engine of
// this machine, which is asked once where that is.
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
		return 0, 0, false, nil // an engine in a virtual machine, or one whose directory we may not enter
	} else if err != nil {
		return 0, 0, false, err
	}
	size := int64(st.Bsize)
	return int64(st.Bavail) * size, int64(st.Blocks) * size, true, nil
}
