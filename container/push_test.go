package container_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/container/registry"
)

func TestPush(t *testing.T) {
	t.Parallel()
	e := open(t, containertest.Engine(t), nil)
	f := newFaults(t)
	ours, other := imported(t, e, 100_000, nil), imported(t, e, 10, map[string]string{"other": "1"})
	ref := f.Host + "/" + repository(t)
	var told []container.Progress
	digest, err := e.Push(t.Context(), ours.ID, ref, func(p container.Progress) { told = append(told, p) })
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := name.ParseReference(ref + ":latest")
	if err != nil {
		t.Fatal(err)
	}
	there, err := remote.Image(parsed)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := there.Digest(); err != nil || d.String() != digest {
		t.Error(d, err, digest)
	}
	// containerd's store knows images by their manifests, others by their configurations
	if id, err := there.ConfigName(); err != nil || id.String() != ours.ID && digest != ours.ID {
		t.Error(id, err)
	}
	if len(told) == 0 {
		t.Log("the engine tells no progress, as Podman")
	} else if last := told[len(told)-1]; // a fast push may tell no bytes
	last.Phase != "sending" || last.Bytes != last.Total || last.Total > 0 && last.Total < 100_000 {
		t.Errorf("%+v", last)
	}

	// The image is there as before, and the name is free again.
	again, err := e.Image(t.Context(), ours.ID)
	if err != nil || len(again.Tags) != 0 {
		t.Errorf("%+v, %v", again, err)
	}
	if img, err := e.Image(t.Context(), ref); err == nil {
		t.Errorf("%+v", img)
	}

	// A name that somebody uses is given back.
	if _, err := e.Push(t.Context(), other.ID, ref, nil); err != nil {
		t.Fatal(err)
	}
	containertest.Tag(t, e, other.ID, ref)
	if _, err := e.Push(t.Context(), ours.ID, ref, nil); err != nil {
		t.Fatal(err)
	}
	if img, err := e.Image(t.Context(), ref); err != nil || img.ID != other.ID ||
		!slices.Contains(img.Tags, ref+":latest") {
		t.Errorf("%+v, %v", img, err)
	}
	containertest.RemoveImage(t, e, ref+":latest")
}

func TestPushWithAFaultyRegistry(t *testing.T) {
	t.Parallel()
	shared := containertest.Engine(t)
	for name, c := range map[string]struct {
		spoil  func(f *faults) func(http.ResponseWriter, *http.Request) bool
		reason registry.Reason // empty: it goes well all the same
	}{
		"breaks off": {func(f *faults) func(http.ResponseWriter, *http.Request) bool {
			return times(1, []string{"PATCH", "/blobs/uploads/"}, breakAnswer)
		}, ""},
		"fails once": {func(f *faults) func(http.ResponseWriter, *http.Request) bool {
			return times(1, []string{"PUT", "/manifests/"}, status(503, "UNAVAILABLE"))
		}, ""},
		"denied": {func(f *faults) func(http.ResponseWriter, *http.Request) bool {
			return times(always, []string{"POST", "/blobs/uploads/"}, status(403, "DENIED"))
		}, registry.Denied},
		"unauthorized": {func(f *faults) func(http.ResponseWriter, *http.Request) bool {
			return times(always, nil, status(401, "UNAUTHORIZED", "WWW-Authenticate", `Basic realm="r"`))
		}, registry.Denied},
		"keeps something else": {func(f *faults) func(http.ResponseWriter, *http.Request) bool {
			return times(always, []string{"GET", "/manifests/"}, f.other)
		}, registry.Damaged},
		"loses it": {func(f *faults) func(http.ResponseWriter, *http.Request) bool {
			return times(always, []string{"GET", "/manifests/"}, status(404, "MANIFEST_UNKNOWN"))
		}, registry.Missing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := open(t, shared, nil)
			f := newFaults(t)
			img := imported(t, e, 1000, nil)
			f.set(c.spoil(f))
			ref := f.Host + "/" + repository(t) + ":v1"
			digest, err := e.Push(t.Context(), img.ID, ref, nil)
			silent := c.reason == registry.Denied && containertest.IsPodman(t, e) // it does not say why
			if refused, ok := errors.AsType[*registry.Error](err); c.reason == "" && err != nil ||
				c.reason != "" && (!ok || refused.Reason != c.reason && !silent) {
				t.Errorf("%s, %v", digest, err)
			}
			if again, err := e.Image(t.Context(), img.ID); err != nil || len(again.Tags) != 0 {
				t.Errorf("%+v, %v", again, err)
			}
		})
	}
}

// breakAnswer closes the connection without an answer.
func breakAnswer(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestPushRefuses(t *testing.T) {
	t.Parallel()
	e := containertest.Engine(t)
	for _, ref := range []string{"No Name", "x@sha256:" + strings.Repeat("0", 64)} {
		if _, err := e.Push(context.Background(), "sha256:0", ref, nil); err == nil {
			t.Error(ref)
		}
	}
	if _, err := e.Push(context.Background(), "sha256:"+strings.Repeat("0", 64), "127.0.0.1:1/x",
		nil); !container.IsNotFound(err) {
		t.Error(err)
	}
}
