package room

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/engine"
)

// shared returns a room of 100 bytes. Each of its spans has two images with a common base of 40 bytes, and 10 bytes of
// their own.
func shared(t *testing.T, names ...string) (*Room, map[string]*engine.Span) {
	r := New(nil, 100, t.TempDir()+"/images", t.TempDir()+"/locks")
	parts, sets, spans := map[string][]Part{}, map[*engine.Span][]string{}, map[string]*engine.Span{}
	base := Part{name: "from base", ref: "base", bytes: 40}
	for _, name := range names {
		spans[name] = &engine.Span{Name: name}
		for _, variant := range []string{"/a", "/b"} {
			parts[name+variant] = []Part{{name: name + variant, bytes: 10}, base}
			sets[spans[name]] = append(sets[spans[name]], name+variant)
		}
	}
	r.Expect(parts, sets)
	for _, s := range spans {
		r.pending[s] = true
	}
	return r, spans
}

// has puts an image with layers of 10 bytes each into the engine.
func (r *Room) has(id string, created int, layers ...string) {
	var all []container.Layer
	for _, l := range layers {
		all = append(all, container.Layer{ID: l, Size: 10})
	}
	r.own[id] = ownImage{time.Unix(int64(created), 0), all}
}

func TestSharedPartsAreCountedOnce(t *testing.T) {
	r, spans := shared(t, "x", "y", "z", "w")
	hold := func(name, want string) {
		t.Helper()
		if why := r.TryHold(spans[name]); why != want {
			t.Errorf("%s: %q, want %q", name, why, want)
		}
	}
	hold("x", "") // 40 and 20
	hold("y", "") // 20 more
	hold("z", "") // 20 more, and it is full
	hold("w", "120B of disk for w (100B can be had)")

	// The images of x exist now, and are smaller than expected.
	for i, id := range []string{"x/a", "x/b"} {
		r.has(id, i, "l1", id)
		r.Made(id, id, 20)
	}
	hold("w", "") // 60 more are expected, and 70 are available
	for _, s := range spans {
		r.Release(s)
	}
	if len(r.held) > 0 || len(r.pending) > 0 {
		t.Errorf("%v %v", r.held, r.pending)
	}
	// The next process knows the size.
	if got := New(nil, 100, r.file, "").notes.Bytes["x/a"]; got != 20 {
		t.Errorf("x/a takes %d bytes", got)
	}
}

// The first span is tried, however large it is.
func TestTheFirstSpanIsHeldInAnyCase(t *testing.T) {
	r, spans := shared(t, "x", "y")
	r.limit = 10
	if why := r.TryHold(spans["x"]); why != "" {
		t.Error(why)
	}
	if why := r.TryHold(spans["y"]); why == "" {
		t.Error("y is held as well")
	}
}

func TestOrderOfRemoval(t *testing.T) {
	r, spans := shared(t, "held", "later", "done")
	for i, id := range []string{"held/a", "later/a", "done/a", "done/b", "old parent", "old child", "used long ago",
		"used lately"} {
		r.has(id, i, "l", id)
		if strings.Contains(id, "/") {
			r.Made(id, id, 20)
		}
	}
	r.Uses("held/b", container.Image{ID: "held parent"}, Part{})
	r.has("held parent", 9)
	r.notes.Used["used long ago"] = time.Unix(100, 0)
	r.notes.Used["used lately"] = time.Unix(200, 0)
	if why := r.TryHold(spans["held"]); why != "" {
		t.Fatal(why)
	}
	if why := r.TryHold(spans["done"]); why != "" {
		t.Fatal(why)
	}
	r.Release(spans["done"])
	want := []string{"old child", "old parent", "used long ago", "used lately", "done/b", "done/a", "later/a"}
	if got := r.victims(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// No other apply removes an image that one apply holds.
func TestAppliesLeaveEachOthersImagesAlone(t *testing.T) {
	one, spans := shared(t, "x", "y")
	other := New(nil, 0, t.TempDir()+"/images", one.claims.dir)
	free := func(id string, want bool) {
		t.Helper()
		release, ok := other.claims.alone(id)
		if ok != want {
			t.Errorf("%s may be removed: %t", id, ok)
		}
		if ok {
			release()
		}
	}
	one.Made("x/a", "sha256:xa", 1)
	one.Made("y/a", "sha256:ya", 1)
	free("sha256:xa", true)
	if why := one.TryHold(spans["x"]); why != "" {
		t.Fatal(why)
	}
	free("sha256:xa", false)
	free("sha256:ya", true)
	one.Made("x/b", "sha256:xb", 1) // while the span is held
	free("sha256:xb", false)
	if _, ok := one.claims.alone("sha256:ya"); !ok {
		t.Error("what nobody holds cannot be removed")
	}
	free("sha256:ya", false) // it is being removed
	one.Release(spans["x"])
	free("sha256:xa", true)
	free("sha256:xb", true)
	if len(one.claims.files) > 0 {
		t.Errorf("%v", one.claims.files)
	}
}
