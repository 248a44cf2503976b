// Package inventory knows the images that benchgraph made, as the container engine lists them.
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

// List has the images that benchgraph made, as the engine lists them: asked once for a plan, and added to as more are
// made.
type List struct {
	mu    sync.Mutex
	asked bool
	err   error
	byKey map[string][]string // IDs by chain key, those listed first that the engine lists last: the oldest
	ids   map[string]bool
	of    map[cache.Key]string // by key of a result: the ID of its image, which was asked for
}

// Forget makes the next question go to the engine.
func (l *List) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = false
}

// Ask asks the engine, unless it was asked.
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

// listPatience bounds the wait for the list of images: every plan waits for it.
const listPatience = time.Minute

// Has reports whether the engine has an image of ours.
func (l *List) Has(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids[id]
}

// Found notes which image a result stands for.
func (l *List) Found(result cache.Key, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[cache.Key]string{}
	}
	l.of[result] = id
}

// IDOf is the image that a result stands for; empty: nobody asked whether it is kept, or the engine did not say.
func (l *List) IDOf(result cache.Key) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[result]
}

// Add notes an image that was made.
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

// With finds the image with a chain key that was made from the image before, and makes sure that the engine has it now.
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

// follows reports whether an image has one layer more than the image before, as each commit adds one. The label alone
// is no proof: an image that somebody makes from one of ours inherits its labels. The layers of a Dockerfile are not
// known, but what somebody makes has a name, and an image that we build has none but ours.
func follows(img, before container.Image) bool {
	n := len(before.Layers)
	if before.ID == "" {
		return len(img.Tags)+len(img.Digests) == 0
	}
	return len(img.Layers) == n+1 && slices.Equal(img.Layers[:n], before.Layers)
}

// ErrNoEngine is the error of asking an engine that is not there.
var ErrNoEngine = errors.New("there is no container engine")
