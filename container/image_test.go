package container_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/google/go-cmp/cmp"
)

var quiet = log.New(io.Discard, "", 0)

// open opens an engine whose registries are soon lost patience with.
func open(t *testing.T, e *container.Engine, environ map[string]string) *container.Engine {
	t.Helper()
	if environ == nil {
		environ = map[string]string{}
	}
	environ["DOCKER_HOST"] = e.Host()
	return container.Open(container.Options{Environ: environ, State: e.State(), Patience: 5 * time.Second,
		Pause: 10 * time.Millisecond})
}

// rootOf is a tar with one file of random bytes, so that no two are the same.
func rootOf(t *testing.T, size int) io.Reader {
	t.Helper()
	random := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte([]byte(t.Name() + strings.Repeat("x", 32))[:32])).Read(random)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Name: "data", Mode: 0o644, Size: int64(size)}); err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(random)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// imported imports an image with labels that is removed with the test.
func imported(t *testing.T, e *container.Engine, size int, labels map[string]string) container.Image {
	t.Helper()
	all := map[string]string{container.LabelKey: t.Name()}
	maps.Copy(all, labels)
	img, err := e.Import(t.Context(), rootOf(t, size), all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := e.RemoveImage(context.Background(), img.ID)
		if _, gone := errors.AsType[*container.NoImage](err); err != nil && !gone {
			t.Error(err)
		}
	})
	return img
}

// An imported image has the labels that it was given, however odd the words are.
func TestImport(t *testing.T) {
	t.Parallel()
	e := containertest.Engine(t)
	labels := map[string]string{"org.opencontainers.image.title": "quote \" back\\slash $HOME ${x:-y} 'single' #no " +
		"<<EOF \\", "empty": "", "a.b/c": "ünï"}
	if containertest.IsPodman(t, e) { // which keeps what quotes a character
		labels["org.opencontainers.image.title"] = "no such words"
	}
	img := imported(t, e, 10, labels)
	again, err := e.Image(t.Context(), img.ID)
	if err != nil {
		t.Fatal(err)
	}
	labels[container.LabelKey] = t.Name()
	if d := cmp.Diff(img, again) + cmp.Diff(labels, img.Labels); d != "" {
		t.Error(d)
	}
	if len(img.Layers) != 1 || img.Size < 10 ||
		time.Since(img.Created) > time.Hour {
		t.Errorf("%+v", img)
	}
}

func TestImportRefusesInjectedInstructions(t *testing.T) {
	t.Parallel()
	e := containertest.Engine(t)
	for _, value := range []string{"b\nENV x=y", "b\rUSER root"} {
		if img, err := e.Import(t.Context(), strings.NewReader(""), map[string]string{"a": value}); err == nil {
			t.Errorf("%q: made %s", value, img.ID)
		}
	}
}

func TestImagesAreThoseWithOurKey(t *testing.T) {
	t.Parallel()
	e := containertest.Engine(t)
	foreign := containertest.Busybox(t, e)
	ours := imported(t, e, 100, map[string]string{container.LabelNode: "image.x"})
	images, err := e.Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(images, func(i container.Image) bool { return i.ID == ours.ID })
	if i < 0 {
		t.Fatalf("%s is not among %+v", ours.ID, images)
	}
	if got := images[i]; got.Labels[container.LabelNode] != "image.x" || got.Size != ours.Size ||
		got.Created.Unix() != ours.Created.Unix() || len(got.Tags)+len(got.Digests) > 0 {
		t.Errorf("%+v", got)
	}
	if slices.ContainsFunc(images, func(i container.Image) bool {
		return i.ID == foreign || i.Labels[container.LabelKey] == ""
	}) {
		t.Errorf("%+v", images)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	e := containertest.Engine(t)
	foreign := containertest.Busybox(t, e)
	if err := e.RemoveImage(t.Context(), foreign); err == nil || !strings.Contains(err.Error(), "stays") {
		t.Error(err)
	}
	if _, err := e.Image(t.Context(), foreign); err != nil {
		t.Error(err)
	}
	ours := imported(t, e, 10, nil)
	if err := e.RemoveImage(t.Context(), ours.ID); err != nil {
		t.Error(err)
	}
	err := e.RemoveImage(t.Context(), ours.ID)
	if missing, ok := errors.AsType[*container.NoImage](err); !ok || missing.Ref != ours.ID {
		t.Error(err)
	}
}

func TestSpace(t *testing.T) {
	t.Parallel()
	e := containertest.Engine(t)
	free, total, known, err := e.Space(t.Context())
	if err != nil || !known || free <= 0 || free > total {
		t.Error(free, total, known, err)
	}
	remote := container.Open(container.Options{Environ: map[string]string{"DOCKER_HOST": "tcp://127.0.0.1:1"}})
	if _, _, known, err := remote.Space(t.Context()); known || err != nil {
		t.Error(known, err)
	}
}
