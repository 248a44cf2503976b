//go:build faults

package container_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/container/registry"
	"github.com/benchgraph/benchgraph/failure"
)

// A layer that never comes is given up, although the other layers come each time: an engine that fails keeps none of
// them.
func TestPullGivesUpALayerThatNeverComes(t *testing.T) {
	t.Parallel()
	e := open(t, impatient(t), nil)
	f := newFaults(t)
	p := publish(t, f.Host)
	f.set(times(always, []string{"GET", "/blobs/" + p.layers[1]}, f.breakOff(0)))
	img, err := e.Pull(t.Context(), p.ref, p.digest, nil)
	if refused, ok := errors.AsType[*registry.Error](err); !ok || refused.Reason != registry.Failing {
		t.Errorf("%+v, %v", img, err)
	}
}

// A registry that falls silent in the middle of a layer is given up. It is not asked again at once, as the engine would
// go on to wait for the same answer.
func TestPullGivesUpSilence(t *testing.T) {
	t.Parallel()
	d := containertest.NewDaemon(t, containertest.DaemonOptions{})
	e := container.Open(container.Options{Environ: map[string]string{"DOCKER_HOST": d.Host()}, State: d.State,
		Patience: 2 * time.Second})
	f := newFaults(t)
	p := publish(t, f.Host)
	f.set(times(always, []string{"GET", "/blobs/" + p.layers[1]}, hang))
	img, err := e.Pull(t.Context(), p.ref, p.digest, nil)
	if err == nil || !strings.Contains(err.Error(), "nothing came for 20s") ||
		container.Class(err) != failure.Transient {
		t.Errorf("%+v, %v", img, err)
	}
	if n := f.count("GET", p.layers[1]); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// An engine that is killed amidst a pull and comes back has the image in the end.
func TestPullOutlivesTheEngine(t *testing.T) {
	t.Parallel()
	d := containertest.NewDaemon(t, containertest.DaemonOptions{})
	e := container.Open(container.Options{Environ: map[string]string{"DOCKER_HOST": d.Host()}, State: d.State})
	f := newFaults(t)
	p := publish(t, f.Host)
	var once sync.Once
	f.set(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, p.layers[1]) {
			return false
		}
		first := false
		once.Do(func() {
			first = true
			d.Kill()
			go d.Start()
		})
		return first
	})
	img, err := e.Pull(t.Context(), p.ref, p.digest, nil)
	if err != nil || len(img.Layers) != 3 {
		t.Errorf("%+v, %v", img, err)
	}
}

// An engine that is killed amidst a build is the reason for its end; the next build goes well.
func TestBuildTellsOfTheEnginesEnd(t *testing.T) {
	t.Parallel()
	d := containertest.NewDaemon(t, containertest.DaemonOptions{})
	e := d.Engine()
	begun := make(chan struct{})
	dir := project(t, map[string]string{"Dockerfile": "FROM busybox\nRUN echo begun; sleep 5.0625\n"})
	killed := make(chan struct{})
	go func() {
		<-begun
		d.Kill()
		close(killed)
	}()
	_, _, err := build(t.Context(), t, e, dir, func(s *container.BuildSpec) { s.Log = onText{"begun\n", begun} })
	if !container.IsGone(err) {
		t.Error(err)
	}
	if c := container.Class(err); c != failure.Infra && c != failure.Transient {
		t.Error(c)
	}
	<-killed
	d.Start()
	if img, log, err := build(t.Context(), t, e, dir, nil); err != nil {
		t.Errorf("%+v, %v\n%s", img, err, log)
	}
	for deadline := time.Now().Add(30 * time.Second); running(t, "sleep\x005.0625"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("its command still runs")
		}
	}
}

// large puts an image with one layer of so many bytes, which cannot be compressed, into a registry.
func large(t *testing.T, host string, size int) published {
	t.Helper()
	random := make([]byte, size)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(t.Name()))).Read(random)
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	err := w.WriteHeader(&tar.Header{Name: "data", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(size)})
	if err == nil {
		_, err = w.Write(random)
	}
	var layer v1.Layer
	if err = errors.Join(err, w.Close()); err == nil {
		layer, err = tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(files.Bytes())), nil
		}, tarball.WithCompressionLevel(gzip.NoCompression))
	}
	var img v1.Image
	if err == nil {
		img, err = mutate.AppendLayers(platformImage(t, "amd64", 1), layer)
	}
	var m *v1.Manifest
	if err == nil {
		m, err = img.Manifest()
	}
	if err != nil {
		t.Fatal(err)
	}
	p := published{ref: host + "/" + repository(t) + ":v1"}
	p.digest = containertest.Push(t, p.ref, img)
	for _, l := range m.Layers {
		p.size += l.Size
		p.layers = append(p.layers, l.Digest.String())
	}
	return p
}

// counted counts the bytes of a body.
type counted struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

// Unwrap leads to the connection.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// A proxy breaks off again and again in the middle of a large layer. The pull goes on where it was, and ends.
func TestPullOfALargeLayerThatBreaksOffSeveralTimes(t *testing.T) {
	t.Parallel()
	const size, breaks = 300 << 20, 3
	e := open(t, containertest.Engine(t), nil)
	f := newFaults(t)
	p := large(t, f.Host, size)
	var sent atomic.Int64
	spoil := times(breaks, []string{"GET", "/blobs/" + p.layers[1]}, func(w http.ResponseWriter, r *http.Request) {
		f.breakOff(70<<20)(&counted{w, &sent}, r)
	})
	f.set(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case spoil(w, r):
		case r.Method == "GET" && strings.Contains(r.URL.Path, p.layers[1]):
			f.proxy.ServeHTTP(&counted{w, &sent}, r)
		default:
			return false
		}
		return true
	})
	var last container.Progress
	img, err := e.Pull(t.Context(), p.ref, p.digest, func(p container.Progress) { last = p })
	if err != nil {
		t.Fatal(err)
	}
	dropped(t, e, strings.TrimSuffix(p.ref, ":v1")+"@"+p.digest)
	if n := f.count("GET", "/blobs/"+p.layers[1]); n != breaks+1 || len(img.Layers) != 2 {
		t.Errorf("asked %d times: %+v", n, img)
	}
	if n := sent.Load(); n > size*5/4 {
		t.Errorf("%d bytes were sent for %d: the layer began anew", n, size)
	}
	if last.Bytes != p.size || last.Total != p.size {
		t.Errorf("%+v of %d", last, p.size)
	}
}

// A large layer that always breaks off is given up, and it is told what happened.
func TestPullGivesUpALargeLayerThatAlwaysBreaksOff(t *testing.T) {
	t.Parallel()
	e := open(t, impatient(t), nil)
	f := newFaults(t)
	p := large(t, f.Host, 200<<20)
	f.set(times(always, []string{"GET", "/blobs/" + p.layers[1]}, f.breakOff(60<<20)))
	img, err := e.Pull(t.Context(), p.ref, p.digest, nil)
	refused, ok := errors.AsType[*registry.Error](err)
	if !ok || refused.Reason != registry.Failing || container.Class(err) != failure.Transient ||
		!strings.Contains(err.Error(), p.digest) || !strings.Contains(refused.Remedy, "the connection broke off") {
		t.Errorf("%+v, %v (%s)", img, err, container.Class(err))
	}
}
