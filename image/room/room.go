// Package room keeps account of the disk of a container engine, which has space for a few images only.
package room

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Room is an engine.Room that holds the images of spans on the disk of the container engine. It makes space by removing
// images of benchgraph that no node needs now, and no others. It is safe for concurrent use once Expect and Begin have
// returned.
//
// The size of an image is known only when the image exists. Until then, the estimate is its size the last time, or
// three times the bytes that its registry sends. A span is held if the disk has the estimated space; if no other span
// is held, it is held in any case, since only the attempt will tell.
type Room struct {
	engine *container.Engine // nil: there is none, and nothing to be held
	limit  int64             // bytes that images of benchgraph's may take; 0: as much as there is
	file   string            // where notes are kept

	mu      sync.Mutex
	parts   map[string][]Part          // by image: what it is made from, itself included
	spans   map[*engine.Span][]string  // their images
	pending map[*engine.Span]bool      // in which something is to be run yet
	held    map[*engine.Span]bool      //
	ids     map[string]map[string]bool // by image: what the engine has for it, and for what it is made from
	there   map[string]bool            // by part: it takes its space already
	brings  map[string]string          // by ID: the part that it is the whole of
	doing   map[string]int64           // by part: bytes that a step under way may still take
	own     map[string]ownImage        // by ID: images of benchgraph's that the engine has
	claims  claims                     // on what is held
	notes   notes
	small   map[string]string // by images: why they can never be there together, as far as was asked

	making sync.Mutex // space is made by one at a time
}

// Part is something of an image that takes space once, however many images are made from it.
type Part struct {
	name  string
	ref   string // under which the engine has it; empty: it is the image itself
	least int64  // bytes that it takes at least
	bytes int64  // that it is expected to take; 0: not known
}

// ownImage is an image that benchgraph made or brought.
type ownImage struct {
	created time.Time
	layers  []container.Layer
}

// notes are the sizes and uses of images in earlier applies. Without them, the estimates are worse.
type notes struct {
	Used  map[string]time.Time `json:"used"`  // by ID of an image: when a span with it was released
	Bytes map[string]int64     `json:"bytes"` // by part: what it took
}

// New returns a room on the disk of an engine, which may be nil: then there is nothing to be held. Images of
// benchgraph's may take limit bytes there; 0: as much as there is. Notes are kept in a file; locks is the directory by
// which the applies of one user leave each other's images alone; empty: they do not.
func New(e *container.Engine, limit int64, file, locks string) *Room {
	r := &Room{
		engine: e, limit: limit, file: file, doing: map[string]int64{}, own: map[string]ownImage{},
		claims: claims{dir: locks, files: map[string]*os.File{}},
	}
	r.Expect(nil, nil)
	if text, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(text, &r.notes) // what cannot be read is not known
	}
	if r.notes.Used == nil {
		r.notes.Used = map[string]time.Time{}
	}
	if r.notes.Bytes == nil {
		r.notes.Bytes = map[string]int64{}
	}
	return r
}

// unpacking is the ratio of the space that an image takes while it is pulled to the bytes that its registry sends.
// Compression shrinks a large image with CUDA to between a third and a half, and the compressed layers stay on the disk
// until they are unpacked.
const unpacking = 3

// Base returns the part of an image that comes from a registry by a reference, with the bytes that the registry sends.
func (r *Room) Base(ref string, sent int64) Part {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := Part{name: "from " + ref, ref: ref, least: sent, bytes: unpacking * sent}
	if took := r.notes.Bytes[p.name]; took > 0 {
		p.least, p.bytes = took, took+sent
	}
	return p
}

// Own returns the part that an image adds to its base.
func (r *Room) Own(image string) Part {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Part{name: image, bytes: r.notes.Bytes[image]}
}

