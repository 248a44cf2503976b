// Package room manages the disk of a container engine, which has space for a few images only.
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
	engine *container.Engine // nil: no engine, and nothing to hold
	limit  int64             // bytes for images of benchgraph; 0: no limit
	file   string            // file of the notes

	mu      sync.Mutex
	parts   map[string][]Part          // by image: its parts, its own included
	spans   map[*engine.Span][]string  // addresses of the spans' images
	pending map[*engine.Span]bool      // spans with nodes that are still to run
	held    map[*engine.Span]bool      //
	ids     map[string]map[string]bool // by image: IDs of the image and of its bases in the engine
	there   map[string]bool            // by part: already on the disk
	brings  map[string]string          // by ID: the part that consists of this image
	doing   map[string]int64           // by part: bytes that a running step may still add
	own     map[string]ownImage        // by ID: images of benchgraph in the engine
	claims  claims                     // on the images of held spans
	notes   notes
	small   map[string]string // by set of images: why they never fit together; empty: they may

	making sync.Mutex // only one step makes space at a time
}

// Part is a part of images that is on the disk once, however many images share it.
type Part struct {
	name  string
	ref   string // name in the engine; empty: the image's own part
	least int64  // least size in bytes
	bytes int64  // expected size in bytes; 0: unknown
}

// ownImage is an image that benchgraph made or pulled.
type ownImage struct {
	created time.Time
	layers  []container.Layer
}

// notes are the sizes and uses of images in earlier applies. Without them, the estimates are worse.
type notes struct {
	Used  map[string]time.Time `json:"used"`  // by ID of an image: the last release of a span with it
	Bytes map[string]int64     `json:"bytes"` // by part: its size
}

// New returns a room on the disk of an engine; a nil engine holds nothing. limit is the number of bytes for images of
// benchgraph; 0: no limit. Notes are kept in file. locks is the directory of locks with which the applies of one user
// leave each other's images alone; empty: no locks.
func New(e *container.Engine, limit int64, file, locks string) *Room {
	r := &Room{
		engine: e, limit: limit, file: file, doing: map[string]int64{}, own: map[string]ownImage{},
		claims: claims{dir: locks, files: map[string]*os.File{}},
	}
	r.Expect(nil, nil)
	if text, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(text, &r.notes) // unreadable notes are ignored
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
	if r.engine != nil && len(images) > 0 && r.findBases(ctx, slices.Sorted(maps.Keys(images))) == nil {
		_ = r.readImages(ctx)
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

// balance returns the space that the held spans and one more are expected to need, and the available space.
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

// occupied returns the bytes of benchgraph's protected images, and those that only its other images take.
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

// heldIDs returns the IDs of the images of held spans.
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

// Uses notes that an image is made from an image of the engine, which may be a whole part.
func (r *Room) Uses(image string, img container.Image, p Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteUse(image, img.ID)
	if p.ref != "" {
		r.there[p.name], r.brings[img.ID], r.notes.Bytes[p.name] = true, p.name, img.Size
	}
}

func (r *Room) noteUse(image, id string) {
	if r.ids[image] == nil {
		r.ids[image] = map[string]bool{}
	}
	if !r.ids[image][id] {
		r.ids[image][id] = true
		r.claims.want(r.heldIDs())
	}
}

// Made notes that an image is finished.
func (r *Room) Made(image, id string, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteUse(image, id)
	for _, p := range r.parts[image] {
		r.there[p.name] = true
		if p.name != image {
			size -= r.notes.Bytes[p.name]
		}
	}
	r.notes.Bytes[image] = max(size, 0)
}

// TooSmall returns why images never fit on the disk together, even if all other images of benchgraph are removed; "" if
// they may. A plan asks for each node, and the engine is asked once for each set.
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
	if r.findBases(ctx, images) != nil || r.readImages(ctx) != nil {
		return "" // another call reports an engine that does not answer
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
		"all other images of benchgraph: ", sizeText(needs), strings.Join(images, ", "))
	if r.limit > 0 && can == r.limit {
		return text + fmt.Sprintf("BENCHGRAPH_IMAGE_DISK is %s; set it to more", sizeText(r.limit))
	}
	return text + "free some where it keeps its images (docker system df), or let it keep them on a larger disk"
}

// least returns the least size of the missing parts of images.
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

// idsOf returns the IDs of images and of their bases.
func (r *Room) idsOf(images []string) map[string]bool {
	ids := map[string]bool{}
	for _, image := range images {
		maps.Copy(ids, r.ids[image])
	}
	return ids
}

func (r *Room) findBases(ctx context.Context, images []string) error {
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
