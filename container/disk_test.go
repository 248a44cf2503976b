package container_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	api "github.com/docker/docker/api/types/container"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
)

// A pulled image can be removed, unless somebody else uses it. If the removal fails, the image stays marked.
func TestPulledImagesAreRemovable(t *testing.T) {
	d := containertest.NewDaemon(t, containertest.DaemonOptions{})
	e := d.Engine()
	f := newFaults(t)
	p := publish(t, f.Host)
	img, err := e.Pull(t.Context(), p.ref, p.digest, nil)
	if err != nil {
		t.Fatal(err)
	}
	if brought, err := e.Brought(t.Context()); err != nil || len(brought) != 1 || brought[0].ID != img.ID ||
		!brought[0].Brought || !img.Brought || len(img.Tags) > 0 {
		t.Fatalf("%+v, %v", brought, err)
	}
	refused := func(why string) {
		t.Helper()
		err := e.RemoveImage(t.Context(), img.ID)
		used, ok := errors.AsType[*container.InUse](err)
		if !ok || !strings.Contains(used.Detail, why) {
			t.Fatalf("%v, want one because of %q", err, why)
		}
		now, err := e.Image(t.Context(), img.ID)
		if err != nil || !now.Brought || !slices.Contains(now.Digests, img.Digests[0]) {
			t.Fatalf("%+v, %v", now, err)
		}
	}
	containertest.Tag(t, e, img.ID, "somebody/else:v1")
	refused("somebody/else:v1")
	containertest.RemoveImage(t, e, "somebody/else:v1")

	if _, err := e.Create(t.Context(), "user", &api.Config{Image: img.ID, Cmd: []string{"none"}}, nil); err != nil {
		t.Fatal(err)
	}
	refused("container")
	if err := e.Remove(t.Context(), "user"); err != nil {
		t.Fatal(err)
	}

	if err := e.RemoveImage(t.Context(), img.ID); err != nil {
		t.Fatal(err)
	}
	if _, missing := errors.AsType[*container.NoImage](e.RemoveImage(t.Context(), img.ID)); !missing {
		t.Error("it is still there")
	}
}

// An image that was in the engine before a pull does not count as pulled.
func TestForeignImagesStay(t *testing.T) {
	d := containertest.NewDaemon(t, containertest.DaemonOptions{})
	e := d.Engine()
	f := newFaults(t)
	p := publish(t, f.Host)
	containertest.Pull(t, e, p.ref)
	img, err := e.Pull(t.Context(), p.ref, p.digest, nil)
	if err != nil || img.Brought {
		t.Fatalf("%+v, %v", img, err)
	}
	if brought, err := e.Brought(t.Context()); err != nil || len(brought) > 0 {
		t.Errorf("%+v, %v", brought, err)
	}
	if err := e.RemoveImage(t.Context(), img.ID); err == nil || !strings.Contains(err.Error(), "stays") {
		t.Error(err)
	}
}

// A layer shared by two images has one ID, even with steps without files in between.
func TestLayersAreCountedOnce(t *testing.T) {
	e := containertest.NewDaemon(t, containertest.DaemonOptions{}).Engine()
	f := newFaults(t)
	base := platformImage(t, "amd64", 2)
	bring := func(tag string, img v1.Image) map[string]int64 {
		t.Helper()
		ref := f.Host + "/" + repository(t) + ":" + tag
		got, err := e.Pull(t.Context(), ref, containertest.Push(t, ref, img), nil)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := e.LayersOf(t.Context(), container.Image{ID: got.ID})
		if err != nil {
			t.Fatal(err)
		}
		bytes := map[string]int64{}
		sum := int64(0)
		for _, l := range layers {
			bytes[l.ID] = l.Size
			sum += l.Size
		}
		// whole bytes of each
		if sum > got.Size || sum < got.Size-int64(len(layers)) || len(bytes) != len(layers) {
			t.Errorf("%s: %v, %d bytes in all", tag, layers, got.Size)
		}
		return bytes
	}
	upon := func(img v1.Image, steps ...mutate.Addendum) v1.Image {
		t.Helper()
		more, err := mutate.Append(img, steps...)
		if err != nil {
			t.Fatal(err)
		}
		return more
	}
	layer := func() mutate.Addendum {
		t.Helper()
		l, err := random.Layer(32<<10, "application/vnd.docker.image.rootfs.diff.tar.gzip")
		if err != nil {
			t.Fatal(err)
		}
		return mutate.Addendum{Layer: l, History: v1.History{CreatedBy: "RUN make"}} // as twins in all but content
	}
	env := mutate.Addendum{History: v1.History{CreatedBy: "ENV a=b", EmptyLayer: true}}
	under := bring("base", base)
	a, b := bring("a", upon(base, env, layer(), env)), bring("b", upon(base, env, layer()))
	shared := 0
	for id, size := range a {
		if b[id] > 0 && under[id] > 0 {
			shared++
		}
		if size > b[id]+b[id]/2 && b[id] > 0 {
			t.Errorf("%s has %d or %d bytes", id, size, b[id])
		}
	}
	if shared != len(under) || len(a) != 3 || len(b) != 3 {
		t.Errorf("%v and %v share %d layers of %v", a, b, shared, under)
	}
}

// A disk that is full is told as that, whatever the engine was at.
func TestFullDisk(t *testing.T) {
	const size = 48 << 20
	d := containertest.NewDaemon(t, containertest.DaemonOptions{Root: containertest.Disk(t, size)})
	e := d.Engine()
	free, total, known, err := e.Space(t.Context())
	if err != nil || !known || total != size || free <= size/2 || free >= size {
		t.Errorf("%d of %d bytes, %t, %v", free, total, known, err)
	}
	if _, err := e.Import(t.Context(), rootOf(t, 64<<20), nil); !container.IsFull(err) {
		t.Errorf("import: %v", err)
	}
}
