// Package inventory lists the images that benchgraph made.
package inventory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/container"
)

// List holds the images of benchgraph in the engine. The engine is asked once for a plan; images that are made later
// are added.
type List struct {
	mu    sync.Mutex
	asked bool
	err   error
	byKey map[string][]string // IDs by chain key, oldest first
	ids   map[string]bool
	of    map[cache.Key]string // by key of a result: the ID of its image, once it was checked
}

// Forget makes the next Ask ask the engine again.
func (l *List) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = false
}

// Ask asks the engine for its images, unless it has answered already.
func (l *List) Ask(ctx context.Context, e *container.Engine) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked {
		return l.err
	}
	l.byKey, l.ids = map[string][]string{}, map[string]bool{}
	if e == nil {
		return ErrNoEngine
	}
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	all, err := e.Images(ctx)
	for n := 1; n < 3 && err != nil && container.IsNotFound(err); n++ {
		all, err = e.Images(ctx) // an image was removed while the engine listed it
	}
	for _, img := range slices.Backward(all) {
		l.note(img)
	}
	l.asked, l.err = true, err
	return err
}

// listPatience limits the wait for the list of images, as every plan waits for it.
const listPatience = time.Minute

// Has reports whether the engine has an image of benchgraph.
func (l *List) Has(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids[id]
}

// Found notes the image of a result.
func (l *List) Found(result cache.Key, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[cache.Key]string{}
	}
	l.of[result] = id
}

// IDOf returns the ID of a result's image; "" if nobody has checked the image, or the engine did not answer.
func (l *List) IDOf(result cache.Key) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[result]
}

// Add notes a new image.
func (l *List) Add(img container.Image) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey, l.ids = map[string][]string{}, map[string]bool{}
	}
	l.note(img)
}

func (l *List) note(img container.Image) {
	key := img.Labels[container.LabelKey]
	l.byKey[key] = append(l.byKey[key], img.ID)
	l.ids[img.ID] = true
}

// With returns the image with a chain key that was made from the image before, if the engine has it now.
func (l *List) With(
	ctx context.Context, e *container.Engine, key string, before container.Image,
) (img container.Image, found bool, err error) {
	l.mu.Lock()
	known := slices.Clone(l.byKey[key])
	l.mu.Unlock()
	for _, id := range known {
		img, err := e.Image(ctx, id)
		if container.IsNoImage(err) {
			continue
		}
		if err != nil || img.Labels[container.LabelKey] == key && follows(img, before) {
			return img, err == nil, err
		}
	}
	return container.Image{}, false, nil
}

// follows reports whether an image has exactly one layer more than the image before, as each commit adds one. The label
// alone proves nothing, since images that users make from ours inherit it. The layers of a build or an import are
// unknown, so benchgraph names its image.
func follows(img, before container.Image) bool {
	n := len(before.Layers)
	if before.ID == "" {
		return img.Named
	}
	return len(img.Layers) == n+1 && slices.Equal(img.Layers[:n], before.Layers)
}

// ErrNoEngine is the error of Ask without a container engine.
var ErrNoEngine = errors.New("there is no container engine")
