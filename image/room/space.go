package room

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// Within runs a step that adds a part to an image, after making space for it. If the step fails with a full disk, it
// runs again after everything that may be removed has been removed.
func (r *Room) Within(ctx context.Context, log io.Writer, image string, p Part,
	do func() (container.Image, error)) (container.Image, error) {
	if r.engine == nil {
		return do()
	}
	r.mu.Lock()
	there := p.ref != "" && r.there[p.name]
	p.bytes = cmp.Or(p.bytes, r.notes.Bytes[p.name])
	if !there {
		r.doing[p.name] = max(r.doing[p.name], p.bytes)
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.doing, p.name)
	}()
	if !there {
		r.makeSpace(ctx, log, p)
	}
	made, err := do()
	if isFull(err) {
		p.bytes = math.MaxInt64
		if r.makeSpace(ctx, log, p) > 0 {
			made, err = do()
		}
	}
	if isFull(err) {
		return made, r.fullFailure(err)
	}
	if err != nil {
		return made, err
	}
	layers, err := r.engine.LayersOf(ctx, made)
	if err != nil {
		return made, err
	}
	r.Uses(image, made, p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own[made.ID] = ownImage{made.Created, layers}
	return made, nil
}

// isFull reports whether a step failed with a full disk, by the engine's error or by a command's output.
func isFull(err error) bool {
	f, ok := errors.AsType[*engine.Failure](err)
	return container.IsFull(err) || ok && f.Rule == engine.DiskFull
}

// fullFailure returns the failure of a step that found no space. It is retried if other spans hold some space.
func (r *Room) fullFailure(err error) *engine.Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &engine.Failure{Err: err, Retry: &engine.Retry{Attempts: 1}, Failure: failure.Failure{
		Class: failure.Infra, Rule: engine.DiskFull, Stage: "run", Message: err.Error(),
		Remedy: "free some space where the engine keeps its images, or let it keep them on a larger disk, and " +
			"apply again",
	}}
	if said, ok := errors.AsType[*container.Error](err); ok {
		f.Message = said.Doing + ": " + said.Reason
	}
	if len(r.held) > 1 {
		f.Retry = &engine.Retry{Attempts: 6, Backoff: 10 * time.Second}
	}
	return f
}

// makeSpace removes images of benchgraph, least recently used first, until the disk has space for a part and for the
// rest of running steps. Images that later work needs are removed last. It returns the number of removed images.
func (r *Room) makeSpace(ctx context.Context, log io.Writer, p Part) (gone int) {
	if r.engine == nil {
		return 0
	}
	r.making.Lock()
	defer r.making.Unlock()
	if r.enough(ctx, p) {
		return 0
	}
	if err := r.readImages(ctx); err != nil {
		fmt.Fprintf(log, "images that could be removed: %v\n", err)
		return 0
	}
	for {
		before := gone
		for _, id := range r.victims() {
			if r.enough(ctx, p) || ctx.Err() != nil {
				return gone
			}
			if err := r.remove(ctx, log, id); err == nil {
				gone++
			}
		}
		if gone == before { // an image can be removed only after images made from it
			return gone
		}
	}
}

func (r *Room) enough(ctx context.Context, p Part) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	free, margin, known := r.free(ctx)
	needs := p.bytes
	for name, bytes := range r.doing {
		if name != p.name {
			needs = min(needs, math.MaxInt64-bytes) + bytes
		}
	}
	_, all := r.occupied(nil)
	return (!known || free-margin >= needs) && (r.limit == 0 || r.limit-all >= needs)
}

// readImages reads the list of benchgraph's images from the engine.
func (r *Room) readImages(ctx context.Context) error {
	made, err := r.engine.Images(ctx)
	if err != nil {
		return err
	}
	brought, err := r.engine.Brought(ctx)
	if err != nil {
		return err
	}
	now := map[string]ownImage{}
	for _, img := range append(made, brought...) {
		r.mu.Lock()
		known, ok := r.own[img.ID]
		r.mu.Unlock()
		if !ok {
			layers, err := r.engine.LayersOf(ctx, img)
			if container.IsNoImage(err) {
				continue
			}
			if err != nil {
				return err
			}
			known = ownImage{img.Created, layers}
		}
		now[img.ID] = known
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own = now
	return nil
}

// victims returns the removable images, in the order of removal.
func (r *Room) victims() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	held, later := map[string]bool{}, map[string]bool{}
	for s := range r.pending {
		for _, image := range r.spans[s] {
			for id := range r.ids[image] {
				held[id] = held[id] || r.held[s]
				later[id] = true
			}
		}
	}
	var list []string
	for id := range r.own {
		if !held[id] {
			list = append(list, id)
		}
	}
	number := map[bool]int{true: 1}
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(
			cmp.Compare(number[later[a]], number[later[b]]),
			r.notes.Used[a].Compare(r.notes.Used[b]),
			r.own[b].created.Compare(r.own[a].created), // an image comes before its base
			cmp.Compare(a, b))
	})
	return list
}

func (r *Room) remove(ctx context.Context, log io.Writer, id string) error {
	r.mu.Lock()
	release, ok := r.claims.alone(id)
	r.mu.Unlock()
	if !ok {
		return &container.InUse{ID: id, Detail: "another apply needs it"}
	}
	defer release()
	err := r.engine.RemoveImage(ctx, id)
	if err != nil && !container.IsNoImage(err) {
		if _, needed := errors.AsType[*container.InUse](err); !needed {
			fmt.Fprintf(log, "image %s cannot be removed to make space: %v\n", id, err)
		}
		return err
	}
	fmt.Fprintf(log, "image %s was removed to make space\n", id)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.own, id)
	delete(r.notes.Used, id)
	delete(r.there, r.brings[id])
	for image, ids := range r.ids {
		if ids[id] {
			delete(ids, id)
			delete(r.there, image)
		}
	}
	return nil
}
