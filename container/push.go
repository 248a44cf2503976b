package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
	"github.com/opencontainers/go-digest"

	"github.com/benchgraph/benchgraph/container/registry"
)

// Push pushes an image to a registry as REPOSITORY:TAG and returns the digest in the registry. The engine's own names
// do not change. Push retries after broken connections and temporary refusals. Errors are *registry.Error, errors of
// the engine, or the cause of ctx. progress may be nil.
func (e *Engine) Push(ctx context.Context, id, ref string, progress func(Progress)) (dgst string, err error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return "", fmt.Errorf("%q is no name for an image in a registry: %w", ref, err)
	}
	if _, pinned := named.(reference.Digested); pinned {
		return "", fmt.Errorf("%q is no name for an image in a registry: its digest is not known before", ref)
	}
	target := reference.TagNameOnly(named)
	if progress == nil {
		progress = func(Progress) {}
	}
	back, err := e.borrowName(ctx, id, reference.FamiliarString(target))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, back()) }()
	seen := map[string]bool{}
	err = e.retry(ctx, pullAttempts, func(ctx context.Context) (bool, error) {
		w := &pushing{report: progress, has: map[string]int64{}, all: map[string]int64{}, seen: seen}
		err := e.transfer(ctx, "push image", target, func(ctx context.Context, a *api, auth string) (io.ReadCloser,
			error) {
			return a.ImagePush(ctx, target.String(), image.PushOptions{RegistryAuth: auth})
		}, w.hear)
		if err == nil && w.digest == "" {
			err = brokeOff("push image", io.ErrUnexpectedEOF)
		}
		if err == nil {
			err = e.verify(ctx, target, w.digest)
		}
		dgst = w.digest
		return w.moved, err
	}, func(error) { progress(Progress{Phase: "waiting"}) })
	return dgst, err
}

// verify checks that the registry has the pushed image. If the registry cannot be reached from here, verify trusts
// the engine.
func (e *Engine) verify(ctx context.Context, target reference.Named, dgst string) error {
	d, err := digest.Parse(dgst)
	if err != nil {
		return fmt.Errorf("the engine pushed %q: %w", dgst, err)
	}
	pushed, err := reference.WithDigest(reference.TrimNamed(target), d)
	if err != nil {
		return err
	}
	c, err := e.registries(ctx)
	if err != nil {
		return err
	}
	_, err = c.Manifest(ctx, pushed, false)
	if r, ok := errors.AsType[*registry.Error](err); ok && r.Reason == registry.Unreachable {
		return nil
	}
	return err
}

// borrowName gives an image a name temporarily. The returned function restores the name's previous image.
func (e *Engine) borrowName(ctx context.Context, id, name string) (back func() error, err error) {
	before, err := e.Image(ctx, name)
	if err == nil && before.ID == id {
		return func() error { return nil }, nil
	}
	if err != nil && !IsNoImage(err) {
		return nil, err
	}
	// An engine removes an image with its last name.
	if err := e.tag(ctx, id, keptName(id)); err != nil {
		return nil, err
	}
	if err := e.tag(ctx, id, name); err != nil {
		return nil, err
	}
	return func() error {
		ctx := context.WithoutCancel(ctx)
		if before.ID != "" {
			return e.tag(ctx, before.ID, name)
		}
		_, err := call(ctx, e, "take a name back", func(ctx context.Context, a *api) ([]image.DeleteResponse, error) {
			return a.ImageRemove(ctx, name, image.RemoveOptions{PruneChildren: false})
		})
		if IsNotFound(err) {
			return nil
		}
		return err
	}, nil
}

// pushing follows the progress of a push.
type pushing struct {
	report func(Progress)
	has    map[string]int64 // short ID of a layer -> bytes sent
	all    map[string]int64 // short ID of a layer -> total bytes
	seen   map[string]bool  // short IDs of complete layers, also of earlier attempts
	moved  bool             // a layer was completed for the first time
	digest string           // digest of the manifest
}

func (w *pushing) hear(m message) {
	if _, said, ok := strings.Cut(m.Status, ": digest: "); ok {
		w.digest, _, _ = strings.Cut(said, " ")
	}
	if m.ID == "" {
		return
	}
	switch {
	case strings.HasPrefix(m.Status, "Pushing"):
		w.has[m.ID], w.all[m.ID] = m.Detail.Current, max(m.Detail.Total, m.Detail.Current)
	case slices.ContainsFunc([]string{"Pushed", "Layer already exists", "Mounted from"}, func(s string) bool {
		return strings.HasPrefix(m.Status, s)
	}):
		w.has[m.ID] = w.all[m.ID]
		w.moved = w.moved || !w.seen[m.ID]
		w.seen[m.ID] = true
	default:
		return
	}
	p := Progress{Phase: "sending"}
	for id := range w.all {
		p.Bytes += w.has[id]
		p.Total += w.all[id]
	}
	w.report(p)
}
