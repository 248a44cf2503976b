package image

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/container"
)

// Forget makes the next question about what the engine has go to it: a plan is made.
func (m *Maker) Forget() { m.made.forget() }

// Has says whether the engine has an image of ours. It is asked once for a plan.
func (m *Maker) Has(ctx context.Context, id string) (bool, error) {
	if err := m.made.ask(ctx, m.Shells.Engine); err != nil {
		return false, err
	}
	return m.made.has(id), nil
}

// IDOf is the image that a result stands for; empty: nobody asked whether it is kept, or the engine did not say.
func (m *Maker) IDOf(result cache.Key) string { return m.made.idOf(result) }

// list has the images that benchgraph made, as the engine lists them: asked once for a plan, and added to as more are made.
type list struct {
	mu    sync.Mutex
	asked bool
	err   error
	byKey map[string]container.Image // by chain key
	ids   map[string]bool
	of    map[cache.Key]string // by key of a result: the ID of its image, which was asked for
}

// forget makes the next question go to the engine.
func (l *list) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = false
}

// ask asks the engine, unless it was asked.
func (l *list) ask(ctx context.Context, e *container.Engine) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked {
		return l.err
	}
	l.byKey, l.ids = map[string]container.Image{}, map[string]bool{}
	if e == nil {
		return ErrNoEngine
	}
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	all, err := e.Images(ctx)
	for n := 1; n < 3 && err != nil && container.IsNotFound(err); n++ {
		all, err = e.Images(ctx) // an image was removed while the engine listed it
	}
	for _, img := range all {
		l.byKey[img.Labels[container.LabelKey]] = img
		l.ids[img.ID] = true
	}
	l.asked, l.err = true, err
	return err
}

// listPatience bounds the wait for the list of images: every plan waits for it.
const listPatience = time.Minute

func (l *list) has(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids[id]
}

// found notes which image a result stands for.
func (l *list) found(result cache.Key, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[cache.Key]string{}
	}
	l.of[result] = id
}

// idOf is the image that a result stands for; empty: nobody asked.
func (l *list) idOf(result cache.Key) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[result]
}

// add notes an image that was made.
func (l *list) add(img container.Image) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey, l.ids = map[string]container.Image{}, map[string]bool{}
	}
	l.byKey[img.Labels[container.LabelKey]] = img
	l.ids[img.ID] = true
}

// with finds the image with a chain key, and makes sure that the engine has it now.
func (l *list) with(ctx context.Context, e *container.Engine, key string) (container.Image, bool, error) {
	l.mu.Lock()
	known, ok := l.byKey[key]
	l.mu.Unlock()
	if !ok {
		return container.Image{}, false, nil
	}
	img, err := e.Image(ctx, known.ID)
	if container.IsNoImage(err) {
		return container.Image{}, false, nil
	}
	return img, err == nil && img.Labels[container.LabelKey] == key, err
}

// ErrNoEngine is the error of asking an engine that is not there.
var ErrNoEngine = errors.New("there is no container engine")

// shortID is an image's ID as people write it.
func shortID(id string) string {
	hex := strings.TrimPrefix(id, "sha256:")
	return hex[:min(len(hex), 12)]
}