// Expect notes the parts of the images of a graph, and the images that each span holds together. Made later replaces
// the estimates of existing images.
func (r *Room) Expect(parts map[string][]Part, spans map[*engine.Span][]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts, r.spans = parts, spans
	r.pending, r.held = map[*engine.Span]bool{}, map[*engine.Span]bool{}
	r.ids, r.there, r.brings = map[string]map[string]bool{}, map[string]bool{}, map[string]string{}
	r.small = map[string]string{}
}

// Begin reads the images of the engine before a plan is applied. It reports no error if the engine is away: the nodes
// that need the engine do.
func (r *Room) Begin(ctx context.Context, plan *engine.Plan) {
	images := map[string]bool{}
	for i := range plan.Steps {
		if s := &plan.Steps[i]; s.Action == engine.Run {
			for _, span := range s.Node.Spans {
				r.pending[span] = true
				for _, image := range r.spans[span] {
					images[image] = true
				}
			}
		}
	}
	if r.engine != nil && len(images) > 0 && r.find(ctx, slices.Sorted(maps.Keys(images))) == nil {
		_ = r.look(ctx)
	}
}

// TryHold holds the images of a span if there is space for those that are missing.
func (r *Room) TryHold(s *engine.Span) (waitsFor string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.held) > 0 {
		needs, can, known := r.balance(s)
		if known && needs > can {
			return fmt.Sprintf("%s of disk for %s (%s can be had)", sizeText(needs), s.Name, sizeText(max(can, 0)))
		}
	}
	r.held[s] = true
	r.claims.want(r.heldIDs())
	return ""
}

// balance returns the space that spans are expected to need, including one more, and the space that is available.
func (r *Room) balance(more *engine.Span) (needs, can int64, known bool) {
	free, margin, known := r.free(context.Background())
	if !known && r.limit == 0 {
		return 0, 0, false
	}
	counted := map[string]bool{}
	protected := map[string]bool{}
	for _, s := range append(slices.Collect(maps.Keys(r.held)), more) {
		for _, image := range r.spans[s] {
			for _, p := range r.parts[image] {
				if !counted[p.name] && !r.there[p.name] {
					counted[p.name] = true
					needs += p.bytes
				}
			}
		}
		maps.Copy(protected, r.idsOf(r.spans[s]))
	}
	kept, others := r.occupied(protected)
	can = math.MaxInt64
	if known {
		can = free - margin + others
	}
	if r.limit > 0 {
		can = min(can, r.limit-kept)
	}
	return needs, can, true
}

// occupied is what the protected images of benchgraph's take, and what the others take beside them.
func (r *Room) occupied(protected map[string]bool) (kept, others int64) {
	seen := map[string]bool{}
	sum := func(want bool) (bytes int64) {
		for id, image := range r.own {
			if protected[id] != want {
				continue
			}
			for _, l := range image.layers {
				if !seen[l.ID] {
					seen[l.ID] = true
					bytes += l.Size
				}
			}
		}
		return bytes
	}
	kept = sum(true)
	return kept, sum(false)
}

// Release gives up the images of a span. They stay until their space is needed.
func (r *Room) Release(s *engine.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, s)
	delete(r.pending, s)
	now := time.Now()
	for _, image := range r.spans[s] {
		for id := range r.ids[image] {
			r.notes.Used[id] = now
		}
	}
	r.claims.want(r.heldIDs())
	r.save()
}

// heldIDs are the images of the engine that held spans need.
func (r *Room) heldIDs() map[string]bool {
	ids := map[string]bool{}
	for s := range r.held {
		maps.Copy(ids, r.idsOf(r.spans[s]))
	}
	return ids
}

// save writes the notes. It reports no error, since nothing depends on them.
func (r *Room) save() {
	text, err := json.Marshal(r.notes)
	if err != nil {
		return
	}
	_ = fs.Replace(r.file, text)
}

// Uses notes that an image is made from an image of the engine, which may be the whole of a part.
func (r *Room) Uses(image string, img container.Image, p Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.use(image, img.ID)
	if p.ref != "" {
		r.there[p.name], r.brings[img.ID], r.notes.Bytes[p.name] = true, p.name, img.Size
	}
}

