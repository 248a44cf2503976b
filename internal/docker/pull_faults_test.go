//go:build faults

package docker_test

import (
	"errors"
	"testing"

	"github.com/benchgraph/benchgraph/internal/docker"
)

// A layer that never comes is given up, although the other layers come each time: an engine that fails keeps none of them.
func TestPullGivesUpALayerThatNeverComes(t *testing.T) {
	t.Parallel()
	e := open(t, impatient(t), nil)
	f := newFaults(t)
	p := publish(t, f.Host)
	f.set(times(always, []string{"GET", "/blobs/" + p.layers[1]}, f.breakOff(0)))
	img, err := e.Pull(t.Context(), p.ref, p.digest, nil)
	if refused, ok := errors.AsType[*docker.RegistryError](err); !ok || refused.Reason != docker.Failing {
		t.Errorf("%+v, %v", img, err)
	}
}
