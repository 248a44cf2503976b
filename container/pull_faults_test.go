//go:build faults

package container_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
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
	if refused, ok := errors.AsType[*container.RegistryError](err); !ok || refused.Reason != container.Failing {
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