func (r *Room) use(image, id string) {
	if r.ids[image] == nil {
		r.ids[image] = map[string]bool{}
	}
	if !r.ids[image][id] {
		r.ids[image][id] = true
		r.claims.want(r.heldIDs())
	}
}

// Made notes that an image is there, as a whole.
func (r *Room) Made(image, id string, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.use(image, id)
	for _, p := range r.parts[image] {
		r.there[p.name] = true
		if p.name != image {
			size -= r.notes.Bytes[p.name]
		}
	}
	r.notes.Bytes[image] = max(size, 0)
}

// TooSmall says why images can never be there together, however much of benchgraph's own goes for them. A plan asks for
// each of the nodes that use a set, and the engine is asked once.
func (r *Room) TooSmall(ctx context.Context, images []string) string {
	if r.engine == nil {
		return ""
	}
	set := strings.Join(images, "\n")
	r.mu.Lock()
	why, asked := r.small[set]
	r.mu.Unlock()
	if !asked {
		why = r.neverFit(ctx, images)
		r.mu.Lock()
		r.small[set] = why
		r.mu.Unlock()
	}
	return why
}

func (r *Room) neverFit(ctx context.Context, images []string) string {
	needs := r.least(images)
	free, _, known := r.free(ctx)
	if (!known || needs <= free) && (r.limit == 0 || needs <= r.limit) {
		return ""
	}
	if r.find(ctx, images) != nil || r.look(ctx) != nil {
		return "" // an engine that does not answer is told of elsewhere
	}
	needs = r.least(images)
	r.mu.Lock()
	defer r.mu.Unlock()
	can := int64(math.MaxInt64)
	if known {
		_, others := r.occupied(r.idsOf(images))
		can = free + others
	}
	if r.limit > 0 {
		can = min(can, r.limit)
	}
	if needs <= can {
		return ""
	}
	text := fmt.Sprintf("needs at least %s of disk for %s, which the container engine does not have, even without "+
		"all other images of benchgraph's: ", sizeText(needs), strings.Join(images, ", "))
	if r.limit > 0 && can == r.limit {
		return text + fmt.Sprintf("BENCHGRAPH_IMAGE_DISK is %s; set it to more", sizeText(r.limit))
	}
	return text + "free some where it keeps its images (docker system df), or let it keep them on a larger disk"
}

// least is what is missing of images takes at least.
func (r *Room) least(images []string) (bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	counted := map[string]bool{}
	for _, image := range images {
		for _, p := range r.parts[image] {
			if !counted[p.name] && !r.there[p.name] {
				counted[p.name] = true
				bytes += p.least
			}
		}
	}
	return bytes
}

// idsOf are the images of the engine that images are, or are made from.
func (r *Room) idsOf(images []string) map[string]bool {
	ids := map[string]bool{}
	for _, image := range images {
		maps.Copy(ids, r.ids[image])
	}
	return ids
}

func (r *Room) find(ctx context.Context, images []string) error {
	for _, image := range images {
		r.mu.Lock()
		parts := slices.Clone(r.parts[image])
		parts = slices.DeleteFunc(parts, func(p Part) bool { return p.ref == "" || r.there[p.name] })
		r.mu.Unlock()
		for _, p := range parts {
			img, err := r.engine.Image(ctx, p.ref)
			if container.IsNoImage(err) {
				continue
			}
			if err != nil {
				return err
			}
			r.Uses(image, img, p)
		}
	}
	return nil
}

// free returns the free space of the engine's disk and the margin to leave; known is false if the engine does not tell.
func (r *Room) free(ctx context.Context) (free, margin int64, known bool) {
	if r.engine == nil {
		return 0, 0, false
	}
	free, total, known, err := r.engine.Space(ctx)
	return free, min(total/50, 2<<30), known && err == nil
}

func sizeText(n int64) string { return units.BytesSize(float64(n)) }
